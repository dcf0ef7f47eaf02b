// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/observe/history_file.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "app/job.hpp"
#include "base/bucket/unkind_store.hpp"
#include "edl/base/bucket/cache.hpp"

namespace history_file_test {

using edl::train::history_file;
using job::has, job::slurp;
constexpr auto training = history_file::kind::training;

namespace {

std::string line(std::uint64_t step) { return "{\"step\":" + std::to_string(step) + ",\"loss\":1}\n"; }
std::string evaluation(std::uint64_t step) {
  return "{\"step\":" + std::to_string(step) + ",\"metrics\":{\"accuracy\":1}}\n";
}

struct with_log {
  job::scratch dir;
  std::string path = dir / "history.jsonl";
  int fd = ::open((dir / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  edl::logger log{edl::severity::info, "", fd};
  ~with_log() { ::close(fd); }
  std::string said() const { return slurp(dir / "log"); }
};

}  // namespace

TEST_CASE("lines are appended, and there once they are flushed") {
  with_log w;
  history_file file(w.path, w.log);
  file.go_on_from(0);
  file.append(training, 10, line(10));
  file.append(history_file::kind::evaluation, 10, evaluation(10));
  file.flush();
  CHECK(slurp(w.path) == line(10) + evaluation(10));
  CHECK(w.said() == "");
}

TEST_CASE("an object has all lines, and those of a process that has lost it do not replace others") {
  with_log w;
  std::atomic<int> n{0};
  std::atomic<bool> down{false};
  test::unkind_store* self = nullptr;
  test::unkind_store store([&](test::request const& r, test::wire& to) {
    if (down || n++ % 3 == 0) return test::unkind_store::refuse(to, 503, "SlowDown"), true;
    return r.method == "PUT" && n % 3 == 2 && (self->serve_silently(r, to), true);
  });
  self = &store;
  auto o = store.options();
  o.retry_timeout = std::chrono::milliseconds(500);
  edl::bucket::place const like("", {.directory = w.dir / "cache", .store = o});
  std::string const key = "c/history.jsonl", path = "s3://box/" + key;
  history_file first(path, w.log, like);
  first.go_on_from(0);
  for (std::uint64_t step = 1; step <= 20; ++step) first.append(training, step, line(step));
  first.flush();
  CHECK(job::count(store.objects.at(key), "\n") == 20);
  // Lines that cannot be written for a while are not lost, even when the job goes back meanwhile.
  down = true;
  first.append(training, 21, line(21));
  first.append(training, 22, line(22));
  first.flush();
  CHECK(has(w.said(), "cannot write the job's history for now: s3://box/c/history.jsonl: "));
  down = false;
  first.go_on_from(21);
  first.flush();
  CHECK(job::count(store.objects.at(key), "\n") == 21);
  CHECK(store.objects.at(key).ends_with(line(21)));
  {
    history_file second(path, w.log, like);
    second.go_on_from(10);
    second.append(training, 11, line(11));
    second.flush();
  }
  std::string const now = store.objects.at(key);
  CHECK(job::count(now, "\n") == 11);
  first.append(training, 30, line(30));
  first.flush();
  CHECK(store.objects.at(key) == now);
  CHECK(has(w.said(), "another process has written it"));
  // An object that somebody removes, or whose own write was believed to have failed, is written again.
  store.objects.erase(key);
  first.append(training, 31, line(31));
  first.flush();
  CHECK(store.objects.at(key).ends_with(line(30) + line(31)));
  store.objects[key] += line(32);
  store.sums.clear();
  for (std::uint64_t step : {32, 33}) first.append(training, step, line(step));
  first.flush();
  CHECK(store.objects.at(key).ends_with(line(31) + line(32) + line(33)));
}

TEST_CASE("a large object waits for further lines, and a small one for none") {
  with_log w;
  std::atomic<int> puts{0};
  test::unkind_store store(
      [&](test::request const& r, test::wire&) { return puts += r.method == "PUT", false; });
  edl::bucket::place const like("", {.directory = w.dir / "cache", .store = store.options()});
  std::string const big = R"({"step":1,"note":")" + std::string(200, 'x') + "\"}\n",
                    path = "s3://box/c/history.jsonl";
  {
    history_file file(path, w.log, like, {.bytes_per_second = 1});
    file.append(training, 1, big);  // for 200 s
    while (puts == 0) std::this_thread::yield();
    for (std::uint64_t step = 2; step <= 50; ++step) file.append(training, step, line(step));
    file.flush();
    CHECK(puts == 2);
    CHECK(store.objects.at("c/history.jsonl").ends_with(line(50)));
    for (std::uint64_t step = 51; step <= 100; ++step) file.append(training, step, line(step));
  }
  CHECK(puts == 3);
  CHECK(store.objects.at("c/history.jsonl").ends_with(line(100)));
  puts = 0;
  history_file quick(path, w.log, like, {.bytes_per_second = 1'000'000'000});
  quick.go_on_from(100);
  for (int before = 0; std::uint64_t const step : {101, 102, 103}) {
    quick.append(training, step, line(step));
    while (puts == before) std::this_thread::yield();
    before = puts;
  }
}

TEST_CASE("lines for several objects are in them once, in the order of their names") {
  with_log w;
  std::atomic<int> n{0};
  std::atomic<bool> down{false};
  test::unkind_store* self = nullptr;
  test::unkind_store store([&](test::request const& r, test::wire& to) {
    if (down || n++ % 3 == 0) return test::unkind_store::refuse(to, 503, "SlowDown"), true;
    return r.method == "PUT" && n % 3 == 2 && (self->serve_silently(r, to), true);
  });
  self = &store;
  auto o = store.options();
  o.retry_timeout = std::chrono::milliseconds(100);
  edl::bucket::place const like("s3://other/c", {.directory = w.dir / "cache", .store = o});
  edl::train::history_pace how{
      .head = "head\n", .part = 60, .pause = std::chrono::hours(1), .most_unsaved = 500};
  std::string all;
  auto const written = [&] {
    std::lock_guard const lock(store.mutex);
    std::string text;
    std::size_t number = 0;
    for (auto const& [key, part] : store.objects) {
      CHECK(key == "logs/events." + std::string(number < 10 ? "00000" : "0000") + std::to_string(number));
      ++number;
      CHECK(part.starts_with("head\n"));
      text += part.substr(5);
    }
    return text;
  };
  {
    history_file file("s3://box/logs/events", w.log, like, how);
    for (std::uint64_t step = 1; step <= 40; ++step) {
      file.append(training, step, line(step));
      all += line(step);
    }
    file.flush();
    CHECK(written() == all);
    CHECK(store.objects.size() > 1);
    // A store that fails for a while loses nothing.
    down = true;
    for (std::uint64_t step : {41, 42}) {
      file.append(training, step, line(step));
      all += line(step);
      file.flush();
    }
    CHECK(has(w.said(), "cannot write the job's history for now: s3://box/logs/events."));
    down = false;
    file.flush();
    CHECK(written() == all);
    CHECK(has(w.said(), "s3://box/logs/events can be written again"));
    file.append(training, 43, line(43));  // is kept back, and written at the end
    all += line(43);
  }
  CHECK(written() == all);
  CHECK_FALSE(has(w.said(), " lacks "));
  {
    // One that fails to the end costs bounded memory, and a warning.
    history_file file("s3://box/logs/events", w.log, like, how);
    down = true;
    for (std::uint64_t step = 1; step <= 100; ++step) file.append(training, step, line(step));
  }
  CHECK(has(w.said(), "s3://box/logs/events lacks 100 lines"));
}

TEST_CASE("a step has one line of a kind, whoever tells it again") {
  with_log w;
  {
    history_file file(w.path, w.log);
    file.append(training, 10, line(10));
    file.append(training, 10, line(10));
  }
  history_file file(w.path, w.log);
  file.go_on_from(10);
  file.append(training, 10, line(10));
  file.append(training, 20, line(20));
  file.flush();
  CHECK(slurp(w.path) == line(10) + line(20));
}

TEST_CASE("a job that goes on from an older step drops the lines of later ones, and says so") {
  with_log w;
  std::ofstream(w.path) << line(10) << line(20) << evaluation(20) << line(30) << evaluation(25) << line(40);
  history_file file(w.path, w.log);
  file.go_on_from(25);
  file.append(training, 30, line(30));
  file.flush();
  CHECK(slurp(w.path) == line(10) + line(20) + evaluation(20) + evaluation(25) + line(30));
  CHECK(has(w.said(), "history.jsonl: 2 lines of steps after 25 are dropped, the job goes on from there"));
  // The same again, in the middle of a job.
  file.go_on_from(10);
  file.append(training, 20, line(20));
  file.flush();
  CHECK(slurp(w.path) == line(10) + line(20));
}

TEST_CASE("a line whose lists stand deep in each other is no line of a history") {
  with_log w;
  std::ofstream(w.path) << line(10) << R"({"step":11,"a":)" << std::string(200'000, '[')
                        << std::string(200'000, ']') << "}\n";
  history_file file(w.path, w.log);
  file.go_on_from(20);
  file.flush();
  CHECK(slurp(w.path) == line(10));
}

TEST_CASE("a torn last line is cut off, and what is no line of a history is dropped") {
  with_log w;
  std::ofstream(w.path) << line(10) << "what is this\n" << line(20) << line(30).substr(0, 9);
  history_file file(w.path, w.log);
  file.go_on_from(20);
  file.append(training, 30, line(30));
  file.flush();
  CHECK(slurp(w.path) == line(10) + line(20) + line(30));
  CHECK(has(w.said(), "history.jsonl: dropping its truncated last line"));
  CHECK(has(w.said(), "history.jsonl: 1 line that cannot be read is dropped"));
}

TEST_CASE("what cannot be written is told once, and written when that is possible again") {
  with_log w;
  std::filesystem::create_directory(w.path);
  history_file file(w.path, w.log);
  for (std::uint64_t step : {10, 20, 30}) {
    file.append(training, step, line(step));
    file.flush();
  }
  CHECK(job::count(w.said(), "cannot write the job's history for now: cannot open " + w.path) == 1);
  std::filesystem::remove(w.path);
  file.append(training, 40, line(40));
  file.flush();
  CHECK(slurp(w.path) == line(10) + line(20) + line(30) + line(40));
  CHECK(has(w.said(), "history.jsonl can be written again"));
}

TEST_CASE("what is never written is counted at the end") {
  with_log w;
  std::filesystem::create_directory(w.path);
  {
    history_file file(w.path, w.log);
    for (std::size_t i = 0; i < history_file::most_waiting + 5; ++i)
      file.append(training, i + 1, line(i + 1));
  }
  CHECK(has(w.said(), "history.jsonl lacks 10005 lines"));
}

TEST_CASE("a line that a full disk cuts is taken back") {
  with_log w;
  pid_t const child = ::fork();
  if (child == 0) {
    rlimit const limit{30, 30};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_IGN);
    {
      history_file file(w.path, edl::logger(edl::severity::critical));
      file.append(training, 10, line(10));
      file.append(training, 20, line(20));
    }
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  CHECK(slurp(w.path) == line(10));
}

TEST_CASE("without a path nothing is done") {
  with_log w;
  history_file file("", w.log);
  file.go_on_from(0);
  file.append(training, 10, line(10));
  file.flush();
  CHECK(w.said() == "");
}

}  // namespace history_file_test

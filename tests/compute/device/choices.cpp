// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/choices.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace choices_test {

using edl::detail::kernel_choices, edl::detail::kernel_key;

namespace {

constexpr std::array<std::string_view, 3> ways{"slow", "quick", "impossible"};

struct folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("edl-choices-" + std::to_string(::getpid()));
  folder() { std::filesystem::create_directories(path); }
  ~folder() { std::filesystem::remove_all(path); }
  std::string file() const { return (path / "deep" / "kernels").string(); }
};

/// What is written to standard error while it lives.
class captured_stderr {
 public:
  captured_stderr() { ::dup2(::fileno(file_), 2); }
  ~captured_stderr() {
    ::dup2(before_, 2);
    ::close(before_);
    std::fclose(file_);
  }
  std::string text() {
    std::string all(4096, ' ');
    std::rewind(file_);
    all.resize(std::fread(all.data(), 1, all.size(), file_));
    return all;
  }

 private:
  int before_ = ::dup(2);
  std::FILE* file_ = std::tmpfile();
};

/// Which way is chosen, and how often anything was tried.
struct chosen {
  int way, runs = 0, checks = 0;
  chosen(kernel_choices& c, kernel_key const& key, int rule, int wrong = -1) {
    way = c.pick(
        key, ways, rule,
        [&](int w) {
          ++runs;
          if (w == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
          return w != 2;
        },
        [&](int w) { return ++checks, w != wrong; });
  }
};

}  // namespace

TEST_CASE("the fastest way is found out once, and holds for every batch") {
  kernel_choices c(edl::kernels::measured, 1, "");
  for (int rule : {0, 1, 2}) {
    kernel_key const key{"test", {rule}, 64};
    chosen const first(c, key, rule);
    CHECK(first.way == 1);
    CHECK(first.runs > 1);
    chosen const again(c, key, rule), last_of_an_epoch(c, {"test", {rule}, 7}, rule);
    CHECK(again.way == 1);
    CHECK(again.runs == 0);
    CHECK(last_of_an_epoch.way == 1);
    CHECK(last_of_an_epoch.runs == 0);
  }
  CHECK(c.measurements() == 3);
}

TEST_CASE("long work is not repeated often") {
  kernel_choices c(edl::kernels::measured, 1, "");
  int runs = 0;
  c.pick(
      {"test"}, ways, 0,
      [&](int way) {
        ++runs;
        std::this_thread::sleep_for(std::chrono::milliseconds(way == 1 ? 350 : 101));
        return true;
      },
      [](int) { return true; });
  CHECK(runs <= 2 + 1 + 2);
}

TEST_CASE("a way with wrong results is left out and logged once, also where it is the rule") {
  kernel_choices c(edl::kernels::measured, 1, "");
  for (int rule : {0, 1}) {
    kernel_key const key{"wrong", {rule}, 64};
    captured_stderr captured;
    chosen const first(c, key, rule, 1), again(c, key, rule, 1);
    CHECK(first.way == 0);
    CHECK(first.checks == 2);
    CHECK(again.way == 0);
    CHECK(again.checks == 0);
    auto const text = captured.text();
    CHECK(text.find("'quick' of wrong") != std::string::npos);
    CHECK(text.find("quick") == text.rfind("quick"));
  }
}

TEST_CASE("without measuring, the rule holds and nothing is tried") {
  for (auto policy : {edl::kernels::fixed, edl::kernels::direct, edl::kernels::own}) {
    kernel_choices c(policy, 1, "");
    chosen const by_rule(c, {"test", {1}, 64}, 0);
    CHECK(by_rule.way == 0);
    CHECK(by_rule.runs == 0);
  }
}

TEST_CASE("a file of another kind stays as it is, which is told once") {
  folder const f;
  std::string const path = f.path / "table.csv", content = "area,rent\n50,500\n";
  std::ofstream(path) << content;
  captured_stderr captured;
  kernel_choices c(edl::kernels::measured, 2, path);
  CHECK(chosen(c, {"test", {5, 6}, 64}, 0).way == 1);
  CHECK(chosen(c, {"test", {5, 7}, 64}, 0).way == 1);
  std::ostringstream now;
  now << std::ifstream(path).rdbuf();
  CHECK(now.str() == content);
  auto const text = captured.text(), told = path + " is not a file of remembered kernels";
  CHECK(text.find(told) != text.npos);
  CHECK(text.find(told) == text.rfind(told));
  // What an older version has remembered is replaced.
  std::ofstream(f.path / "old") << "edl 0.0.1 kernels, oneDNN 1, some processor\n";
  kernel_choices newer(edl::kernels::measured, 2, f.path / "old");
  CHECK(chosen(newer, {"test", {5, 6}, 64}, 0).way == 1);
  CHECK(chosen(newer, {"test", {5, 6}, 64}, 0).runs == 0);
  kernel_choices next(edl::kernels::measured, 2, f.path / "old");
  CHECK(chosen(next, {"test", {5, 6}, 64}, 0).runs == 0);
}

TEST_CASE("a file remembers for the next process; one that is damaged is as good as none") {
  folder const f;
  kernel_key const key{"test", {5, 6}, 64};
  {
    kernel_choices c(edl::kernels::measured, 2, f.file());
    CHECK(chosen(c, key, 0).way == 1);
  }
  {
    kernel_choices c(edl::kernels::measured, 2, f.file());
    chosen const remembered(c, key, 0);
    CHECK(remembered.way == 1);
    CHECK(remembered.runs == 0);
    CHECK(chosen(c, {"test", {5, 7}, 64}, 0).runs > 0);        // another shape
    CHECK(chosen(c, {"test", {5, 6}, 64, true}, 0).runs > 0);  // another precision
  }
  kernel_choices more_threads(edl::kernels::measured, 3, f.file());
  CHECK(chosen(more_threads, key, 0).runs > 0);
  for (std::string const text : {"", "another machine\n", "\xff\xfe\n: : :\n"}) {
    std::ofstream(f.file()) << text;
    kernel_choices c(edl::kernels::measured, 2, f.file());
    CHECK(chosen(c, key, 0).way == 1);
  }
  std::filesystem::remove(f.file());
  kernel_choices fresh(edl::kernels::measured, 2, f.file());
  CHECK(chosen(fresh, key, 0).way == 1);
  std::ifstream in(f.file());
  std::string signature;
  std::getline(in, signature);
  std::ofstream(f.file()) << signature
                          << "\ntest 5,6,0,0,0,0,0,0,0,0,0,0,0,0 batch 64 threads 2: no such way\n";
  kernel_choices c(edl::kernels::measured, 2, f.file());
  CHECK(chosen(c, key, 0).way == 1);
}

TEST_CASE("processes that share a file keep what the others have learned") {
  folder const f;
  kernel_choices a(edl::kernels::measured, 1, f.file()), b(edl::kernels::measured, 1, f.file());
  chosen(a, {"test", {1}, 64}, 0);
  chosen(b, {"test", {2}, 64}, 0);
  kernel_choices next(edl::kernels::measured, 1, f.file());
  CHECK(chosen(next, {"test", {1}, 64}, 0).runs == 0);
  CHECK(chosen(next, {"test", {2}, 64}, 0).runs == 0);
}

TEST_CASE("a place where nothing can be written costs nothing but the memory") {
  kernel_choices c(edl::kernels::measured, 1, "/proc/nowhere/kernels");
  CHECK(chosen(c, {"test", {1}, 64}, 0).way == 1);
}

}  // namespace choices_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/observe/run_list.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/bucket/unkind_store.hpp"
#include "base/wire/scratch.hpp"
#include "edl/base/bucket/cache.hpp"
#include "edl/base/checkpoint/manifest.hpp"
#include "edl/job/train/observe/history_file.hpp"

namespace run_list_test {

using nlohmann::json;

namespace {

void append(std::string const& file, std::string const& text) {
  std::filesystem::create_directories(std::filesystem::path(file).parent_path());
  std::ofstream(file, std::ios::app) << text;
}

json row(edl::train::run_list& of, std::string const& id) {
  auto const& all = of.look();
  REQUIRE(all.contains(id));
  return json::parse(all.at(id));
}

}  // namespace

TEST_CASE("runs are found by their histories, with their newest lines, and found again when they change") {
  scratch const dir;
  append(dir / "a/history.jsonl",
         "{\"step\":10,\"time\":5,\"loss\":0.5,\"workers\":2}\n{\"step\":12,\"time\":7,\"metrics\":"
         "{\"accuracy\":0.75}}\n{\"step\":20,\"time\":6,\"loss\":0.25}\nno line\n{\"step\":30,\"lo");
  append(dir / "b/checkpoints/history.jsonl", "{\"step\":1,\"loss\":2}\n");
  append(dir / "b/checkpoints/version-1/history.jsonl", "{\"step\":9}\n");  // a checkpoint is no run
  append(dir / "no/run", "");
  append(dir / ".hidden/history.jsonl", "{\"step\":1}\n");
  CHECK(json::parse(edl::train::run_list(dir / "").lines_of("a")).size() == 3);  // without a list before
  edl::train::run_list runs(dir / "");
  CHECK(runs.look().size() == 2);
  json const a = row(runs, "a");
  CHECK(a["id"] == "a");
  CHECK(a["step"] == 20);
  CHECK(a["time"] == 7);
  CHECK(a["loss"] == 0.25);
  CHECK(a["metrics"]["accuracy"] == 0.75);
  CHECK(row(runs, "b")["loss"] == 2);
  CHECK(json::parse(runs.lines_of("a")).size() == 3);
  CHECK(runs.lines_of("../a").empty());
  append(dir / "b/checkpoints/history.jsonl", "{\"step\":2,\"loss\":null,\"time\":\"noon\"}\n");
  CHECK(row(runs, "b")["step"] == 2);
  std::filesystem::remove_all(dir / "b");
  CHECK(runs.look().size() == 1);
  CHECK(runs.lines_of("b").empty());
}

TEST_CASE("a sweep's trials say what was tried, also those that have failed or have no line yet") {
  scratch const dir;
  append(dir / "s/sweep.json",
         R"({"sweep":"x","trials":[{"hyperparameters":"rate=0.1","steps":8,"value":0.5},)"
         R"({"hyperparameters":"rate=9","steps":8,"value":null,"failure":"exit code 1"}]})");
  append(dir / "s/trial-0/checkpoints/history.jsonl", "{\"step\":8,\"loss\":1}\n");
  edl::train::run_list runs(dir / "");
  CHECK(row(runs, "s/trial-0")["hyperparameters"] == "rate=0.1");
  CHECK(row(runs, "s/trial-0")["step"] == 8);
  CHECK(row(runs, "s/trial-1")["failure"] == "exit code 1");
  CHECK(runs.lines_of("s/trial-1") == "[]");
  edl::train::run_list itself(dir / "s/trial-0/checkpoints");
  CHECK(row(itself, ".")["step"] == 8);
  CHECK(edl::train::run_list(dir / "none").look().empty());
}

TEST_CASE("a run's hyperparameters are those of its newest checkpoint, a trial's those that were tried") {
  scratch const dir;
  auto const checkpoint = [&](std::string const& of, std::uint64_t version, std::string const& set) {
    edl::checkpoint::manifest m{.job = "j", .version = version, .hyperparameters = set, .files = {{"f"}}};
    append(dir / (of + "/version-" + std::to_string(version) + "/manifest.json"),
           edl::checkpoint::to_json(m));
  };
  append(dir / "a/history.jsonl", "{\"step\":8}\n");
  append(dir / "b/history.jsonl", "{\"step\":8}\n");
  append(dir / "sweep.json", R"({"trials":[{"hyperparameters":"rate=0.5"}]})");
  append(dir / "trial-0/checkpoints/history.jsonl", "{\"step\":8}\n");
  edl::train::run_list runs(dir / "");
  CHECK_FALSE(row(runs, "a").contains("hyperparameters"));  // the first checkpoint is still to come
  checkpoint("a", 9, "rate=0.1"), checkpoint("a", 10, "rate=0.2;depth=3");
  append(dir / "a/version-11/manifest.json", "{");  // is being written
  checkpoint("b", 3, "");
  checkpoint("trial-0/checkpoints", 3, "rate=0.5;depth=2");
  checkpoint("secret", 12, "key=1");
  std::filesystem::create_symlink(dir / "secret/version-12", dir / "b/version-12");
  CHECK(row(runs, "a")["hyperparameters"] == "rate=0.2;depth=3");
  CHECK_FALSE(row(runs, "b").contains("hyperparameters"));
  CHECK(row(runs, "trial-0")["hyperparameters"] == "rate=0.5");
  CHECK(runs.look().at("trial-0").find("depth") == std::string::npos);
}

TEST_CASE("what is of another kind than a page expects is no fact of a run") {
  scratch const dir;
  append(dir / "a/history.jsonl",
         "{\"step\":1,\"time\":\"noon\",\"loss\":[1],\"workers\":2}\n{\"step\":1,\"metrics\":5}\n");
  append(dir / "sweep.json", R"({"trials":[{"hyperparameters":5,"failure":["no"]}]})");
  edl::train::run_list runs(dir / "");
  CHECK(row(runs, "a") == json{{"id", "a"}, {"step", 1}, {"workers", 2}});
  CHECK(row(runs, "trial-0") == json{{"id", "trial-0"}});
}

TEST_CASE("what a neighbour has put there is not waited for, nor followed out of the directory") {
  scratch const dir;
  append(dir / "secret/history.jsonl", "{\"step\":1,\"loss\":42}\n");
  append(dir / "runs/good/history.jsonl",
         "{\"step\":5,\"loss\":1,\"key\":7,\"password\":\"x\"}\n{\"step\":5,\"metrics\":{\"a\":1,\"b\":\"x\"}"
         "}\n");
  for (char const* const name : {"runs/fifo", "runs/linked", "runs/swept"})
    std::filesystem::create_directories(dir / name);
  REQUIRE(::mkfifo((dir / "runs/fifo/sweep.json").c_str(), 0600) == 0);
  REQUIRE(::mkfifo((dir / "runs/fifo/history.jsonl").c_str(), 0600) == 0);
  std::filesystem::create_symlink(dir / "secret/history.jsonl", dir / "runs/linked/history.jsonl");
  std::filesystem::create_symlink(dir / "secret", dir / "runs/outside");
  append(dir / "secret/sweep.json", R"({"trials":[{"hyperparameters":"secret=1"}]})");
  std::filesystem::create_symlink(dir / "secret/sweep.json", dir / "runs/swept/sweep.json");
  std::filesystem::create_symlink(dir / "runs", dir / "mine");
  for (char const* const given : {"runs", "mine"}) {  // the user's own word may be a link
    edl::train::run_list runs(dir / given);
    CHECK(runs.look().size() == 1);
    CHECK(row(runs, "good") == json{{"id", "good"}, {"step", 5}, {"loss", 1}, {"metrics", {{"a", 1}}}});
    CHECK(json::parse(runs.lines_of("good")) ==
          json::parse(R"([{"step":5,"loss":1},{"step":5,"metrics":{"a":1}}])"));
    CHECK(runs.lines_of("linked").empty());
  }
  edl::train::history_file(dir / "runs/linked/history.jsonl", edl::logger(edl::severity::critical))
      .append(edl::train::history_file::kind::training, 1, "{}\n");
  CHECK(std::filesystem::file_size(dir / "secret/history.jsonl") == 21);
}

TEST_CASE("bytes of any kind are no reason to fail") {
  scratch const dir;
  append(dir / "a/history.jsonl", "\xff\xfe\n{\"step\":-1}\n[[[\n{\"step\":3,\"loss\":\"\xff\"}\n");
  append(dir / "b/history.jsonl", std::string(100'000, '['));
  append(dir / "sweep.json", "[]");
  append(dir / "b\x01\xff/history.jsonl", "{\"step\":7}\n");
  append(dir / "b\x01\xfe/history.jsonl", "{\"step\":8}\n");
  edl::train::run_list runs(dir / "");
  CHECK(runs.look().size() == 4);
  for (auto const& [id, text] : runs.look()) CHECK(json::parse(text)["id"] == id);
  int const first = row(runs, "b ?")["step"], second = row(runs, "b ? (2)")["step"];
  CHECK(first + second == 7 + 8);
  CHECK(json::parse(runs.lines_of("b ? (2)"))[0]["step"] == second);
}

TEST_CASE("runs in a bucket are found, and what has not changed is not read again") {
  scratch const dir;
  std::map<std::string, int> reads;
  std::mutex mutex;
  test::unkind_store store([&](test::request const& r, test::wire&) {
    std::lock_guard const lock(mutex);
    ++reads[r.target];
    return false;
  });
  store.page = 2;
  edl::checkpoint::manifest m{.job = "j", .version = 10, .files = {{"f"}}};
  m.hyperparameters = "rate=0.5";
  std::string const manifest = to_json(m);
  m.hyperparameters = "rate=0.1";
  store.objects = {
      {"runs/a/history.jsonl", "{\"step\":1,\"loss\":2}\n{\"step\":10,\"metrics\":{\"accuracy\":1}}\n"},
      {"runs/a/version-9/manifest.json", to_json(m)},
      {"runs/a/version-10/manifest.json", manifest},
      {"runs/a/version-11/manifest.json", "\n"},              // must not be completed
      {"runs/a/version-10/history.jsonl", "{\"step\":3}\n"},  // a checkpoint is no run
      {"runs/b/checkpoints/history.jsonl", "{\"step\":4,\"loss\":1}\n"},
      {"runs/.hidden/history.jsonl", "{\"step\":1}\n"},
      {"runs/s/sweep.json", R"({"trials":[{"hyperparameters":"rate=9","failure":"exit code 1"}]})"},
      {"runs/1/2/3/4/5/6/history.jsonl", "{\"step\":1}\n"},  // too deep
      {"runs2/c/history.jsonl", "{\"step\":1}\n"}};
  edl::bucket::place const at("s3://box/runs", {.directory = dir / "cache", .store = store.options()});
  edl::train::run_list runs(at);
  CHECK(runs.look().size() == 3);
  json const a = row(runs, "a");
  CHECK(a["step"] == 10);
  CHECK(a["loss"] == 2);
  CHECK(a["metrics"]["accuracy"] == 1);
  CHECK(a["hyperparameters"] == "rate=0.5");
  CHECK(row(runs, "b")["loss"] == 1);
  CHECK(row(runs, "s/trial-0")["failure"] == "exit code 1");
  CHECK(json::parse(runs.lines_of("a")).size() == 2);
  CHECK(runs.lines_of("c").empty());
  {
    std::lock_guard const lock(mutex);
    CHECK(reads["/box/runs/b/checkpoints/history.jsonl"] == 1);
    CHECK(reads["/box/runs/s/sweep.json"] == 1);
    CHECK(reads["/box/runs/a/version-10/manifest.json"] == 1);
  }
  store.objects["runs/b/checkpoints/history.jsonl"] += "{\"step\":5,\"loss\":0.5}\n";
  store.objects.erase("runs/a/history.jsonl");
  CHECK(row(runs, "b")["loss"] == 0.5);
  CHECK(runs.lines_of("a").empty());
}

TEST_CASE("a history in a bucket that cannot be read is told, and not shown as an empty one") {
  scratch const dir;
  std::string closed;
  test::unkind_store store([&](test::request const& r, test::wire& w) {
    bool const refused = !closed.empty() && r.target.find(closed) != r.target.npos;
    return refused && (test::unkind_store::refuse(w, 403, "AccessDenied"), true);
  });
  store.objects = {{"runs/a/history.jsonl", "{\"step\":1,\"loss\":2}\n"},
                   {"runs/b/history.jsonl", "{\"step\":4,\"loss\":1}\n"},
                   {"runs/sweep.json", R"({"trials":[{"hyperparameters":"rate=9"}]})"}};
  edl::train::run_list runs(
      edl::bucket::place("s3://box/runs", {.directory = dir / "cache", .store = store.options()}));
  closed = "/a/history.jsonl";
  for (int again = 0; again < 2; ++again) {
    CHECK(row(runs, "a") == json{{"id", "a"}});
    CHECK(row(runs, "b")["step"] == 4);
    CHECK(test::says(runs.problem(), {"s3://box/runs/a/history.jsonl", "403 AccessDenied"}));
  }
  CHECK(test::says(test::thrown([&] { runs.lines_of("a"); }), {"s3://box/runs/a/history.jsonl"}));
  closed = "/sweep.json";
  CHECK(row(runs, "a")["loss"] == 2);
  CHECK(row(runs, "trial-0")["hyperparameters"] == "rate=9");
  CHECK(runs.problem().empty());  // the list of trials has not changed
  store.objects["runs/sweep.json"] = "{}";
  CHECK(row(runs, "trial-0")["hyperparameters"] == "rate=9");
  CHECK(test::says(runs.problem(), {"s3://box/runs/sweep.json"}));
  closed = "list-type=2";
  CHECK(test::says(test::thrown([&] { runs.look(); }), {"s3://box/runs/", "403 AccessDenied"}));
}

TEST_CASE("most of what lies in the folders of runs in a bucket is not listed") {
  scratch const dir;
  edl::checkpoint::manifest m{.job = "j", .version = 10, .files = {{"f"}}};
  m.hyperparameters = "rate=0.5";
  std::atomic<int> requests = 0;
  test::unkind_store store([&](test::request const&, test::wire&) { return ++requests, false; });
  for (int i = 0; i < 10'000; ++i)
    store.objects[fmt::format("runs/0/checkpoints/version-{}/part-{}", i / 100, i)] = "x";
  for (char const* job : {"0", "1", "2"}) {
    std::string const at = fmt::format("runs/{}/checkpoints/", job);
    store.objects[at + "history.jsonl"] = "{\"step\":8}\n";
    store.objects[at + "version-98/manifest.json"] = to_json(m);
  }
  // Of one job, as its own page has it, and of all.
  for (char const* path : {"s3://box/runs/0/checkpoints", "s3://box/runs"}) {
    edl::bucket::place const at(path, {.directory = dir / "cache", .store = store.options()});
    bool const one = at.path().ends_with("checkpoints");
    requests = 0;
    at.objects();
    CHECK(requests == 11);
    edl::train::run_list runs(at);
    auto const first = runs.look();
    CHECK(first.size() == (one ? 1 : 3));
    CHECK(json::parse(first.begin()->second)["hyperparameters"] == "rate=0.5");
    requests = 0;
    CHECK(runs.look() == first);
    CHECK(requests == 2);
    store.objects["runs/0/checkpoints/history.jsonl"] += "{\"step\":9}\n";
    requests = 0;
    CHECK(json::parse(runs.look().begin()->second)["step"] == 9);
    CHECK(requests == 2 + 3);  // the history, the names of versions, a manifest that is missing
    store.objects["runs/0/checkpoints/history.jsonl"] = "{\"step\":8}\n";
  }
}

}  // namespace run_list_test

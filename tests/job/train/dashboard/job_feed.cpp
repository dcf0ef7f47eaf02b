// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/dashboard/job_feed.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "base/wire/scratch.hpp"

namespace job_feed_test {

using edl::train::job_feed;
using kind = edl::train::history_file::kind;

namespace {

std::string line(int step) { return "{\"step\":" + std::to_string(step) + "}"; }
void add(job_feed& f, int step, kind of = kind::training) {
  f.add_line(of, std::uint64_t(step), line(step) + "\n");
}

}  // namespace

TEST_CASE("a reader gets all from the beginning, then what is new, each once") {
  job_feed f("run");
  job_feed::place at;
  f.show("{\"step\":1}");
  add(f, 10);
  f.add_event("{\"kind\":\"joined\"}");
  CHECK(f.news(at) ==
        "event: reset\ndata: {}\n\n"
        "event: job\ndata: {\"step\":1}\n\n"
        "id: run-1\nevent: line\ndata: {\"step\":10}\n\n"
        "id: run-2\nevent: event\ndata: {\"kind\":\"joined\"}\n\n");
  CHECK(f.news(at).empty());
  f.show("{\"step\":2}");
  f.show("{\"step\":3}");  // only the newest is worth anything
  CHECK(f.news(at) == "event: job\ndata: {\"step\":3}\n\n");
  add(f, 20);
  CHECK(f.news(at) == "id: run-3\nevent: line\ndata: {\"step\":20}\n\n");
  f.end();
  CHECK_FALSE(at.ended);
  CHECK(f.news(at) == "event: end\ndata: {}\n\n");
  CHECK(at.ended);
  CHECK(f.news(at).empty());
  CHECK(f.job() == "{\"step\":3}");
  CHECK(f.history() == "[{\"step\":10},\n{\"step\":20}]");
  CHECK(f.events() == "[{\"kind\":\"joined\"}]");
}

TEST_CASE("a reader that comes again goes on behind the id that it names, and begins anew with any other") {
  job_feed f("run");
  add(f, 10);
  add(f, 20);
  auto at = f.after("run-1");
  CHECK(f.news(at) == "id: run-2\nevent: line\ndata: {\"step\":20}\n\n");
  for (char const* other :
       {"", "run", "run-", "run-3", "run-99999999999999999999", "other-1", "run-1\n", "-1"}) {
    CAPTURE(other);
    auto from = f.after(other);
    CHECK(f.news(from).starts_with("event: reset\n"));
  }
}

TEST_CASE("a slow reader is kept no queue for: it begins anew where something it has not read is gone") {
  job_feed f("run", {}, {.lines = 8, .events = 8, .piece = 1});
  job_feed::place slow, fast;
  for (int i = 0; i < 8; ++i) f.add_event("{\"n\":" + std::to_string(i) + "}");
  f.news(slow);
  while (!f.news(fast).empty()) {
  }
  f.add_event("{\"n\":8}");  // the oldest go
  CHECK(f.news(fast) == "id: run-9\nevent: event\ndata: {\"n\":8}\n\n");
  std::string const anew = f.news(slow);
  CHECK(anew == "event: reset\ndata: {}\n\n");
  CHECK(f.news(slow) == "id: run-4\nevent: event\ndata: {\"n\":3}\n\n");
  for (int pieces = 0; !f.news(slow).empty(); ++pieces) REQUIRE(pieces < 10);
  CHECK(slow.entry == 9);
}

TEST_CASE("of too many lines every second one goes, the last one stays") {
  job_feed f("run", {}, {.lines = 6});
  for (int i = 1; i <= 5; ++i) add(f, i);
  add(f, 5, kind::evaluation);
  add(f, 6);
  std::string const left = f.history();
  CHECK(left == "[{\"step\":2},\n{\"step\":4},\n{\"step\":5},\n{\"step\":6}]");
  for (int i = 7; i < 10'000; ++i) add(f, i);
  CHECK(f.history().size() < 6 * 20);
  CHECK(f.history().ends_with("{\"step\":9999}]"));
}

TEST_CASE("lines of steps that the job goes back behind are void for everybody") {
  job_feed f("run");
  job_feed::place at;
  add(f, 10);
  add(f, 20);
  f.news(at);
  f.drop_lines_after(20);
  CHECK(f.news(at).empty());
  f.drop_lines_after(10);
  CHECK(f.news(at) ==
        "event: reset\ndata: {}\n\n"
        "id: run-1\nevent: line\ndata: {\"step\":10}\n\n");
  auto again = f.after("run-2");
  CHECK(f.news(again).starts_with("event: reset\n"));
}

TEST_CASE("whoever is to be woken is told of each change") {
  int told = 0;
  job_feed f("run", [&told] { ++told; });
  f.show("{}");
  add(f, 1);
  f.add_event("{}");
  f.drop_lines_after(0);
  f.drop_lines_after(0);  // of none
  f.end();
  CHECK(told == 5);
}

TEST_CASE("a history that is there is read; what is no line of one is left out") {
  scratch const dir;
  std::ofstream(dir / "history.jsonl") << "{\"step\":10,\"loss\":0.5}\r\n\n"
                                       << "{\"step\":-1}\n[1]\nno JSON\n{\"step\":\"x\"}\n"
                                       << std::string(1000, '[') << "\n{\"name\":\"\xff\",\"step\":1}\n"
                                       << "{\"step\":10,\"metrics\":{\"a\\nb\":1}}\n{\"step\":2";
  job_feed f("run");
  edl::train::read_lines(dir / "history.jsonl", f);
  CHECK(f.history() == "[{\"loss\":0.5,\"step\":10},\n{\"metrics\":{\"a\\nb\":1},\"step\":10}]");
  job_feed none("run");
  edl::train::read_lines(dir / "nowhere", none);
  CHECK(none.history() == "[]");
}

}  // namespace job_feed_test

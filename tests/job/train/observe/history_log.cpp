// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/observe/history_log.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "app/job.hpp"
#include "edl/app/history.hpp"
#include "edl/job/train/dashboard/job_feed.hpp"

namespace history_log_test {

using edl::train::history_log;
using job::has, job::slurp;
using namespace std::chrono_literals;

namespace {

/// A training job of one process, as far as a history sees it.
struct small_job {
  static constexpr edl::time_point start{};
  job::scratch dir;
  edl::master::coordinator decisions{{.training = {{"a", 6400}}}, start};
  edl::master::job_progress p;

  history_log make(std::uint64_t steps) {
    return {{.path = dir / "history.jsonl",
             .steps = steps,
             .rate = [](std::uint64_t version) { return 1.0 / double(version + 1); },
             .clock = [] { return 1.5; }},
            edl::logger(edl::severity::critical)};
  }
  /// Minibatches of 64 records up to this version, each with this loss.
  void train(std::uint64_t version, double loss) {
    for (; p.version < version; ++p.version) p.trained += {loss, 1, 64};
    p.done.records_done = 64 * version;
    p.workers = 1;
  }
};

}  // namespace

TEST_CASE("a line has the mean since the one before, and speeds by the clock that it is given") {
  small_job j;
  history_log log = j.make(10);
  log.look(j.decisions, j.p, j.start);
  CHECK_FALSE(log.due(9));
  j.train(5, 1);
  j.train(10, 3);
  CHECK(log.due(10));
  log.look(j.decisions, j.p, j.start + 2s);
  j.train(23, 5);
  log.look(j.decisions, j.p, j.start + 4s);
  j.train(29, 7);
  j.p.trained.words = 40, j.p.trained.unknown = 2;
  log.look(j.decisions, j.p, j.start + 5s);
  log.evaluated(j.decisions, 29, {{"accuracy", 0.5}, {"odd", std::numeric_limits<double>::infinity()}}, 512);
  log.close(j.decisions, j.p, j.start + 6s);
  log.close(j.decisions, j.p, j.start + 7s);
  CHECK(slurp(j.dir / "history.jsonl") ==
        "{\"step\":10,\"time\":1.500,\"epoch\":0,\"records\":640,\"loss\":2,\"learning_rate\":0.1,"
        "\"records_per_s\":320,\"steps_per_s\":5,\"workers\":1,\"servers\":0,\"lost\":0,\"repeated\":0,"
        "\"recovered\":0}\n"
        "{\"step\":23,\"time\":1.500,\"epoch\":0,\"records\":1472,\"loss\":5,\"learning_rate\":0.0434783,"
        "\"records_per_s\":416,\"steps_per_s\":6.5,\"workers\":1,\"servers\":0,\"lost\":0,\"repeated\":0,"
        "\"recovered\":0}\n"
        "{\"step\":29,\"time\":1.500,\"evaluated\":512,\"metrics\":{\"accuracy\":0.5,\"odd\":null}}\n"
        "{\"step\":29,\"time\":1.500,\"epoch\":0,\"records\":1856,\"loss\":7,\"learning_rate\":0.0344828,"
        "\"records_per_s\":192,\"steps_per_s\":3,\"workers\":1,\"servers\":0,\"lost\":0,\"repeated\":0,"
        "\"recovered\":0,\"words\":40,\"unknown_words\":2}\n");
  // Whoever reads histories shows these fields, and no others.
  std::istringstream lines(slurp(j.dir / "history.jsonl"));
  edl::train::job_feed read("run");
  edl::train::read_lines(j.dir / "history.jsonl", read);
  nlohmann::json const shown = nlohmann::json::parse(read.history());
  std::size_t n = 0;
  for (std::string line; std::getline(lines, line);) CHECK(shown.at(n++) == nlohmann::json::parse(line));
}

TEST_CASE("the last line has the members that made its steps, though they have left") {
  small_job j;
  history_log log = j.make(10);
  log.look(j.decisions, j.p, j.start);
  j.train(4, 1);
  j.p.workers = 3, j.p.servers = 2;
  log.look(j.decisions, j.p, j.start + 1s);
  j.train(7, 1);
  j.p.workers = j.p.servers = 0;
  log.close(j.decisions, j.p, j.start + 2s);
  CHECK(has(slurp(j.dir / "history.jsonl"), "\"workers\":3,\"servers\":2,"));
}

TEST_CASE("with 0 steps only evaluations have lines") {
  small_job j;
  history_log log = j.make(0);
  log.look(j.decisions, j.p, j.start);
  j.train(500, 1);
  CHECK_FALSE(log.due(500));
  log.look(j.decisions, j.p, j.start + 2s);
  log.evaluated(j.decisions, 500, {{"accuracy", 0.5}}, 512);
  log.close(j.decisions, j.p, j.start + 2s);
  CHECK(job::count(slurp(j.dir / "history.jsonl"), "\n") == 1);
}

TEST_CASE("a generation that goes back takes the lines of later steps away, one that loses nothing none") {
  using edl::master::role;
  small_job j;
  edl::master::coordinator c({.training = {{"a", 6400}}, .num_servers = 1}, j.start);
  history_log log = j.make(10);
  log.look(c, j.p, j.start);
  CHECK(slurp(j.dir / "history.jsonl") == "");  // nobody knows yet where it begins
  auto const serve = [&](std::uint64_t incarnation) {
    c.join({.role = role::server, .id = 0, .incarnation = incarnation}, j.start);
    c.server_configured(0, incarnation, c.generation(), "", j.start);
    REQUIRE(c.began_at().has_value());
  };
  serve(1);
  for (std::uint64_t step : {10, 20, 30, 40}) {
    j.train(step, 1);
    log.look(c, j.p, j.start + std::chrono::seconds(step));
  }
  log.evaluated(c, 30, {{"accuracy", 0.5}}, 512);
  c.left(role::server, 0, 1, j.start);
  CHECK_FALSE(c.began_at().has_value());
  c.restore_point_found(c.generation(), edl::master::restore_point{.directory = "d", .version = 20}, j.start);
  serve(2);
  j.p.version = 20;
  log.look(c, j.p, j.start + 50s);
  j.train(30, 9);
  log.look(c, j.p, j.start + 60s);
  log.close(c, j.p, j.start + 60s);
  auto const h = edl::app::read_history(j.dir / "history.jsonl");
  REQUIRE(h.rows.size() == 3);
  CHECK(h.rows.back().step == 30);
  CHECK(job::count(slurp(j.dir / "history.jsonl"), "\"loss\":9") == 1);
  CHECK(job::count(slurp(j.dir / "history.jsonl"), "metrics") == 0);
}

TEST_CASE("a job has the files that its flags name") {
  edl::train::program const p;
  edl::job j;
  CHECK(edl::train::history_options(j, p).path.empty());
  j.observe.tensorboard_log_dir = "t";
  CHECK(edl::train::history_options(j, p).events == "t");
  CHECK(edl::train::history_options(j, p).path.empty());
  j.checkpoints.checkpoint_dir = "c";
  CHECK(edl::train::history_options(j, p).path == "c/history.jsonl");
  j.dry_run = true;
  CHECK(edl::train::history_options(j, p).events.empty());
}

}  // namespace history_log_test

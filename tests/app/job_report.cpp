// SPDX-License-Identifier: Apache-2.0
#include "edl/app/job_report.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace job_report_test {

using namespace edl;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

master::job_options options() {
  master::job_options o;
  o.training = {{"t", 4000}};
  o.minibatch_size = 2;
  o.minibatches_per_task = 2;
  o.num_workers = 2;
  o.num_epochs = 2;
  o.replicas = true;
  return o;
}

}  // namespace

TEST_CASE("a report says how far a job is, how fast, at which sizes, and what a change has cost") {
  master::time_point now{};
  master::coordinator it(options(), now);
  json const nothing = json::parse(app::job_report(it, {.epochs = 2}));
  CHECK(nothing["records"] == 0);
  CHECK(nothing["total_records"] == 8000);
  CHECK(nothing["epochs"] == 2);
  CHECK(nothing["workers"] == 0);
  CHECK(nothing["seconds_left"].is_null());
  CHECK(nothing["speeds"].empty());

  auto const enter = [&](std::uint32_t id, std::uint64_t last, std::optional<master::copy_position> c = {}) {
    it.enter(id, {.incarnation = 1, .last = last, .copy = std::move(c), .suspect = {}}, now);
  };
  for (std::uint32_t id : {0, 1}) it.join({edl::role::worker, id, 1, {}, 5}, now);
  for (std::uint32_t id : {0, 1}) enter(id, 0);
  REQUIRE(it.ready());
  std::uint64_t records = 0;
  for (int i = 0; i < 10; ++i) {
    now += seconds(1);
    records += 4;
    for (std::uint32_t id : {0, 1}) {
      auto const t = it.request_task(id, 1, now);
      CHECK(it.report_task({.worker = id, .incarnation = 1, .lease = t.lease}, now));
      it.heartbeat(edl::role::worker, id, 1, {.version = 3, .records = records}, now);
    }
  }
  json const half = json::parse(app::job_report(it, {.epochs = 2}));
  CHECK(half["records"] == 80);
  CHECK(half["workers"] == 2);
  CHECK(half["speeds"] == json{{2, 8.0}});
  CHECK(half["records_per_s"].get<double>() == doctest::Approx(8).epsilon(0.2));
  CHECK(half["seconds_left"].get<double>() == doctest::Approx(990).epsilon(0.2));
  CHECK(half["standstill_s"] == 0);

  it.left(edl::role::worker, 1, 1, now);
  now += milliseconds(300);
  ledger done;
  done.set_closed(0, 0, 20);
  enter(0, 1, master::copy_position{9, done, 1});
  REQUIRE(it.ready());
  json const after = json::parse(app::job_report(it, {.epochs = 2}));
  CHECK(after["workers"] == 1);
  CHECK(after["standstill_s"] == 0.3);
  CHECK(after["speeds"] == half["speeds"]);
  CHECK(json::parse(app::job_report(it, {.epochs = -1}))["epochs"] == 0);
}

TEST_CASE("a report has the last evaluation, and the last report says that it is one") {
  master::time_point const now{};
  master::coordinator const it(options(), now);
  json const before = json::parse(app::job_report(it, {}));
  CHECK_FALSE(before.contains("evaluation"));
  CHECK_FALSE(before.contains("over"));
  json const last = json::parse(app::job_report(
      it, {.evaluation = {{96, {{"accuracy", 0.975}, {"loss", std::numeric_limits<double>::quiet_NaN()}}}},
           .over = true}));
  CHECK(last["evaluation"] == json{{"version", 96}, {"metrics", {{"accuracy", 0.975}, {"loss", nullptr}}}});
  CHECK(last["over"] == true);
}

TEST_CASE("a report has the job's curve in few lines, whatever the history is like") {
  master::coordinator const it(options(), {});
  CHECK_FALSE(json::parse(app::job_report(it, {})).contains("history"));
  json const told = json::parse(app::job_report(
      it,
      {.history =
           R"([{"step":10,"time":1.5,"loss":0.5,"learning_rate":0.1,"records_per_s":9,"workers":2,"lost":0},)"
           R"({"step":10,"evaluated":5,"metrics":{"accuracy":0.5}}])"}));
  CHECK(told["history"] ==
        json::parse(R"([{"step":10,"loss":0.5,"learning_rate":0.1,"records_per_s":9,"workers":2},)"
                    R"({"step":10,"metrics":{"accuracy":0.5}}])"));
  std::string many = "[";
  for (int i = 0; i < 500; ++i)
    many += (i ? "," : "") + json{{"step", i}, {"metrics", {{std::string(50, 'a'), 0.5}}}}.dump();
  std::string const report = app::job_report(it, {.history = many + "]"});
  CHECK(report.size() < 10'000);
  json const kept = json::parse(report)["history"];
  CHECK(kept.size() > 20);
  CHECK(kept.back()["step"] == 499);
  std::string const long_line = json{{"step", 1}, {"metrics", {{std::string(20'000, 'a'), 0.5}}}}.dump();
  CHECK(json::parse(app::job_report(it, {.history = "[" + long_line + "]"}))["history"].empty());
}

}  // namespace job_report_test

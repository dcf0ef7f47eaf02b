// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/dashboard/job_facts.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace job_facts_test {

using nlohmann::json;
using namespace std::chrono_literals;
using edl::role;

namespace {

constexpr edl::master::time_point start{};
std::function<std::string(edl::process_id)> const nobody_knows,
    pods = [](edl::process_id who) { return "digits-" + to_string(who); };

struct asked {
  edl::job j;
  edl::master::coordinator decisions;
  explicit asked(std::uint32_t servers, std::uint32_t workers)
      : decisions(
            {.training = {{"t", 6400}}, .num_epochs = 3, .num_workers = workers, .num_servers = servers},
            start) {
    j.name = "digits";
    j.data.num_epochs = 3;
    j.strategy = servers + workers > 1 ? edl::strategy::parameter_server : edl::strategy::local;
  }
  json facts(edl::master::time_point now, bool stopped = false, bool known = false) const {
    auto const p = decisions.progress();
    return json::parse(edl::train::to_json(
        edl::train::job_facts{.config = j,
                              .decisions = decisions,
                              .at = p,
                              .now = now,
                              .time = 1000 + std::chrono::duration<double>(now - start).count(),
                              .since = 1000,
                              .steps_per_s = 2.5,
                              .stuck = false,
                              .stopped = stopped,
                              .host = "here",
                              .place = known ? pods : nobody_knows}));
  }
};

}  // namespace

TEST_CASE("a job of processes tells who is there, who is awaited, and what it waits for") {
  asked a(1, 2);
  json now = a.facts(start);
  CHECK(now["name"] == "digits");
  CHECK(now["state"] == "gathering");
  CHECK(now["waits_for"].get<std::string>() != "");
  CHECK(now["total_records"] == 19200);
  CHECK(now["epochs"] == 3);
  CHECK(now["steps_per_s"] == 2.5);
  CHECK(now["seconds_left"].is_null());
  CHECK(now["loss"].is_null());
  REQUIRE(now["processes"].size() == 4);
  CHECK(now["processes"][0]["process"] == "master");
  CHECK(now["processes"][0]["address"] == "here");
  CHECK(now["processes"][1]["process"] == "ps-0");
  CHECK(now["processes"][1]["state"] == "awaited");
  CHECK(now["processes"][3]["process"] == "worker-1");
  a.decisions.join({.role = role::worker,
                    .id = 1,
                    .incarnation = 0xfeed,
                    .addresses = {"unix:@x", "tcp:10.0.0.1:1\xff!ps-0/1"}},
                   start + 1s);
  now = a.facts(start + 3s);
  json const& worker = now["processes"][2];
  CHECK(worker["process"] == "worker-1");
  CHECK(worker["state"] == "running");
  CHECK(worker["incarnation"] == "000000000000feed");
  CHECK(worker["address"] == "10.0.0.1:1?");
  CHECK(worker["joined"] == 1001);
  CHECK(worker["heard_s"] == 2);
  CHECK(now["processes"][3]["process"] == "worker-0");
  CHECK(a.facts(start + 3s, false, true)["processes"][2]["address"] == "digits-worker-1, 10.0.0.1:1?");
}

TEST_CASE("a job that fails or is stopped says so, and waits for nothing") {
  asked a(1, 1);
  CHECK(a.facts(start, true)["state"] == "stopped");
  CHECK(a.facts(start, true)["waits_for"] == "");
  a.decisions.fail("the disk is full");
  json const now = a.facts(start, true);
  CHECK(now["state"] == "failed");
  CHECK(now["reason"] == "the disk is full");
  CHECK(now["waits_for"] == "");
  CHECK(now["processes"].size() == 1);
}

TEST_CASE("a job in one process is one row") {
  asked a(0, 1);
  a.decisions.join({.role = role::worker}, start);
  json const now = a.facts(start);
  CHECK(now["state"] == "training");
  REQUIRE(now["processes"].size() == 1);
  CHECK(now["processes"][0]["process"] == "local");
  CHECK(now["account"] == json{{"records_counted", 0},
                               {"records_skipped", 0},
                               {"members_lost", 0},
                               {"tasks_repeated", 0},
                               {"tasks_recovered", 0},
                               {"epochs", json::array()}});
}

TEST_CASE("of very many processes the rest is counted") {
  asked a(1, 1500);
  json const now = a.facts(start);
  CHECK(now["processes"].size() == 1000);
  CHECK(now["processes_left_out"] == 502);
}

TEST_CASE("what has happened keeps its words, whatever bytes they are") {
  std::string const text = edl::train::to_json(
      edl::master::log_line{edl::severity::warning, "a\n\"</script>\xff", edl::master::topic::lost}, 12.3456);
  CHECK(text.find('\n') == text.npos);
  CHECK(json::parse(text) ==
        json{{"time", 12.346}, {"kind", "lost"}, {"severity", "warning"}, {"text", "a \"</script>?"}});
}

}  // namespace job_facts_test

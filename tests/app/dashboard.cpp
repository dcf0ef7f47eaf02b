// SPDX-License-Identifier: Apache-2.0
// The page of whole jobs; what it is made of is looked at in tests/job/train/dashboard.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "app/tiny_job.hpp"
#include "base/http/client.hpp"

namespace app_dashboard_test {

using namespace tiny;
using nlohmann::json;

namespace {

std::uint16_t port_of(job::run& j) {
  std::string const before = "dashboard: http://127.0.0.1:";
  REQUIRE(j.says(before));
  std::string const log = j.log();
  return std::uint16_t(std::stoul(log.substr(log.find(before) + before.size())));
}

std::string get(std::string const& path) { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"; }

json ask(std::uint16_t port, std::string const& path) {
  std::string const answer = http_client::ask(port, get(path));
  return json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
}

}  // namespace

TEST_CASE("a job's page tells of a killed worker and of its successor as it happens, and of the end") {
  job::run j(cluster(1, 2,
                     {"--num_epochs=3", "--dashboard=0", "--validation_data=" + job::data().validation,
                      "--evaluation_steps=50", "--history_steps=10"}),
             held);
  std::uint16_t const port = port_of(j);
  http_client::connection live(port);
  live.say(get("/api/live"));
  CHECK(has(live.until("worker 1 joined\""), "event: reset\n"));
  reach_middle(j, 1);
  ::kill(j.find("worker", 1), SIGKILL);
  CHECK(has(live.until("worker 1 is lost"), "\"kind\":\"lost\""));
  live.until("worker 2 is started to replace 1\"");
  live.until("worker 2 joined\"");
  live.until("\"members_lost\":1");
  std::string const events = http_client::ask(port, get("/api/events"));
  CHECK(has(events, "\"kind\":\"replaced\""));
  json const job = ask(port, "/api/job");
  CHECK(job["state"] == "training");
  CHECK(job["account"]["members_lost"] == 1);
  CHECK(job["total_records"] == 3 * 2048);
  j.open_gate();
  std::string const rest = live.rest();
  CHECK(has(rest, "event: line\n"));
  CHECK(has(rest, "\"kind\":\"evaluation\""));
  CHECK(has(rest, "\"metrics\":"));
  CHECK(has(rest, "\"state\":\"finished\""));
  CHECK(has(rest, "\"records_counted\":6144"));
  CHECK(has(rest, "event: end\n"));
  CHECK(j.wait() == 0);
}

TEST_CASE("a job in one process has the same page, with lines though it keeps no history") {
  job::run j(train({"--num_epochs=2", "--dashboard=0", "--history_steps=2", "--log_level=INFO"}), held);
  std::uint16_t const port = port_of(j);
  http_client::connection live(port);
  live.say(get("/api/live"));
  live.until("event: line\n");
  CHECK(ask(port, "/api/history")[0]["step"] == 2);
  CHECK(ask(port, "/api/job")["processes"][0]["process"] == "local");
  ::kill(j.pid(), SIGINT);
  std::string const rest = live.rest();
  CHECK(has(rest, "\"state\":\"stopped\""));
  CHECK(has(rest, "event: end\n"));
  CHECK(j.wait() == 128 + SIGINT);
}

TEST_CASE("a job in one process shows the worst records of its last evaluation, if it is asked to") {
  job::run j(train({"--num_epochs=2", "--dashboard=0", "--worst=3", "--evaluation_steps=2",
                    "--validation_data=" + job::data().validation}),
             held);
  std::uint16_t const port = port_of(j);
  http_client::connection live(port);
  live.say(get("/api/live")).until("\"worst\":2");
  json const worst = ask(port, "/api/worst");
  CHECK(worst["version"] >= 2);
  REQUIRE(worst["records"].size() == 3);
  CHECK(worst["records"][0]["loss"] >= worst["records"][2]["loss"]);
  CHECK(worst["records"][0].contains("label"));
  ::kill(j.pid(), SIGINT);
  CHECK(j.wait() == 128 + SIGINT);
  job::run none(train({"--worst=3"}));
  CHECK(none.wait() == 1);
  CHECK(has(none.log(), "--worst: a training shows these records on its page: add --dashboard=PORT"));
}

TEST_CASE("a job of several processes shows the worst records that its workers have found") {
  lines const more{"--dashboard=0", "--worst=3", "--evaluation_steps=2",
                   "--validation_data=" + job::data().validation};
  for (lines const& line : {cluster(1, 2, more), replicas(2, more)}) {
    job::run j(line, held);
    std::uint16_t const port = port_of(j);
    http_client::connection live(port);
    live.say(get("/api/live")).until("\"worst\":2");
    json const worst = ask(port, "/api/worst");
    INFO(worst.dump());
    CHECK(worst["version"] >= 2);
    REQUIRE(worst["records"].size() == 3);
    CHECK(worst["records"][0]["loss"] >= worst["records"][1]["loss"]);
    CHECK(worst["records"][1]["loss"] >= worst["records"][2]["loss"]);
    CHECK(worst["records"][0].contains("label"));
    j.open_gate();
    CHECK(j.wait() == 0);
  }
}

TEST_CASE("a page for others says in the log which token it wants") {
  job::run j(train({"--dashboard=0", "--dashboard_host=0.0.0.0"}), held);
  REQUIRE(j.says("/?token="));
  job::run given(train({"--dashboard=0", "--dashboard_host=0.0.0.0"}),
                 {.env = {{"TINY_DELAY_US", "20000"}, {"EDL_JOB_TOKEN", "a-secret-of-many-letters"}}});
  REQUIRE(given.says("dashboard: http://0.0.0.0:"));
  CHECK_FALSE(has(given.log(), "?token="));
  CHECK_FALSE(has(given.log(), "a-secret"));
}

TEST_CASE("a page speaks TLS, where there is a certificate") {
  job::scratch const dir;
  std::string const key = dir / "key.pem", chain = dir / "chain.pem";
  REQUIRE(
      std::system(("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "
                   "/CN=localhost -keyout " +
                   key + " -out " + chain + " >/dev/null 2>&1")
                      .c_str()) == 0);
  job::run half(train({"--dashboard=0", "--dashboard_key=" + key}));
  CHECK(half.wait() != 0);
  CHECK(has(half.log(), "--dashboard_certificate and --dashboard_key belong together"));
  job::run j(train({"--dashboard=0", "--dashboard_certificate=" + chain, "--dashboard_key=" + key}), held);
  std::string const before = "dashboard: https://127.0.0.1:";
  REQUIRE(j.says(before));
  std::string const log = j.log(), port = log.substr(log.find(before) + before.size());
  CHECK(std::system(
            ("curl -s --cacert " + chain + " --resolve localhost:" + std::to_string(std::stoul(port)) +
             ":127.0.0.1 https://localhost:" + std::to_string(std::stoul(port)) + "/ | grep -q '<title>'")
                .c_str()) == 0);
}

}  // namespace app_dashboard_test

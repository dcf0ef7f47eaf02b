// SPDX-License-Identifier: Apache-2.0
// The page over a cluster's jobs.
#include "cluster_job.hpp"
#include "job/http/client.hpp"

namespace dashboards_test {

using namespace cluster_job;

namespace {

std::string get(std::string const& path) { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"; }

json ask(std::uint16_t port, std::string const& path) {
  std::string const answer = http_client::ask(port, get(path));
  return json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
}

}  // namespace

TEST_CASE(
    "edl dashboard lists a cluster's jobs as they change, and tells one with its curve and its events") {
  laboratory it;
  job::run page({"dashboard"}, {.env = {{"KUBECONFIG", it.cluster.kubeconfig()}}, .program = EDL_TOOL});
  REQUIRE(page.says("http://127.0.0.1:"));
  std::string const log = page.log();
  auto const port = std::uint16_t(std::stoul(log.substr(log.find("127.0.0.1:") + 10)));
  CHECK(ask(port, "/api/about")["where"] == "namespace default");
  http_client::connection live(port);
  live.say(get("/api/live")).until("event: reset\n");
  REQUIRE(it.train({"--distribution_strategy=ParameterServerStrategy", "--num_ps_pods=1", "--num_workers=2",
                    "--history_steps=10", "--evaluation_steps=20", "--validation_data=/data/test"},
                   held)
              .code == 0);
  live.until("\"status\":\"Running\"");
  REQUIRE(it.says("worker-0", "Loss = "));
  it.cluster.remove("/api/v1/namespaces/default/pods/elasticdl-j-worker-1");
  CHECK(it.reaches("worker-2", "Running"));
  it.check_exact();
  live.until("\"status\":\"Finished\"");
  json const jobs = ask(port, "/api/runs");
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0]["id"] == "j");
  CHECK(jobs[0]["version"] > 0);
  CHECK(jobs[0]["loss"].is_number());
  CHECK(jobs[0]["metrics"]["accuracy"].is_number());
  json const one = ask(port, "/api/runs/j");
  CHECK(one["lines"].size() > 2);
  CHECK(one["pods"].size() >= 3);
  CHECK(job::has(one["before"].dump(), "worker-2"));
  CHECK(ask(port, "/api/runs/none").contains("error"));
  it.cluster.remove("/api/v1/namespaces/default/pods/elasticdl-j-master");
  live.until("\"gone\":true");
  ::kill(page.pid(), SIGTERM);
  CHECK(page.wait() == 0);
}

}  // namespace dashboards_test

// SPDX-License-Identifier: Apache-2.0
// The page over a cluster's jobs, and the history of one.
#include <filesystem>
#include <fstream>

#include "base/http/client.hpp"
#include "shared_cluster.hpp"

namespace dashboards_test {

using namespace cluster_job;

namespace {

std::string get(std::string const& path) { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"; }

json ask(std::uint16_t port, std::string const& path) {
  std::string const answer = http_client::ask(port, get(path));
  return json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
}

/// `edl dashboard` in a cluster, and where it listens.
struct served_page {
  explicit served_page(laboratory& of)
      : command({"dashboard"}, {.env = {{"KUBECONFIG", of.cluster.kubeconfig()}}, .program = EDL_TOOL}) {
    REQUIRE(command.says("http://127.0.0.1:"));
    std::string const log = command.log();
    port = std::uint16_t(std::stoul(log.substr(log.find("127.0.0.1:") + 10)));
  }
  json ask(std::string const& path) const { return dashboards_test::ask(port, path); }

  job::run command;
  std::uint16_t port = 0;
};

}  // namespace

TEST_CASE(
    "edl dashboard lists a cluster's jobs as they change, and tells one with its curve and its events") {
  laboratory it;
  served_page page(it);
  CHECK(page.ask("/api/about")["where"] == "namespace default");
  http_client::connection live(page.port);
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
  json const jobs = page.ask("/api/runs");
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0]["id"] == "j");
  CHECK(jobs[0]["version"] > 0);
  CHECK(jobs[0]["loss"].is_number());
  CHECK(jobs[0]["metrics"]["accuracy"].is_number());
  json const one = page.ask("/api/runs/j");
  CHECK(one["lines"].size() > 2);
  CHECK(one["pods"].size() >= 3);
  CHECK(job::has(one["before"].dump(), "worker-2"));
  CHECK(page.ask("/api/runs/none").contains("error"));
  it.cluster.remove("/api/v1/namespaces/default/pods/elasticdl-j-master");
  live.until("\"gone\":true");
  ::kill(page.command.pid(), SIGTERM);
  CHECK(page.command.wait() == 0);
}

TEST_CASE(
    "edl dashboard tells why a TrainingJob waits and has its size; edl history reads it, though its pods are "
    "gone") {
  shared_cluster it("6");
  served_page page(it);
  http_client::connection live(page.port);
  live.say(get("/api/live")).until("event: reset\n");
  json const flags{"--training_data=/data/train",  "--minibatch_size=32",
                   "--num_minibatches_per_task=1", "--num_epochs=20",
                   "--history_steps=10",           "--checkpoint_dir=/data/looked_at",
                   "--validation_data=/data/test", "--evaluation_steps=100"};
  it.submit("a", 1, 4, 4, held, {{"flags", flags}});
  INFO(it.log_of_controller());
  REQUIRE(it.becomes([&] { return it.running("a") == 4; }));
  it.submit("b", 1, 1, 9, held);  // for which the other job has to shrink
  REQUIRE(it.becomes([&] { return it.running("b") == 1 && it.running("a") == 1; }));
  it.submit("c", 3, 3, 1, 0);
  live.until("NoRoom");
  json const c = page.ask("/api/runs/c");
  CHECK(job::has(c["now"].dump(), "NoRoom"));
  CHECK(c["pods"].empty());
  it.cluster.remove(jobs + "/c");
  live.until("\"gone\":true");
  json a;
  CHECK(job::eventually([&] { return !(a = page.ask("/api/runs/a"))["lines"].empty(); }));
  INFO(a.dump(1));
  json const shrunk = a["training_job"]["scaleRecords"][0];
  CHECK(shrunk["from"] == 4);
  CHECK(shrunk["to"] == 1);
  std::string const why = shrunk["reason"];
  CHECK_FALSE(why.empty());
  CHECK(job::has(a["before"].dump(), "its workers became 1 instead of 4"));
  CHECK(job::has(a["training_job"]["conditions"].dump(), "Admitted"));
  CHECK(a["pods"].size() >= 3);
  // The job's own log, and so its page, knows the reason as well.
  CHECK(job::has(it.cluster.log("default", "elasticdl-a-master"), "Scaling from 4 to 1 worker: " + why));
  it.release();
  CHECK(it.becomes([&] { return it.phase("a") == "succeeded"; }, 120s));
  live.until("\"status\":\"Finished\"");
  json const row = page.ask("/api/runs").at(0);
  CHECK(row["kind"] == "TrainingJob");
  CHECK(row["range"] == "1-4");
  CHECK(row["metrics"]["accuracy"].is_number());
  CHECK(job::has(page.ask("/api/runs/a")["before"].dump(), "has succeeded"));

  auto const table = it.edl({"history", "a"});
  INFO(table.text);
  CHECK(table.code == 0);
  CHECK(job::has(table.text, "ACCURACY"));
  std::string const file =
      (std::filesystem::path(job::data().training).parent_path() / "looked_at/history.jsonl").string();
  std::ofstream(file, std::ios::app) << "torn {\n{\"step\":100000,\"loss\":0.5}\n";
  it.cluster.remove("/api/v1/namespaces/default/pods/elasticdl-a-master");
  auto const damaged = it.edl({"history", "a", "-o", "csv"});
  INFO(damaged.text);
  CHECK(damaged.code == 0);
  CHECK(job::has(damaged.text, "\n100000,"));
  CHECK(job::has(damaged.text, "1 line of no history is left out"));
  job::scratch const out;
  auto const drawn = it.edl({"history", "a", "--plot=" + (out / "a.svg")});
  INFO(drawn.text);
  CHECK(drawn.code == 0);
  CHECK(job::has(job::slurp(out / "a.svg"), "a: training"));
  auto const none = it.edl({"history", "none"});
  CHECK(none.code == 1);
  CHECK(job::has(none.text, "no job 'none'"));
}

}  // namespace dashboards_test

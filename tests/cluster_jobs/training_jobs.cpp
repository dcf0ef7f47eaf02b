// SPDX-License-Identifier: Apache-2.0
// Jobs that share a cluster: the controller and all pods are real processes beside a double of the API
// server.
#include <fmt/format.h>

#include <random>
#include <set>

#include "edl/core/wall_time.hpp"
#include "shared_cluster.hpp"

namespace training_jobs_test {

using namespace cluster_job;

namespace {

json service(int replicas) {
  json const container{{"name", "web"},
                       {"image", "web:1"},
                       {"imagePullPolicy", "Never"},
                       {"resources", {{"requests", {{"cpu", "1"}, {"memory", "64Mi"}}}}}};
  json const labels{{"app", "web"}};
  return {{"apiVersion", "apps/v1"},
          {"kind", "Deployment"},
          {"metadata", {{"name", "web"}}},
          {"spec",
           {{"replicas", replicas},
            {"selector", {{"matchLabels", labels}}},
            {"template",
             {{"metadata", {{"labels", labels}}},
              {"spec", {{"terminationGracePeriodSeconds", 1}, {"containers", json::array({container})}}}}}}}};
}

}  // namespace

TEST_CASE(
    "a TrainingJob of real processes is let in, grows into what is free, and ends with every record counted "
    "once") {
  shared_cluster it("6");
  it.submit("a", 1, 3, 2, 400);
  INFO(it.log_of_controller());
  CHECK(it.becomes([&] { return it.running("a") == 3; }));
  CHECK(it.becomes([&] { return it.phase("a") == "succeeded"; }, 120s));
  it.check_exact_job("a", 2);
  CHECK(it.status("a")["attempts"] == 1);
  CHECK(it.status("a")["scaleRecords"][0]["to"] == 3);
}

TEST_CASE(
    "workers move to the pool of nodes that has become the cheapest, and no record is lost or repeated") {
  auto const prices = std::filesystem::path(job::data().training).parent_path() / "prices.json";
  auto const set = [&](char const* text) {
    std::ofstream(prices.string() + ".new") << text;
    std::filesystem::rename(prices.string() + ".new", prices);
  };
  auto o = small_cluster("8");
  o.nodes[0].labels = {{"pool", "base"}};
  for (char const* name : {"a", "b", "on-demand"})
    o.nodes.push_back({.name = name, .cpu = "4", .memory = "64Gi", .labels = {{"pool", name}}});
  set(R"({"a": 1, "b": 2})");
  shared_cluster it(o, {"--prices=" + prices.string()});
  auto const in = [](char const* pool) { return json{{"nodeSelector", {{"pool", pool}}}}; };
  json const base{{"template", {{"spec", in("base")}}}};
  json const spot{{"deadline", edl::stamp_of(edl::wall_seconds() + 36'000)},
                  {"onDemand", {{"nodeSelector", {{"pool", "on-demand"}}}, {"usdPerHour", 9}}},
                  {"pools",
                   {{{"name", "a"}, {"nodeSelector", {{"pool", "a"}}}, {"usdPerHour", 5}},
                    {{"name", "b"}, {"nodeSelector", {{"pool", "b"}}}, {"usdPerHour", 5}}}}};
  auto const nodes = [&](std::string const& name) {
    std::multiset<std::string> all;
    json const list =
        it.cluster.get("/api/v1/namespaces/default/pods?labelSelector=elasticdl-job-name=" + name +
                       ",elasticdl-replica-type=worker");
    for (json const& p : list["items"])
      if (p["status"].value("phase", "") == "Running") all.insert(p["spec"].value("nodeName", ""));
    return all;
  };
  it.submit("servers", 2, 2, 12, 8000, {{"master", base}, {"servers", base}, {"spot", spot}});
  it.submit("copies", 2, 2, 12, 8000,
            {{"master", base}, {"servers", nullptr}, {"strategy", "AllreduceStrategy"}, {"spot", spot}});
  INFO(it.log_of_controller());
  std::multiset<std::string> const both_a{"a", "a"}, both_b{"b", "b"};
  for (char const* name : {"servers", "copies"}) {
    CAPTURE(name);
    INFO(it.status(name).dump());
    REQUIRE(it.becomes([&] {
      return nodes(name) == both_a && it.status(name).value("/progress/records"_json_pointer, 0) > 0;
    }));
  }
  set(R"({"a": 3, "b": 1})");
  for (char const* name : {"servers", "copies"}) {
    CAPTURE(name);
    INFO(it.status(name).dump());
    CHECK(it.becomes([&] { return nodes(name) == both_b; }));
  }
  it.release();
  for (char const* name : {"servers", "copies"}) {
    CAPTURE(name);
    CHECK(it.becomes([&] { return it.phase(name) == "succeeded"; }, 120s));
    it.check_exact_job(name, 12);
    json const status = it.status(name);
    CHECK(status["spot"]["pool"] == "b");
    CHECK(status["spot"]["usd"] > 0);
    CHECK(status.value("restarts", 0) == 0);
  }
  CHECK(job::has(it.edl({"describe", "servers"}).text, "Pool:"));
  std::filesystem::remove(prices);
}

TEST_CASE("TrainingJobs that evaluate and predict without servers have none, and end") {
  shared_cluster it("6");
  auto const data = std::filesystem::path(job::data().training).parent_path();
  job::run made({"train", "--training_data=" + job::data().training, "--max_step=2",
                 "--output=" + (data / "for_evaluation").string()});
  REQUIRE(made.wait() == 0);
  json const without{{"strategy", nullptr}, {"servers", nullptr}};
  json evaluates = without, predicts = without;
  evaluates["command"] = "evaluate";
  evaluates["flags"] = {"--validation_data=/data/train", "--checkpoint_dir_for_init=/data/for_evaluation"};
  predicts["command"] = "predict";
  predicts["flags"] = {"--prediction_data=/data/train", "--checkpoint_dir_for_init=/data/for_evaluation",
                       "--prediction_outputs=/data/predicted"};
  it.submit("evaluates", 1, 1, 1, 0, evaluates);
  it.submit("predicts", 1, 1, 1, 0, predicts);
  INFO(it.log_of_controller());
  for (char const* name : {"evaluates", "predicts"}) {
    CAPTURE(name);
    CHECK(it.becomes([&] { return it.phase(name) == "succeeded"; }, 120s));
    INFO(it.cluster.log("default", fmt::format("elasticdl-{}-master", name)));
    CHECK(it.status(name)["servers"]["desired"] == 0);
    CHECK(it.cluster.log("default", fmt::format("elasticdl-{}-ps-0", name)).empty());
  }
}

TEST_CASE(
    "two jobs and a service share a cluster, and the controller is killed meanwhile; no record is lost or "
    "repeated") {
  shared_cluster it("12");  // two masters, two servers, eight for workers and the service
  it.submit("a", 1, 6, 30, 8000);
  INFO("controller: " << it.log_of_controller());
  REQUIRE(it.becomes([&] { return it.running("a") == 6; }));
  it.submit("b", 1, 6, 30, 8000);
  REQUIRE(it.becomes([&] { return it.running("b") >= 1; }));
  REQUIRE(it.becomes([&] { return it.running("a") == 4 && it.running("b") == 4; }));

  // The service's burst; the controller is killed at some moment of it, decided by a seed.
  std::minstd_rand draw(7);
  for (int round = 0; round < 2; ++round) {
    CAPTURE(round);
    auto const began = std::chrono::steady_clock::now();
    it.cluster.post("/apis/apps/v1/namespaces/default/deployments", service(4));
    if (round > 0) {
      std::size_t const wanted = 1 + draw() % 3;
      it.becomes([&] {
        return it.cluster.get("/api/v1/namespaces/default/pods?labelSelector=app=web")["items"].size() >=
               wanted;
      });
      it.kill_controller();
      it.start_controller();
    }
    auto const served = [&] {
      int n = 0;
      json const list = it.cluster.get("/api/v1/namespaces/default/pods?labelSelector=app=web");
      for (json const& p : list["items"]) n += p["status"].value("phase", "") == "Running";
      return n;
    };
    CHECK(it.becomes([&] { return served() == 4; }));
    MESSAGE((round > 0 ? "with the controller killed: " : "")
            << "the service's 4 pods ran after "
            << std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() << " s");
    CHECK(it.running("a") >= 1);
    CHECK(it.running("b") >= 1);
    it.cluster.remove("/apis/apps/v1/namespaces/default/deployments/web");
    CHECK(it.becomes([&] { return it.running("a") == 4 && it.running("b") == 4; }));
  }
  CHECK(it.becomes([&] { return it.phase("a") == "succeeded" && it.phase("b") == "succeeded"; }, 180s));
  it.check_exact_job("a", 30);
  it.check_exact_job("b", 30);
  for (char const* name : {"a", "b"}) {
    CHECK(it.status(name)["attempts"] == 1);
    CHECK(it.status(name).value("restarts", 0) == 0);
  }
}

}  // namespace training_jobs_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/training_job.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "edl/core/error.hpp"
#include "edl/core/wall_time.hpp"

namespace training_job_test {

using namespace edl::kubernetes;
using nlohmann::json;

namespace {

json pod_template() {
  return R"({"metadata": {"labels": {"team": "a"}}, "spec": {"containers": [{"name": "main", "image": "edl:mnist"}]}})"_json;
}

json mnist() {
  json j = R"({"apiVersion": "elasticdl.org/v1alpha1", "kind": "TrainingJob",
    "metadata": {"name": "mnist", "namespace": "team", "uid": "u-1", "resourceVersion": "7", "generation": 2,
      "creationTimestamp": "2026-11-22T10:00:00Z", "labels": {"a": "b"},
      "annotations": {"note": "c", "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
    "spec": {"model": "mnist_functional_api", "flags": ["--num_epochs=2"], "servers": {"replicas": 2},
      "workers": {"min": 1, "max": 8, "replicas": 4}, "ttlSecondsAfterFinished": 0}})"_json;
  for (char const* role : {"master", "servers", "workers"}) j["spec"][role]["template"] = pod_template();
  return j;
}

/// What is said of the job with another value at one place; null removes it.
std::string refused(char const* at, json const& value) {
  json j = mnist();
  json::json_pointer const place(at);
  if (value.is_null())
    j[place.parent_pointer()].erase(place.back());
  else
    j[place] = value;
  try {
    read_training_job(j);
  } catch (edl::error const& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a TrainingJob is read: what it says, and the defaults where it says nothing") {
  json object = mnist();
  object["spec"]["future"] = {{"unknown", 1}};
  training_job const j = read_training_job(object);
  CHECK(title(j) == "team/mnist");
  CHECK(j.uid == "u-1");
  CHECK(j.resource_version == "7");
  CHECK(j.generation == 2);
  CHECK(j.created == "2026-11-22T10:00:00Z");
  CHECK(j.deleted.empty());
  CHECK(j.labels.at("a") == "b");
  CHECK(j.annotations == std::map<std::string, std::string>{{"note", "c"}});
  CHECK(j.ours());
  CHECK_FALSE(j.finished());
  training_job_spec const& s = j.spec;
  CHECK(s.command == "train");
  CHECK(s.strategy == "ParameterServerStrategy");
  CHECK(s.model == "mnist_functional_api");
  CHECK(s.flags == std::vector<std::string>{"--num_epochs=2"});
  CHECK(json::parse(s.worker) == pod_template());
  CHECK(s.servers == 2);
  CHECK(s.workers.min == 1);
  CHECK(s.workers.max == 8);
  CHECK(s.workers.replicas == 4u);
  CHECK(s.backoff_limit == 3);
  CHECK_FALSE(s.active_deadline_seconds);
  CHECK(s.ttl_seconds_after_finished == 0u);
  CHECK_FALSE(s.suspend);
}

TEST_CASE("without servers a job sums its gradients, and Local is a job of one worker") {
  json j = mnist();
  j["spec"].erase("servers");
  CHECK(read_training_job(j).spec.strategy == "AllreduceStrategy");
  j["spec"]["strategy"] = "Local";
  CHECK_THROWS_WITH(read_training_job(j), "team/mnist: spec.workers.max is 8: Local is a job of one worker");
  j["spec"]["workers"].update({{"max", 1}, {"replicas", 1}});
  CHECK(read_training_job(j).spec.strategy == "AllreduceStrategy");
  j["spec"]["strategy"] = "ParameterServerStrategy";
  CHECK_THROWS_WITH(
      read_training_job(j),
      "team/mnist: spec.servers.replicas is 0: ParameterServerStrategy needs a server at least");
  CHECK(refused("/spec/strategy", "AllreduceStrategy") ==
        "team/mnist: spec.servers.replicas is 2: AllreduceStrategy has no servers");
}

TEST_CASE("what no job can be is refused with the job, the field and what is expected") {
  CHECK(refused("/spec/workers/min", 0) ==
        "team/mnist: spec.workers.min is 0: expected a whole number from 1 to 10000");
  CHECK(refused("/spec/workers/max", nullptr) ==
        "team/mnist: spec.workers.max is missing: expected a whole number from 1 to 10000");
  CHECK(refused("/spec/workers/max", 18446744073709551615u).ends_with("from 1 to 10000"));
  CHECK(refused("/spec/workers/max", 2.5).ends_with("from 1 to 10000"));
  CHECK(refused("/spec/workers/min", 9) ==
        "team/mnist: spec.workers.min is 9: expected at most spec.workers.max, which is 8");
  CHECK(refused("/spec/workers/replicas", 9) ==
        "team/mnist: spec.workers.replicas is 9: expected a whole number from 1 to 8");
  CHECK(refused("/spec/servers/replicas", -1).ends_with("from 0 to 1000"));
  CHECK(refused("/spec/command", "fit") ==
        "team/mnist: spec.command is 'fit': expected train, evaluate, predict");
  CHECK(refused("/spec/model", nullptr).starts_with("team/mnist: spec.model is missing"));
  CHECK(refused("/spec/flags", json(std::vector<std::string>(101, "-"))) ==
        "team/mnist: spec.flags is a list of 101: expected a list of at most 100 strings");
  CHECK(refused("/spec/flags/0", std::string(4097, 'x')) ==
        "team/mnist: spec.flags[0] has 4097 bytes: expected a string of at most 4096");
  CHECK(refused("/spec/flags/0", 5) == "team/mnist: spec.flags[0] is 5: expected a string");
  CHECK(refused("/spec/suspend", "yes") == "team/mnist: spec.suspend is \"yes\": expected true or false");
  CHECK(refused("/spec/master/template", nullptr).starts_with("team/mnist: spec.master.template is missing"));
  CHECK(
      refused("/spec/servers/template", nullptr).starts_with("team/mnist: spec.servers.template is missing"));
  CHECK(refused("/spec/workers/template/spec/containers", json::array())
            .starts_with("team/mnist: spec.workers.template.spec.containers is missing"));
  CHECK(refused("/spec/workers/template/spec/x", std::string(110'000, 'x'))
            .starts_with("team/mnist: spec.workers.template takes 1101"));
  CHECK(refused("/spec/activeDeadlineSeconds", 0).ends_with("from 1 to 1000000000"));
  CHECK(
      refused("/metadata/name", std::string(41, 'a')).ends_with("lower case letters, digits and '-' inside"));
  CHECK(refused("/metadata/name", "a.b").ends_with("lower case letters, digits and '-' inside"));
  CHECK(refused("/metadata/labels", {{"a", 1}}) ==
        "team/mnist: metadata.labels.a is not a string: put it in quotes");
  CHECK(refused("/kind", "Job") == "team/mnist: kind is 'Job': expected TrainingJob");
  CHECK(refused("/spec", json::array()) == "team/mnist: spec is a list: expected an object");
  CHECK_THROWS_WITH(read_training_job(json("x")), "a TrainingJob: it is \"x\": expected an object");
}

TEST_CASE("the pools of spot nodes are read, and what cannot be is refused") {
  auto const with = [](char const* at, json const& value) {
    json spot = R"({"deadline": "2026-12-24T18:00:00Z", "budgetUsd": 50,
      "onDemand": {"nodeSelector": {"pool": "od"}, "usdPerHour": 3},
      "pools": [{"name": "a", "nodeSelector": {"pool": "a"}, "usdPerHour": 0.5},
                {"name": "b", "nodeSelector": {"pool": "b"}, "usdPerHour": 0}]})"_json;
    if (*at) spot[json::json_pointer(at)] = value;
    return spot;
  };
  json job = mnist();
  job["spec"]["spot"] = with("", nullptr);
  auto const read = read_training_job(job).spec.spot;
  REQUIRE(read);
  CHECK(read->deadline == *edl::seconds_of("2026-12-24T18:00:00Z"));
  CHECK(read->budget == 50);
  CHECK(read->on_demand.usd_per_hour == 3);
  REQUIRE(read->pools.size() == 2);
  CHECK(read->pools[1].labels == std::map<std::string, std::string>{{"pool", "b"}});
  for (auto const& [at, value, why] : std::vector<std::tuple<char const*, json, char const*>>{
           {"/deadline", "soon", "spec.spot.deadline is 'soon': expected a time in UTC"},
           {"/pools", json::array(), "spec.spot.pools is empty"},
           {"/pools/0/name", "on-demand", "spec.spot.pools[0].name is 'on-demand'"},
           {"/pools/0/name", "b", "spec.spot.pools[1].name occurs twice"},
           {"/pools/0/nodeSelector", json::object(), "spec.spot.pools[0].nodeSelector is missing"},
           {"/pools/0/nodeSelector/pool", "b", "spec.spot.pools[1].nodeSelector is that of pool a"},
           {"/pools/0/nodeSelector/pool", "od", "spec.spot.pools[0].nodeSelector is that of onDemand"},
           {"/pools/0/usdPerHour", nullptr, "spec.spot.pools[0].usdPerHour is missing"},
           {"/pools/0/usdPerHour", -1, "spec.spot.pools[0].usdPerHour is -1"},
           {"/pools/0/usdPerHour", 1e9, "spec.spot.pools[0].usdPerHour is 1000000000: expected at most"},
           {"/onDemand", nullptr, "spec.spot.onDemand.nodeSelector is missing"}}) {
    CAPTURE(at);
    CHECK(refused("/spec/spot", with(at, value)).starts_with(std::string("team/mnist: ") + why));
  }
  job["spec"]["workers"]["template"]["spec"]["nodeSelector"] = {{"pool", "c"}};
  CHECK_THROWS_WITH(read_training_job(job),
                    doctest::Contains("has pool=od, but spec.workers.template has pool=c"));
}

TEST_CASE("servers without a template are none where there are no servers") {
  json j = mnist();
  j["spec"]["servers"] = {{"replicas", 0}};
  CHECK(read_training_job(j).spec.server.empty());
}

TEST_CASE("a thousand jobs fit in some 10 MB") {
  json j = mnist();
  for (char const* role : {"master", "servers", "workers"})
    j["spec"][role]["template"]["metadata"]["annotations"]["long"] = std::string(2000, 'x');
  training_job const read = read_training_job(j);
  CHECK(sizeof read + read.spec.master.capacity() + read.spec.server.capacity() +
            read.spec.worker.capacity() <
        10'000);
}

}  // namespace training_job_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/controller/cluster_reading.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace cluster_reading_test {

using namespace edl::autoscaler;
using namespace edl::controller;
using nlohmann::json;

TEST_CASE("a pod requests what its containers do together, or its largest start, and the overhead") {
  auto const cpu = [](char const* spec) {
    auto const s = read_shape(json::parse(spec));
    auto const at = s.requests.find("cpu");
    return at == s.requests.end() ? 0 : at->second;
  };
  CHECK(
      cpu(R"({"containers": [{"resources": {"requests": {"cpu": "250m"}}}, {"resources": {"limits": {"cpu": 1}}}]})") ==
      1250);
  CHECK(cpu(R"({"containers": [{"resources": {"requests": {"cpu": "1"}}}],
    "initContainers": [{"resources": {"requests": {"cpu": "3"}}}]})") == 3000);
  CHECK(cpu(R"({"containers": [{"resources": {"requests": {"cpu": "1"}}}],
    "initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}, {"resources": {"requests": {"cpu": "3"}}}],
    "overhead": {"cpu": "100m"}})") == 4100);
  CHECK(
      cpu(R"({"containers": [{"resources": {"requests": {"cpu": "1"}}}], "resources": {"requests": {"cpu": "5"}}})") ==
      5000);
  CHECK(cpu(R"({"containers": [{"resources": {"requests": {"cpu": "much"}}}, {}, null]})") == 0);
  CHECK(cpu("[]") == 0);
}

TEST_CASE("selectors, affinity and tolerations are read; preferences are not") {
  auto const s =
      read_shape(R"({"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
      {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}],
       "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}, {}]},
      "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}})"_json);
  CHECK(s.node_selector == std::map<std::string, std::string>{{"disk", "ssd"}});
  REQUIRE(s.affinity.size() == 1);
  CHECK(s.affinity[0] == std::vector<requirement>{{"zone", requirement::relation::not_in, {"a"}},
                                                  {"metadata.name", requirement::relation::in, {"n"}}});
  CHECK(s.tolerations == std::vector<toleration>{{.key = "gpu", .exists = true}});
}

TEST_CASE("a node takes pods while it is ready and not cordoned") {
  json n =
      R"({"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "4", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]}})"_json;
  CHECK(read_node(n).schedulable);
  CHECK(read_node(n).allocatable == resources{{"cpu", 4000}, {"pods", 110'000}});
  CHECK(read_node(n).taints == std::vector<taint>{{"k", "", "NoSchedule"}});
  n["spec"]["unschedulable"] = true;
  CHECK_FALSE(read_node(n).schedulable);
  CHECK_FALSE(lost(n));
  n["status"]["conditions"][0]["status"] = "Unknown";
  CHECK(lost(n));
  CHECK(lost(json::object()));
  CHECK(pressure(n).empty());
  for (auto const& [type, status] : {std::pair{"MemoryPressure", "True"},
                                     {"PIDPressure", "False"},
                                     {"DiskPressure", "True"},
                                     {"KernelDeadlock", "True"}})
    n["status"]["conditions"].push_back({{"type", type}, {"status", status}});
  CHECK(pressure(n) == "MemoryPressure, DiskPressure");
}

TEST_CASE("only a pod that lacks room wants some") {
  auto const wants = [](json const& message, json const& spec = json::object()) {
    json pod{{"spec", spec}, {"status", json::object()}};
    if (!message.is_null())
      pod["status"]["conditions"] = {{{"type", "PodScheduled"}, {"status", "False"}, {"message", message}}};
    return wants_room(pod);
  };
  CHECK(wants(nullptr));
  CHECK(wants("0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {a: b}."));
  CHECK(wants("0/1 nodes are available: 1 Too many pods."));
  CHECK_FALSE(wants("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."));
  CHECK_FALSE(wants("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."));
  CHECK_FALSE(wants(nullptr, {{"schedulingGates", {{{"name", "g"}}}}}));
  CHECK_FALSE(wants(nullptr, {{"nodeName", "n"}}));
}

}  // namespace cluster_reading_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kueue/kueue_workload.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace kueue_workload_test {

using namespace edl::kubernetes;
using namespace edl::kueue;
using nlohmann::json;

namespace {

json object() {
  return R"({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
    "metadata": {"name": "tj-mnist-u-1", "namespace": "team", "uid": "w-1", "resourceVersion": "7", "generation": 2,
      "creationTimestamp": "2026-11-22T10:00:00Z", "finalizers": ["other/one", "kueue.x-k8s.io/resource-in-use"],
      "annotations": {"kueue.x-k8s.io/workload-slice-replacement-for": "team/old"},
      "ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p-1"},
        {"apiVersion": "elasticdl.org/v1alpha1", "kind": "TrainingJob", "name": "mnist", "uid": "u-1", "controller": true}]},
    "spec": {"queueName": "q", "priority": 5, "priorityClassRef": {"group": "kueue.x-k8s.io",
        "kind": "WorkloadPriorityClass", "name": "high"},
      "podSets": [{"name": "master", "count": 1, "template": {"spec": {"containers": [{"name": "a"}]}}},
                  {"name": "workers", "count": 8, "minCount": 2, "template": {"spec": {"containers": [{"name": "b"}]}}}]},
    "status": {
      "conditions": [{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "m",
                      "lastTransitionTime": "2026-11-22T10:00:01Z", "observedGeneration": 2},
                     {"type": "Admitted", "status": "True", "reason": "Admitted", "message": "m"},
                     {"type": "Evicted", "status": "False", "reason": "x", "message": ""}],
      "admission": {"clusterQueue": "cq", "podSetAssignments": [
        {"name": "master", "count": 1, "flavors": {"cpu": "a", "memory": "a"}},
        {"name": "workers", "count": 5, "flavors": {"cpu": "a", "nvidia.com/gpu": "b"}}]},
      "reclaimablePods": [{"name": "workers", "count": 2}],
      "admissionChecks": [{"name": "prov", "state": "Ready", "podSetUpdates": [
        {"name": "workers", "labels": {"l": "1"}, "annotations": {"a": "2"}, "nodeSelector": {"n": "3"},
         "tolerations": [{"key": "t", "operator": "Exists"}]}]}]}})"_json;
}

}  // namespace

TEST_CASE("a Workload of a TrainingJob is read") {
  auto const w = read_workload(object());
  REQUIRE(w);
  CHECK(w->owner == "u-1");
  CHECK(w->held == 1);
  CHECK(w->replaces == "team/old");
  CHECK(w->queue == "q");
  CHECK(w->priority_class == "high");
  CHECK(w->priority == 5);
  CHECK(w->active);
  CHECK(w->admitted());
  CHECK_FALSE(w->evicted());
  CHECK_FALSE(w->finished());
  CHECK(w->find("QuotaReserved")->observed_generation == 2);
  CHECK(w->cluster_queue == "cq");
  CHECK(w->set("workers")->min_count == 2u);
  CHECK(w->admission->at("workers").flavors == std::set<std::string>{"a", "b"});
  REQUIRE(w->updates.at("workers").size() == 1);
  CHECK(w->updates.at("workers")[0].node_selector.at("n") == "3");
}

TEST_CASE("a flavor's labels and tolerations come into a template, and a contradiction is named") {
  auto const flavor = read_flavor(R"({"spec": {"nodeLabels": {"disk": "ssd"}, "nodeTaints": [{"key": "spot"}],
                                      "tolerations": [{"key": "spot", "operator": "Exists"}]}})"_json);
  template_text const pods =
      R"({"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"m"}],"tolerations":[{"key":"mine"}]}})";
  auto const t = with_changes(pods, flavor);
  REQUIRE(t.conflict.empty());
  json const is = json::parse(t.text);
  CHECK(is["spec"]["nodeSelector"] == json{{"disk", "ssd"}});
  CHECK(is["spec"]["tolerations"].size() == 2);
  CHECK(is["metadata"]["labels"] == json{{"a", "b"}});
  CHECK(with_changes(t.text, flavor).text == t.text);  // nothing comes twice
  auto const bad = with_changes(R"({"spec":{"containers":[{}],"nodeSelector":{"disk":"hdd"}}})", flavor);
  CHECK(bad.conflict == "nodeSelector: disk");
  CHECK(with_changes(pods, {}).text == pods);

  pod_changes both = flavor;
  CHECK(merge(both, flavor).empty());
  CHECK(both == flavor);
  CHECK(merge(both, {.labels = {{"x", "1"}}, .node_selector = {{"disk", "hdd"}}}) == "nodeSelector: disk");
}

TEST_CASE("a template's tolerations are kept, however many there are") {
  json pods = R"({"spec": {"containers": [{}]}})"_json;
  for (int i = 0; i < 40; ++i) pods["spec"]["tolerations"].push_back({{"key", std::to_string(i)}});
  auto const t = with_changes(pods.dump(), {.node_selector = {{"a", "b"}}});
  CHECK(json::parse(t.text)["spec"]["tolerations"] == pods["spec"]["tolerations"]);
}

TEST_CASE("covers: a server may add, and drop what is empty, and nothing else") {
  CHECK(covers(R"({"a": 1, "b": [{"c": 2, "d": 3}]})"_json,
               R"({"a": 1, "b": [{"c": 2}], "e": {}, "f": []})"_json));
  CHECK_FALSE(covers(R"({"a": 1})"_json, R"({"a": 2})"_json));
  CHECK_FALSE(covers(R"({"a": 1})"_json, R"({"b": 2})"_json));
  CHECK_FALSE(covers(R"({"a": [1, 2]})"_json, R"({"a": [1]})"_json));
  CHECK_FALSE(covers(R"({"a": [2]})"_json, R"({"a": [1]})"_json));
  CHECK_FALSE(covers(json(), R"({"a": 1})"_json));
}

}  // namespace kueue_workload_test

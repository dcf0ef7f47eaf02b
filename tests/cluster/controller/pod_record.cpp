// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/controller/pod_record.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace pod_record_test {

using namespace edl::controller;
using nlohmann::json;

TEST_CASE("a report is read within bounds") {
  auto const r = read_report(
      R"({"records": 2048, "total_records": 4096, "epoch": 1, "epochs": 2, "version": 64, "records_per_s": 930.5,
    "workers": 2, "seconds_left": 2.2, "speeds": [[1, 500.5], [2, 930.5], [0, 3], [3, -1], ["x", 2], [99999999, 1]], "standstill_s": 0.31})");
  REQUIRE(r.has_value());
  CHECK(r->records == 2048);
  CHECK(r->seconds_left == 2.2);
  CHECK(r->standstill_s == 0.31);
  CHECK(r->speeds == std::vector<edl::kubernetes::speed_record>{{1, 500.5}, {2, 930.5}});
  CHECK_FALSE(read_report("").has_value());
  CHECK_FALSE(read_report("[1]").has_value());
  CHECK_FALSE(read_report(std::string(1 << 20, ' ')).has_value());
  CHECK(read_report(R"({"records": -1, "epoch": 1e300, "seconds_left": null})")->records == 0);
  CHECK_FALSE(read_report(R"({"seconds_left": null})")->seconds_left.has_value());
}

TEST_CASE("only a pod that a TrainingJob controls is a job's") {
  json p =
      R"({"metadata": {"name": "elasticdl-a-master", "namespace": "team", "uid": "u", "resourceVersion": "1",
    "labels": {"elasticdl-replica-type": "master", "elasticdl-replica-index": "0"}, "finalizers": ["x", "elasticdl.org/recorded"],
    "annotations": {"elasticdl.org/attempt": "2", "elasticdl.org/workers": "3", "elasticdl/num-workers": "5", "elasticdl/size": "workers=4,servers=1"},
    "ownerReferences": [{"apiVersion": "elasticdl.org/v1alpha1", "kind": "TrainingJob", "uid": "j", "controller": true}]},
    "status": {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 79}}}]}})"_json;
  auto const r = read_record(p);
  CHECK(r.owner == "j");
  CHECK(r.held);
  REQUIRE(r.master);
  CHECK(r.master->attempt == 2);
  CHECK(r.master->first_size == 3);
  CHECK(r.master->requested_size == "5");
  CHECK(r.master->size->workers == 4);
  CHECK(r.master->ending.code == edl::platform::suspended);
  CHECK(r.at == pod_record::phase::over);

  // It is collected: it has ended as it had before.
  p["metadata"]["deletionTimestamp"] = "2026-11-22T10:00:00Z";
  CHECK_FALSE(read_record(p).master->ending.outside);
  // Its node went, and nobody knows how it ended.
  p["status"].erase("containerStatuses");
  CHECK(read_record(p).master->ending.outside);

  p["metadata"]["ownerReferences"][0]["controller"] = false;
  CHECK(read_record(p).owner.empty());
  CHECK(read_record(json::object()).owner.empty());
}

TEST_CASE("a master that its kubelet starts again has not ended") {
  json p = R"({"metadata": {"name": "elasticdl-a-master", "namespace": "team", "uid": "u",
    "labels": {"elasticdl-replica-type": "master", "elasticdl-replica-index": "0"},
    "ownerReferences": [{"apiVersion": "elasticdl.org/v1alpha1", "kind": "TrainingJob", "uid": "j", "controller": true}]},
    "spec": {"restartPolicy": "Never", "containers": [{"restartPolicyRules": [
      {"action": "Restart", "exitCodes": {"operator": "In", "values": [134, 137, 139]}}]}]},
    "status": {"phase": "Running", "containerStatuses": [{"state": {"terminated": {"exitCode": 137}}}]}})"_json;
  CHECK(read_record(p).at == pod_record::phase::running);
  json without = p;  // a server that does not know such rules drops them
  without["spec"]["containers"][0].erase("restartPolicyRules");
  CHECK(read_record(without).at == pod_record::phase::over);

  json crashing = p;
  crashing["status"]["containerStatuses"][0] =
      R"({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 139}},
    "restartCount": 4})"_json;
  CHECK(read_record(crashing).master->crashes == 4);
  crashing["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] = 137;
  CHECK(read_record(crashing).master->crashes == 0);
  json gone = p;
  gone["metadata"]["deletionTimestamp"] = "2026-11-22T10:00:00Z";
  CHECK(read_record(gone).at == pod_record::phase::over);
  json ended = p;
  ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] = 1;
  CHECK(read_record(ended).at == pod_record::phase::over);
  json failed = p;
  failed["status"]["phase"] = "Failed";
  CHECK(read_record(failed).at == pod_record::phase::over);
}

TEST_CASE("a master's own exit code stands, whoever takes its pod away") {
  json p = R"({"metadata": {"name": "elasticdl-a-master", "namespace": "team", "uid": "u",
    "deletionTimestamp": "2026-11-22T10:00:00Z",
    "labels": {"elasticdl-replica-type": "master", "elasticdl-replica-index": "0"},
    "ownerReferences": [{"apiVersion": "elasticdl.org/v1alpha1", "kind": "TrainingJob", "uid": "j", "controller": true}]},
    "status": {"phase": "Succeeded", "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}],
      "containerStatuses": [{"state": {"terminated": {"exitCode": 0}}}]}})"_json;
  auto const r = read_record(p);
  REQUIRE(r.master);
  CHECK(r.master->ending.code == 0);
  CHECK_FALSE(r.master->ending.outside);
}

TEST_CASE("a pod whose program is over keeps its room while another container runs") {
  json p = R"({"metadata": {"name": "elasticdl-a-worker-0", "namespace": "team", "uid": "u",
    "labels": {"elasticdl-replica-type": "worker", "elasticdl-replica-index": "0"},
    "ownerReferences": [{"apiVersion": "elasticdl.org/v1alpha1", "kind": "TrainingJob", "uid": "j", "controller": true}]},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "elasticdl"}, {"name": "logs"}]},
    "status": {"phase": "Running", "containerStatuses": [{"name": "logs", "state": {"running": {}}},
      {"name": "elasticdl", "state": {"terminated": {"exitCode": 0}}}]}})"_json;
  CHECK(read_record(p).at == pod_record::phase::over);
  CHECK(read_record(p).outlived);
  p["status"]["containerStatuses"][0]["state"] = {{"terminated", {{"exitCode", 0}}}};
  CHECK_FALSE(read_record(p).outlived);  // the kubelet will tell the pod's end, too
  CHECK(read_record(p).at == pod_record::phase::over);
  p["status"]["phase"] = "Succeeded";
  CHECK_FALSE(read_record(p).outlived);
}

}  // namespace pod_record_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/cluster_spec.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "edl/cluster/kubernetes/objects.hpp"
#include "edl/core/error.hpp"
#include "kubernetes/schema.hpp"

namespace cluster_spec_test {

using namespace edl::platform;
using namespace edl::kubernetes;
using edl::role;
using nlohmann::json;

namespace {

job_spec with(json const& overrides) {
  job_spec s;
  s.name = "j";
  s.image = "i";
  s.command = {"/m"};
  s.num_workers = 2;
  s.variables = {{"A", "user"}, {"B", "user"}};
  s.image_pull_secrets = {"registry"};
  s.cluster_spec = overrides.dump();
  check(s);
  return s;
}

json worker(job_spec const& s) { return member_pod(s, {role::worker, 0}, 0, {}, {}, {"m", "u"}); }
json server(job_spec const& s) { return member_pod(s, {role::server, 0}, 0, {}, {}, {"m", "u"}); }

json value_of(json const& pod, char const* name) {
  json found;
  for (json const& v : pod["spec"]["containers"][0]["env"])
    if (v["name"] == name) {
      CHECK(found.is_null());
      found = v.contains("value") ? v["value"] : v["valueFrom"];
    }
  return found;
}

}  // namespace

TEST_CASE("what a cluster asks for is added, appended, merged or put in the place of what is there") {
  json const overrides = {
      {"pod_spec",
       {{"labels", {{"team", "a"}}},
        {"annotations", {{"note", "b"}}},
        {"tolerations", {{{"key", "spot"}, {"operator", "Exists"}}}},
        {"volumes",
         {{{"name", "tmp"}, {"emptyDir", {{"medium", "Memory"}}}},
          {{"name", "x"}, {"emptyDir", json::object()}}}},
        {"volumeMounts", {{{"name", "x"}, {"mountPath", "/x"}}}},
        {"imagePullSecrets", {{{"name", "registry"}}, {{"name", "other"}}}},
        {"env", {{{"name", "B"}, {"value", "$(MY_POD_IP)"}}, {{"name", "C"}, {"value", "c"}}}},
        {"affinity",
         {{"podAntiAffinity",
           {{"requiredDuringSchedulingIgnoredDuringExecution",
             {{{"topologyKey", "kubernetes.io/hostname"}}}}}}}},
        {"nodeSelector", {{"disk", "ssd"}}},
        {"topologySpreadConstraints",
         {{{"maxSkew", 1}, {"topologyKey", "zone"}, {"whenUnsatisfiable", "DoNotSchedule"}}}},
        {"runtimeClassName", "gvisor"},
        {"securityContext", {{"runAsUser", 1000}, {"fsGroup", nullptr}}},
        {"container",
         {{"securityContext", {{"readOnlyRootFilesystem", false}}}, {"readinessProbe", nullptr}}}}},
      {"worker_pod_spec",
       {{"tolerations", {{{"key", "gpu"}, {"operator", "Exists"}}}},
        {"nodeSelector", {{"gpu", "true"}}},
        {"automountServiceAccountToken", true},
        {"serviceAccountName", "reader"},
        {"labels", {{"team", "w"}}}}}};
  job_spec const s = with(overrides);
  json const w = worker(s), p = server(s), m = master_pod(s);
  for (json const& pod : {w, p, m}) {
    CHECK(pod["metadata"]["annotations"] == json{{"note", "b"}});
    CHECK(pod["metadata"]["labels"]["app"] == "elasticdl");
    json const& spec = pod["spec"];
    CHECK(spec["volumes"].back()["name"] == "x");
    CHECK(spec["imagePullSecrets"] == json{{{"name", "registry"}}, {{"name", "other"}}});
    CHECK(spec["affinity"] == overrides["pod_spec"]["affinity"]);
    CHECK(spec["topologySpreadConstraints"] == overrides["pod_spec"]["topologySpreadConstraints"]);
    CHECK(spec["runtimeClassName"] == "gvisor");
    CHECK(spec["securityContext"]["runAsUser"] == 1000);
    CHECK(spec["securityContext"]["runAsGroup"] == 65532);
    CHECK_FALSE(spec["securityContext"].contains("fsGroup"));
    json const& container = spec["containers"][0];
    CHECK(container["securityContext"]["readOnlyRootFilesystem"] == false);
    CHECK(container["securityContext"]["allowPrivilegeEscalation"] == false);
    CHECK_FALSE(container.contains("readinessProbe"));
    CHECK(container["volumeMounts"].back()["mountPath"] == "/x");
    int tmps = 0;
    for (json const& v : spec["volumes"])
      if (v["name"] == "tmp") {
        ++tmps;
        CHECK(v["emptyDir"]["medium"] == "Memory");
      }
    CHECK(tmps == 1);
    CHECK(value_of(pod, "A") == "user");
    CHECK(value_of(pod, "B") == "$(MY_POD_IP)");  // Kubernetes' own object: references work
    CHECK(value_of(pod, "C") == "c");
  }
  CHECK(p["spec"]["tolerations"].size() == 1);
  CHECK(w["spec"]["tolerations"].size() == 2);
  CHECK(p["spec"]["nodeSelector"] == json{{"disk", "ssd"}});
  CHECK(w["spec"]["nodeSelector"] == json{{"gpu", "true"}});
  CHECK(p["metadata"]["labels"]["team"] == "a");
  CHECK(w["metadata"]["labels"]["team"] == "w");
  CHECK(w["spec"]["automountServiceAccountToken"] == true);
  CHECK(p["spec"]["automountServiceAccountToken"] == false);
  CHECK(w["spec"]["serviceAccountName"] == "reader");
  if (auto const folder = edl::testing::kubernetes::recordings()) {
    edl::testing::kubernetes::schema const published(*folder / "openapi");
    for (json const& pod : {w, p, m}) CHECK(published.errors(pod) == std::vector<std::string>{});
  }
}

TEST_CASE("each role has overrides of its own, and the Service too") {
  job_spec const s = with({{"master_pod_spec", {{"annotations", {{"for", "master"}}}}},
                           {"ps_pod_spec", {{"annotations", {{"for", "ps"}}}}},
                           {"service_spec", {{"type", "NodePort"}, {"clusterIP", nullptr}}}});
  CHECK(master_pod(s)["metadata"]["annotations"]["for"] == "master");
  CHECK(server(s)["metadata"]["annotations"]["for"] == "ps");
  CHECK_FALSE(worker(s)["metadata"].contains("annotations"));
  json const service = master_service(s);
  CHECK(service["spec"]["type"] == "NodePort");
  CHECK_FALSE(service["spec"].contains("clusterIP"));
  CHECK(service["spec"]["selector"].size() == 4);
}

TEST_CASE("nothing that is asked for leaves nothing empty") {
  job_spec const s = with({{"pod_spec",
                            {{"labels", json::object()},
                             {"tolerations", json::array()},
                             {"affinity", json::object()},
                             {"securityContext",
                              {{"runAsNonRoot", nullptr},
                               {"runAsUser", nullptr},
                               {"runAsGroup", nullptr},
                               {"fsGroup", nullptr},
                               {"fsGroupChangePolicy", nullptr},
                               {"seccompProfile", nullptr}}}}},
                           {"service_spec", json::object()}});
  CHECK_FALSE(worker(s)["spec"].contains("securityContext"));
  for (json const& object : {worker(s), master_pod(s), master_service(s)})
    CHECK(edl::testing::kubernetes::empty_fields(object) == std::vector<std::string>{});
}

TEST_CASE("a cluster_spec that cannot be done is refused with its place") {
  struct {
    char const *text, *why;
  } const all[] = {
      {"{", "is not JSON"},
      {"[]", "expected an object"},
      {R"({"pods": {}})", "'pods' is unknown; expected pod_spec"},
      {R"({"pod_spec": []})", "pod_spec: expected an object"},
      {R"({"service_spec": 1})", "service_spec: expected an object"},
      {R"({"service_spec": {"selector": {}}})", "service_spec: 'selector' is the job's own"},
      {R"({"ps_pod_spec": {"toleration": []}})",
       "ps_pod_spec: unknown field 'toleration': expected one of activeDeadline"},
      {R"({"pod_spec": {"tolerations": {}}})", "pod_spec: 'tolerations': expected a list"},
      {R"({"pod_spec": {"tolerations": [1]}})", "pod_spec.tolerations: expected a list of objects"},
      {R"({"pod_spec": {"affinity": "none"}})", "pod_spec: 'affinity': expected an object"},
      {R"({"pod_spec": {"hostNetwork": "true"}})", "pod_spec: 'hostNetwork': expected true or false"},
      {R"({"pod_spec": {"activeDeadlineSeconds": -1}})", "'activeDeadlineSeconds': expected a number"},
      {R"({"pod_spec": {"runtimeClassName": ""}})", "pod_spec.runtimeClassName: is empty"},
      {R"({"pod_spec": {"labels": {"n": 1}}})", "pod_spec.labels: 'n' is not a string"},
      {R"({"pod_spec": {"labels": {"app": "x"}}})", "pod_spec.labels: 'app' is the job's own"},
      {R"({"pod_spec": {"labels": {"elasticdl-job-name": "x"}}})", "'elasticdl-job-name' is the job's own"},
      {R"({"pod_spec": {"nodeSelector": {"gpu": true}}})", "pod_spec.nodeSelector: 'gpu' is not a string"},
      {R"({"pod_spec": {"env": [{"value": "x"}]}})", "pod_spec.env: an item has no 'name'"},
      {R"({"pod_spec": {"env": [{"name": "WORKER_ID", "value": "7"}]}})",
       "WORKER_ID is set by the job itself"},
      {R"({"pod_spec": {"volumeMounts": [{"name": "x"}]}})", "an item has no 'mountPath'"},
      {R"({"pod_spec": {"container": {"image": "x"}}})", "pod_spec.container: 'image' is set elsewhere"}};
  for (auto const& [text, why] : all) {
    CAPTURE(text);
    try {
      check_cluster_spec(text);
      FAIL_CHECK("is taken");
    } catch (edl::usage_error const& e) {
      CHECK(std::string(e.what()).find("--cluster_spec: ") == 0);
      CHECK(std::string(e.what()).find(why) != std::string::npos);
    }
  }
  CHECK_THROWS_WITH_AS(check_cluster_spec(std::string(70'000, ' ')), doctest::Contains("70000 bytes"),
                       edl::usage_error);
  check_cluster_spec("");
  check_cluster_spec("{}");
}

}  // namespace cluster_spec_test

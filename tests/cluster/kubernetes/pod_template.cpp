// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/pod_template.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "edl/cluster/kubernetes/objects.hpp"
#include "edl/core/error.hpp"
#include "kubernetes/schema.hpp"

namespace pod_template_test {

using namespace edl::platform;
using namespace edl::kubernetes;
using edl::role;
using nlohmann::json;

namespace {

owner const job_owner{"mnist", "0123456789-abc", "elasticdl.org/v1alpha1", "TrainingJob"};
owner const pod_owner{"elasticdl-mnist-master", "0a1b2c"};

json small_template() { return {{"spec", {{"containers", {{{"name", "train"}, {"image", "mnist:1"}}}}}}}; }

json full_template() {
  return json::parse(R"({
    "metadata": {"labels": {"team": "a", "elasticdl-job-name": "other"},
                 "annotations": {"note": "n", "elasticdl/num-workers": "9"}, "name": "ignored"},
    "spec": {
      "restartPolicy": "Always", "terminationGracePeriodSeconds": 7, "priorityClassName": "low",
      "serviceAccountName": "own", "nodeSelector": {"zone": "a"}, "securityContext": {"runAsUser": 1000},
      "volumes": [{"name": "tmp", "persistentVolumeClaim": {"claimName": "c"}}],
      "containers": [
        {"name": "train", "image": "mnist:1", "imagePullPolicy": "Never",
         "env": [{"name": "EDL_ROLE", "value": "queen"}, {"name": "HOME", "value": "/home"},
                 {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
         "ports": [{"name": "worker", "containerPort": 9000}],
         "volumeMounts": [{"name": "tmp", "mountPath": "/data"}],
         "resources": {"requests": {"cpu": 2, "memory": "1Gi"}, "limits": {"memory": "2Gi"}}},
        {"name": "sidecar", "image": "log:1"}]}})");
}

job_spec owned(json const& like) {
  job_spec s;
  s.name = "mnist";
  s.space = "team";
  s.command = {"/mnist", "train"};
  s.num_workers = 8;
  s.num_servers = 2;
  s.initial_workers = 2;
  s.by = job_owner;
  s.secret = secret_name(s.by);
  s.server_template = s.worker_template = like.dump();
  return s;
}

json worker_of(job_spec const& s) {
  role_spec const of = role_of_template(s.worker_template);
  return member_pod(s, {role::worker, 3}, 3, of.request, of.limit, pod_owner);
}

json variable(json const& pod, char const* name) {
  json found;
  for (json const& one : pod["spec"]["containers"][0]["env"])
    if (one["name"] == name) {
      CHECK(found.is_null());  // once
      found = one.contains("value") ? one["value"] : one["valueFrom"];
    }
  return found;
}

std::string refusal(std::string const& text) {
  try {
    check_pod_template("workers.template", text);
  } catch (edl::usage_error const& e) {
    return e.what();
  }
  return "(taken)";
}

}  // namespace

TEST_CASE("where a template says nothing, a pod is as a plain job's") {
  job_spec plain = owned(small_template());
  plain.server_template = plain.worker_template = {};
  plain.image = "mnist:1";
  json expected = member_pod(plain, {role::worker, 3}, 3, {}, {}, pod_owner);
  expected["spec"]["containers"][0].erase("imagePullPolicy");  // the API server's to choose
  expected["spec"]["containers"][0]["name"] = "train";
  CHECK(worker_of(owned(small_template())) == expected);
}

TEST_CASE("what a template says stands, but for what makes a pod one of its job") {
  job_spec const s = owned(full_template());
  check(s);
  json const pod = worker_of(s);
  json const& spec = pod["spec"];
  json const& container = spec["containers"][0];
  CHECK(pod["metadata"]["name"] == "elasticdl-mnist-worker-3");
  CHECK(pod["metadata"]["labels"]["team"] == "a");
  CHECK(pod["metadata"]["labels"]["elasticdl-job-name"] == "mnist");
  CHECK(pod["metadata"]["annotations"] == json{{"note", "n"}});
  CHECK(spec["restartPolicy"] == "Never");
  CHECK(spec["terminationGracePeriodSeconds"] == 7);
  CHECK(spec["priorityClassName"] == "low");
  CHECK(spec["nodeSelector"] == json{{"zone", "a"}});
  CHECK(spec["securityContext"] == json{{"runAsUser", 1000}});
  CHECK(spec["enableServiceLinks"] == false);
  CHECK(spec["containers"].size() == 2);
  CHECK(spec["containers"][1] == full_template()["spec"]["containers"][1]);
  CHECK(container["image"] == "mnist:1");
  CHECK(container["imagePullPolicy"] == "Never");
  CHECK(container["command"] == json{"/mnist", "train"});
  CHECK(container["terminationMessagePolicy"] == "FallbackToLogsOnError");
  CHECK(container["securityContext"]["readOnlyRootFilesystem"] == true);
  CHECK(variable(pod, "EDL_ROLE") == "worker");
  CHECK(variable(pod, "HOME") == "/home");
  CHECK(variable(pod, "NODE")["fieldRef"]["fieldPath"] == "spec.nodeName");
  CHECK(variable(pod, "WORKER_ID") == "3");
  CHECK(variable(pod, "WORKER_NUM") == "8");
  CHECK(variable(pod, "EDL_JOB_TOKEN")["secretKeyRef"]["name"] == "elasticdl-mnist-01234567");
  CHECK(container["ports"] ==
        json{{{"name", "worker"}, {"containerPort", 9000}}, {{"containerPort", 3333}, {"protocol", "TCP"}}});
  // A name of a volume may be taken by another.
  CHECK(container["volumeMounts"] ==
        json{{{"name", "tmp"}, {"mountPath", "/data"}}, {{"name", "tmp-2"}, {"mountPath", "/tmp"}}});
  CHECK(spec["volumes"][1] == json{{"name", "tmp-2"}, {"emptyDir", json::object()}});
  CHECK(container["resources"] ==
        json{{"requests", {{"cpu", "2"}, {"memory", "1Gi"}}}, {"limits", {{"memory", "2Gi"}}}});
  // More memory after an end by memory.
  json const more = member_pod(s, {role::worker, 3}, 3, {{"memory", "2Gi"}}, {{"memory", "4Gi"}}, pod_owner);
  CHECK(more["spec"]["containers"][0]["resources"] ==
        json{{"requests", {{"cpu", 2}, {"memory", "2Gi"}}}, {"limits", {{"memory", "4Gi"}}}});
  json command = full_template();
  command["spec"]["containers"][0]["command"] = {"/own"};
  CHECK(worker_of(owned(command))["spec"]["containers"][0]["command"] == json{"/own"});
}

TEST_CASE("the objects of a TrainingJob are its own") {
  job_spec const s = owned(full_template());
  json const master = master_pod(s, full_template());
  json const controlled = {{{"apiVersion", "elasticdl.org/v1alpha1"},
                            {"kind", "TrainingJob"},
                            {"name", "mnist"},
                            {"uid", "0123456789-abc"},
                            {"controller", true},
                            {"blockOwnerDeletion", true}}};
  for (json const& object : {master, master_service(s), token_secret(s, "0123456789abcdef")})
    CHECK(object["metadata"]["ownerReferences"] == controlled);
  CHECK(token_secret(s, "t")["metadata"]["name"] == "elasticdl-mnist-01234567");
  // The right to write a TrainingJob's finalizers is nothing that a master should need.
  json without = controlled;
  without[0].erase("blockOwnerDeletion");
  CHECK(worker_of(s)["metadata"]["ownerReferences"] == without);

  json const& container = master["spec"]["containers"][0];
  CHECK(master["metadata"]["labels"]["status"] == "Pending");
  CHECK(master["spec"]["serviceAccountName"] == "own");
  CHECK(master["spec"]["automountServiceAccountToken"] == true);
  CHECK(container["restartPolicy"] == "Never");
  CHECK(container.contains("restartPolicyRules"));
  CHECK(container["livenessProbe"]["tcpSocket"]["port"] == 50001);
  CHECK(container["volumeMounts"].back()["mountPath"] == "/var/run/edl");
  CHECK_FALSE(master_pod(s, full_template(), false)["spec"]["containers"][0].contains("restartPolicy"));
  // The master makes the other pods by what it is told.
  std::string said;
  for (json const& one : container["env"])
    if (one["name"] == "EDL_JOB") said = one["value"];
  job_spec const told = job_from_json(said);
  CHECK(worker_of(told) == worker_of(s));
  CHECK(told.initial_workers == 2);
}

TEST_CASE("pods made by templates are such as the API server publishes") {
  auto const folder = edl::testing::kubernetes::recordings();
  if (!folder) return;
  edl::testing::kubernetes::schema const published(*folder / "openapi");
  for (json const& like : {small_template(), full_template()}) {
    job_spec const s = owned(like);
    for (json pod : {worker_of(s), master_pod(s, like), master_pod(s, like, false)}) {
      CAPTURE(pod.dump(1));
      CHECK(published.errors(pod) == std::vector<std::string>{});
    }
  }
}

TEST_CASE("a template without the program's container is refused") {
  CHECK(refusal("") == "(taken)");
  CHECK(refusal(small_template().dump()) == "(taken)");
  CHECK(refusal(full_template().dump()) == "(taken)");
  struct {
    std::string text, why;
  } const all[] = {
      {"{", "is not JSON: parse error at line 1"},
      {"[]", "is not a JSON object"},
      {R"({"spec": {}, "spec": {}})", "is JSON with the key 'spec' twice in one object"},
      {std::string(1000, '['), "nested deeper than 200 levels"},
      {"{}", "spec.containers is empty"},
      {R"({"spec": {"containers": []}})", "spec.containers is empty"},
      {R"({"spec": {"containers": ["x"]}})", "spec.containers is empty"},
      {R"({"spec": {"containers": [{}]}})", "image is missing"},
      {R"({"spec": {"activeDeadlineSeconds": 9, "containers": [{"image": "a"}]}})", "ends single pods"},
      {R"({"metadata": {"labels": 1}, "spec": {"containers": [{"image": "a"}]}})", "are not objects"},
      {R"({"spec": {"containers": [{"image": "a", "env": {}}]}})", "env is not a list"},
      {R"({"spec": {"containers": [{"image": "a", "env": [{}]}]}})", "without a name"},
      {R"({"spec": {"volumes": 1, "containers": [{"image": "a"}]}})", "volumes is not a list"},
      {R"({"spec": {"containers": [{"image": "a", "resources": {"limits": {"memory": "lots"}}}]}})",
       "memory=lots"}};
  for (auto const& [text, why] : all) {
    CAPTURE(text);
    CHECK(refusal(text).starts_with("workers.template: "));
    CHECK(refusal(text).find(why) != std::string::npos);
  }
}

}  // namespace pod_template_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/objects.hpp"

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "kubernetes/schema.hpp"

namespace objects_test {

using namespace edl::platform;
using namespace edl::kubernetes;
using edl::role;
using nlohmann::json;

namespace {

job_spec small() {
  job_spec s;
  s.name = "test-mnist";
  s.space = "rec";
  s.image = "mnist:1";
  s.command = {"/mnist", "train", "--training_data=/data/mnist/train"};
  s.num_workers = 4;
  s.num_servers = 2;
  s.master.request = {{"cpu", "100m"}, {"memory", "1024Mi"}};
  s.server.request = s.worker.request = {{"cpu", "1"}, {"memory", "4096Mi"}};
  return s;
}

job_spec full() {
  job_spec s = small();
  s.worker_image = "mnist:gpu";
  s.master.priority = s.server.priority = "high";
  s.worker = {{{"cpu", "1"}, {"nvidia.com/gpu", "1"}}, {{"cpu", "2"}, {"memory", "4096Mi"}}, "0.5"};
  s.image_pull_policy = "IfNotPresent";
  s.image_pull_secrets = {"registry", "other"};
  s.service_account = "edl";
  s.volumes = parse_volumes(
      "host_path=/data,type=Directory,mount_path=/data;claim_name=c,mount_path=/a,sub_path=x;"
      "claim_name=c,mount_path=/b,read_only=true;host_path=/data,mount_path=/untyped");
  s.variables = {{"HOME", "/home"}, {"NOTE", "$(MY_POD_IP) costs $$5"}, {"EMPTY", ""}};
  s.populate_env_names = "NCCL_.*";
  s.cluster_spec =
      R"({"pod_spec": {"labels": {"team": "a"}, "tolerations": [{"key": "spot", "operator": "Exists"}],
                       "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
                                                      "whenUnsatisfiable": "ScheduleAnyway"}]},
          "service_spec": {"ipFamilyPolicy": "PreferDualStack"}})";
  s.relaunch = false;
  s.grace_seconds = 5;
  return s;
}

owner const by{"elasticdl-test-mnist-master", "0a1b2c"};

json worker_of(job_spec const& s, std::uint32_t id) {
  return member_pod(s, {role::worker, id}, id, s.worker.request, s.worker.limit, by);
}
json server_of(job_spec const& s, std::uint32_t id) {
  return member_pod(s, {role::server, id}, id, s.server.request, s.server.limit, by);
}

json const& container_of(json const& pod) { return pod.at("spec").at("containers").at(0); }

/// The environment by name: a value, or where it comes from.
std::map<std::string, json> environment_of(json const& pod) {
  std::map<std::string, json> all;
  for (json const& v : container_of(pod).at("env"))
    CHECK(all.emplace(v.at("name"), v.contains("value") ? v["value"] : v.at("valueFrom")).second);
  return all;
}

}  // namespace

TEST_CASE("nodes that are avoided are excluded from each of the places that a pod may take") {
  nlohmann::json pod{{"spec", {{"containers", nlohmann::json::array()}}}};
  auto const before = pod;
  edl::kubernetes::avoid_nodes(pod, {});
  CHECK(pod == before);
  auto const lines = [](nlohmann::json const& term) {
    std::string all;
    for (auto const& l : term.at("matchFields"))
      all += l.at("key").get<std::string>() + " " + l.at("operator").get<std::string>() + " " +
             l.at("values").dump();
    return all;
  };
  edl::kubernetes::avoid_nodes(pod, {"a", "b"});
  auto const terms = nlohmann::json::json_pointer(
      "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
  REQUIRE(pod.at(terms).size() == 1);
  CHECK(lines(pod.at(terms)[0]) == R"(metadata.name NotIn ["a"]metadata.name NotIn ["b"])");
  pod.at(terms) = {{{"matchExpressions", nlohmann::json::array()}},
                   {{"matchExpressions", nlohmann::json::array()}}};
  edl::kubernetes::avoid_nodes(pod, {"a"});
  for (auto const& term : pod.at(terms)) CHECK(lines(term) == R"(metadata.name NotIn ["a"])");
}

TEST_CASE("every object is one that the API server publishes, and has no empty field") {
  auto const folder = edl::testing::kubernetes::recordings();
  std::vector<json> objects;
  for (job_spec base : {small(), full()})
    for (char const* policy : {"Never", "OnFailure", "Always"}) {
      base.restart_policy = policy;
      for (bool const rules : {true, false}) objects.push_back(master_pod(base, rules));
      objects.push_back(worker_of(base, 3));
      objects.push_back(server_of(base, 1));
      objects.push_back(master_service(base));
      objects.push_back(token_secret(base, "0123456789abcdef"));
    }
  job_spec bare = small();
  bare.master = bare.server = bare.worker = {};
  objects.push_back(master_pod(bare));
  objects.push_back(worker_of(bare, 0));
  for (json const& object : objects) {
    CAPTURE(object.dump(1));
    CHECK(edl::testing::kubernetes::empty_fields(object) == std::vector<std::string>{});
  }
  if (!folder) return;
  edl::testing::kubernetes::schema const published(*folder / "openapi");
  for (json const& object : objects) {
    CAPTURE(object.dump(1));
    CHECK(published.errors(object) == std::vector<std::string>{});
  }
  // The validator is no friend that says yes to everything.
  json wrong = worker_of(full(), 0);
  wrong["spec"]["containers"][0]["imagePolicy"] = "Always";
  wrong["spec"]["containers"][0]["env"][0].erase("name");
  wrong["spec"]["terminationGracePeriodSeconds"] = "30";
  wrong["spec"]["volumes"][0]["hostPath"].erase("path");
  wrong["metadata"]["labels"]["n"] = 1;
  CHECK(published.errors(wrong) ==
        std::vector<std::string>{"Pod.metadata.labels.n: is no string but 1",
                                 "Pod.spec.containers[0].env[0].name: is missing",
                                 "Pod.spec.containers[0].imagePolicy: is unknown",
                                 "Pod.spec.terminationGracePeriodSeconds: is no integer but \"30\"",
                                 "Pod.spec.volumes[0].hostPath.path: is missing"});
}

TEST_CASE("the master's pod") {
  json const pod = master_pod(small());
  json const& container = container_of(pod);
  CHECK(pod["metadata"]["name"] == "elasticdl-test-mnist-master");
  CHECK(pod["metadata"]["namespace"] == "rec");
  CHECK(pod["metadata"]["labels"] == json{{"app", "elasticdl"},
                                          {"elasticdl-job-name", "test-mnist"},
                                          {"elasticdl_job_name", "test-mnist"},
                                          {"elasticdl-replica-type", "master"},
                                          {"elasticdl_replica_type", "master"},
                                          {"elasticdl-replica-index", "0"},
                                          {"status", "Pending"}});
  CHECK_FALSE(pod["metadata"].contains("ownerReferences"));
  CHECK(container["name"] == pod["metadata"]["name"]);
  CHECK(container["image"] == "mnist:1");
  CHECK(container["command"] == json{"/mnist", "train", "--training_data=/data/mnist/train"});
  CHECK(container["ports"][0]["containerPort"] == 50001);
  CHECK(pod["spec"]["automountServiceAccountToken"] == true);
  CHECK(pod["spec"]["enableServiceLinks"] == false);
  CHECK(pod["spec"]["terminationGracePeriodSeconds"] == 30);
  for (char const* none : {"serviceAccountName", "priorityClassName", "imagePullSecrets"})
    CHECK_FALSE(pod["spec"].contains(none));

  auto const env = environment_of(pod);
  CHECK(env.at("EDL_ROLE") == "master");
  CHECK(env.at("EDL_PORT") == "50001");
  CHECK(env.at("EDL_JOB_NAME") == "test-mnist");
  CHECK(env.at("EDL_PLATFORM") == "kubernetes");
  CHECK(env.at("EDL_JOURNAL") == "/var/run/edl/master.json");
  CHECK(env.at("WORKER_NUM") == "4");
  CHECK(env.at("HOME") == "/tmp");
  CHECK(env.at("XDG_CACHE_HOME") == "/tmp");
  CHECK(env.at("EDL_JOB_TOKEN") ==
        json{{"secretKeyRef", {{"name", "elasticdl-test-mnist"}, {"key", "token"}}}});
  CHECK(env.at("MY_POD_IP")["fieldRef"]["fieldPath"] == "status.podIP");
  CHECK(env.at("MY_POD_NAME")["fieldRef"]["fieldPath"] == "metadata.name");
  CHECK(env.at("MY_POD_NAMESPACE")["fieldRef"]["fieldPath"] == "metadata.namespace");
  CHECK(env.at("MY_POD_UID")["fieldRef"]["fieldPath"] == "metadata.uid");
  CHECK_FALSE(env.contains("MASTER_ADDR"));
  CHECK(to_json(job_from_json(env.at("EDL_JOB"))) == to_json(small()));

  CHECK(container["volumeMounts"] ==
        json{{{"name", "tmp"}, {"mountPath", "/tmp"}}, {{"name", "journal"}, {"mountPath", "/var/run/edl"}}});
  for (char const* kind : {"startupProbe", "readinessProbe", "livenessProbe"})
    CHECK(container[kind]["tcpSocket"]["port"] == 50001);

  json const named = master_pod(full());
  CHECK(named["spec"]["serviceAccountName"] == "edl");
  CHECK(named["spec"]["priorityClassName"] == "high");
  CHECK(named["spec"]["imagePullSecrets"] == json{{{"name", "registry"}}, {{"name", "other"}}});
  CHECK(container_of(named)["image"] == "mnist:1");
}

TEST_CASE(
    "servers with copies of each other are spread over nodes and zones, unless their template says how") {
  job_spec s = small();
  auto const spread_of = [&](edl::process_id who) {
    return member_pod(s, who, 0, {}, {}, {"m", "u"})["spec"].value("topologySpreadConstraints",
                                                                   json::array());
  };
  CHECK(spread_of({role::server, 0}).empty());
  s.server_copies = 2;
  json const all = spread_of({role::server, 0});
  REQUIRE(all.size() == 2);
  CHECK(all[0]["topologyKey"] == "kubernetes.io/hostname");
  CHECK(all[1]["topologyKey"] == "topology.kubernetes.io/zone");
  for (json const& one : all) {
    CHECK(one["whenUnsatisfiable"] == "ScheduleAnyway");
    CHECK(one["labelSelector"]["matchLabels"] ==
          json{{"elasticdl-job-name", s.name}, {"elasticdl-replica-type", "ps"}});
  }
  CHECK(spread_of({role::worker, 0}).empty());
  s.server_template =
      R"({"spec": {"containers": [{"name": "x", "image": "i"}], "topologySpreadConstraints": [{"maxSkew": 3}]}})";
  CHECK(spread_of({role::server, 0}) == json{{{"maxSkew", 3}}});
}

TEST_CASE("a master that is killed starts again in its pod, one that has failed does not") {
  json const pod = master_pod(small());
  CHECK(pod["spec"]["restartPolicy"] == "Never");
  json const& container = container_of(pod);
  CHECK(container["restartPolicy"] == "Never");
  REQUIRE(container["restartPolicyRules"].size() == 1);
  CHECK(container["restartPolicyRules"][0]["action"] == "Restart");
  CHECK(container["restartPolicyRules"][0]["exitCodes"]["operator"] == "In");
  std::set<int> const codes = container["restartPolicyRules"][0]["exitCodes"]["values"];
  for (int const code : {134, 137, 139, 143}) CHECK(codes.contains(code));
  for (int const code : {0, 1, 2, 130}) CHECK_FALSE(codes.contains(code));

  job_spec s = small();
  auto const plain = [](json const& p) {
    return !container_of(p).contains("restartPolicy") && !container_of(p).contains("restartPolicyRules");
  };
  CHECK(plain(master_pod(s, false)));
  CHECK(plain(worker_of(s, 0)));
  s.restart_policy = "OnFailure";
  CHECK(plain(master_pod(s)));
  CHECK(master_pod(s)["spec"]["restartPolicy"] == "OnFailure");
  CHECK(worker_of(s, 0)["spec"]["restartPolicy"] == "OnFailure");
}

TEST_CASE("a worker's and a server's pod") {
  job_spec const s = full();
  json const worker = worker_of(s, 4), server = server_of(s, 1);
  CHECK(worker["metadata"]["name"] == "elasticdl-test-mnist-worker-4");
  CHECK(server["metadata"]["name"] == "elasticdl-test-mnist-ps-1");
  CHECK(worker["metadata"]["labels"]["elasticdl-replica-type"] == "worker");
  CHECK(worker["metadata"]["labels"]["elasticdl_replica_type"] == "worker");
  CHECK(worker["metadata"]["labels"]["elasticdl-replica-index"] == "4");
  CHECK(worker["metadata"]["labels"]["elasticdl-original-index"] == "4");
  CHECK(server["metadata"]["labels"]["elasticdl-replica-type"] == "ps");
  CHECK(server["metadata"]["labels"]["elasticdl-replica-index"] == "1");
  CHECK_FALSE(server["metadata"]["labels"].contains("elasticdl-original-index"));
  for (json const& pod : {worker, server}) {
    CHECK(pod["metadata"]["labels"]["elasticdl-job-name"] == "test-mnist");
    CHECK_FALSE(pod["metadata"]["labels"].contains("status"));
    CHECK(pod["metadata"]["ownerReferences"] == json{{{"apiVersion", "v1"},
                                                      {"kind", "Pod"},
                                                      {"name", by.name},
                                                      {"uid", by.uid},
                                                      {"controller", true},
                                                      {"blockOwnerDeletion", true}}});
    CHECK(pod["spec"]["automountServiceAccountToken"] == false);
    CHECK_FALSE(pod["spec"].contains("serviceAccountName"));
    CHECK(pod["spec"]["terminationGracePeriodSeconds"] == 5);
    CHECK(container_of(pod)["image"] == "mnist:gpu");
    CHECK(container_of(pod)["imagePullPolicy"] == "IfNotPresent");
    CHECK_FALSE(container_of(pod).contains("livenessProbe"));
    auto const env = environment_of(pod);
    CHECK(env.at("MASTER_ADDR") == "elasticdl-test-mnist-master.rec.svc:50001");
    CHECK(env.at("WORKER_NUM") == "4");
    CHECK(env.at("EDL_JOB_TOKEN").contains("secretKeyRef"));
    for (char const* none : {"EDL_JOB", "EDL_PLATFORM", "EDL_JOURNAL"}) CHECK_FALSE(env.contains(none));
  }
  CHECK(environment_of(worker).at("EDL_PORT") == "3333");
  CHECK(environment_of(server).at("EDL_PORT") == "2222");
  CHECK(environment_of(worker).at("EDL_ROLE") == "worker");
  CHECK(environment_of(worker).at("WORKER_ID") == "4");
  CHECK_FALSE(environment_of(worker).contains("PS_ID"));
  CHECK(environment_of(server).at("EDL_ROLE") == "ps");
  CHECK(environment_of(server).at("PS_ID") == "1");
  CHECK_FALSE(environment_of(server).contains("WORKER_ID"));
  CHECK(container_of(worker)["ports"][0]["containerPort"] == 3333);
  CHECK(container_of(server)["ports"][0]["containerPort"] == 2222);
  CHECK(container_of(server)["readinessProbe"]["tcpSocket"]["port"] == 2222);
  CHECK_FALSE(container_of(worker).contains("readinessProbe"));
}

TEST_CASE("the user's variables go before what is usual, and never before what is the job's own") {
  job_spec s = small();
  s.variables = {{"A", "1"},           {"HOME", "/home"},          {"A", "2"},           {"EDL_ROLE", "ps"},
                 {"MASTER_ADDR", "x"}, {"EDL_JOB_TOKEN", "clear"}, {"EDL_JOURNAL", "/x"}};
  auto const env = environment_of(worker_of(s, 1));
  CHECK(env.at("A") == "2");
  CHECK(env.at("HOME") == "/home");
  CHECK(env.at("MASTER_ADDR") == master_address(s));
  CHECK(env.at("EDL_ROLE") == "worker");
  CHECK(env.at("EDL_JOB_TOKEN").contains("secretKeyRef"));
  CHECK_FALSE(env.contains("EDL_JOURNAL"));
}

TEST_CASE("what looks like a reference to Kubernetes arrives as it was written") {
  job_spec s = full();
  s.command.push_back("--note=$(HOME) $$ $");
  json const pod = master_pod(s);
  CHECK(container_of(pod)["command"].back() == "--note=$$(HOME) $$$$ $$");
  CHECK(environment_of(pod).at("NOTE") == "$$(MY_POD_IP) costs $$$$5");
}

TEST_CASE("a worker has the priority of the place that it takes") {
  job_spec s = small();
  s.worker.priority = "0.5";
  auto const priority = [&](std::uint32_t id, std::uint32_t index) {
    json const pod = member_pod(s, {role::worker, id}, index, {}, {}, by);
    CHECK(pod["metadata"]["labels"]["elasticdl-original-index"] == std::to_string(index));
    return pod["spec"].value("priorityClassName", "none");
  };
  CHECK(priority(0, 0) == "high");
  CHECK(priority(1, 1) == "low");
  CHECK(priority(2, 2) == "low");
  CHECK(priority(3, 3) == "high");
  CHECK(priority(4, 3) == "high");
  CHECK(priority(5, 1) == "low");
  s.worker.priority = "";
  CHECK(priority(0, 0) == "none");
}

TEST_CASE("requests and limits are those given; the limit is the request where there is none") {
  job_spec const s = full();
  json const as_is = container_of(worker_of(s, 0))["resources"];
  CHECK(as_is == json{{"requests", {{"cpu", "1"}, {"nvidia.com/gpu", "1"}}},
                      {"limits", {{"cpu", "2"}, {"memory", "4096Mi"}, {"nvidia.com/gpu", "1"}}}});
  CHECK(container_of(server_of(s, 0))["resources"]["limits"] == json{{"cpu", "1"}, {"memory", "4096Mi"}});
  json const more = member_pod(s, {role::worker, 1}, 1, {{"memory", "2Gi"}}, {{"memory", "8Gi"}}, by);
  CHECK(container_of(more)["resources"] ==
        json{{"requests", {{"memory", "2Gi"}}}, {"limits", {{"memory", "8Gi"}}}});
  CHECK_FALSE(container_of(member_pod(s, {role::worker, 1}, 1, {}, {}, by)).contains("resources"));
}

TEST_CASE("a volume that is mounted twice is there once") {
  json const pod = worker_of(full(), 0);
  std::string const name = "elasticdl-test-mnist-worker-0-volume-";
  CHECK(pod["spec"]["volumes"] ==
        json{{{"name", name + "0"}, {"hostPath", {{"path", "/data"}, {"type", "Directory"}}}},
             {{"name", name + "1"}, {"persistentVolumeClaim", {{"claimName", "c"}}}},
             {{"name", name + "2"}, {"hostPath", {{"path", "/data"}}}},
             {{"name", "tmp"}, {"emptyDir", json::object()}}});
  CHECK(container_of(pod)["volumeMounts"] ==
        json{{{"name", name + "0"}, {"mountPath", "/data"}},
             {{"name", name + "1"}, {"mountPath", "/a"}, {"subPath", "x"}},
             {{"name", name + "1"}, {"mountPath", "/b"}, {"readOnly", true}},
             {{"name", name + "2"}, {"mountPath", "/untyped"}},
             {{"name", "tmp"}, {"mountPath", "/tmp"}}});
  job_spec s = small();
  s.name = std::string(longest_job_name - 1, 'x') + "y";
  s.volumes = parse_volumes("claim_name=c,mount_path=/tmp;claim_name=d,mount_path=/var/run/edl");
  json const long_named = member_pod(s, {role::worker, 99'999}, 0, {}, {}, by);
  for (json const& v : long_named["spec"]["volumes"]) CHECK(v["name"].get<std::string>().size() <= 63);
  CHECK(long_named["spec"]["volumes"].size() == 2);  // what the user mounts is not mounted over
  CHECK(master_pod(s)["spec"]["volumes"].size() == 2);
}

TEST_CASE("containers run without rights") {
  for (json const& pod : {master_pod(small()), worker_of(small(), 0), server_of(small(), 0)}) {
    json const& user = pod["spec"]["securityContext"];
    CHECK(user["runAsNonRoot"] == true);
    for (char const* id : {"runAsUser", "runAsGroup", "fsGroup"}) CHECK(user[id] == 65532);
    CHECK(user["seccompProfile"]["type"] == "RuntimeDefault");
    CHECK(container_of(pod)["securityContext"] == json{{"allowPrivilegeEscalation", false},
                                                       {"readOnlyRootFilesystem", true},
                                                       {"capabilities", {{"drop", json::array({"ALL"})}}}});
  }
}

TEST_CASE("the master's Service stands for the address of its pod") {
  json const service = master_service(small());
  CHECK(service["metadata"]["name"] == "elasticdl-test-mnist-master");
  CHECK(service["metadata"]["namespace"] == "rec");
  CHECK(service["spec"]["clusterIP"] == "None");
  CHECK(service["spec"]["publishNotReadyAddresses"] == true);
  CHECK(service["spec"]["ports"] ==
        json{{{"name", "master"}, {"port", 50001}, {"targetPort", 50001}, {"protocol", "TCP"}}});
  auto const found_by = [&](json const& pod) {
    for (auto const& [name, value] : service["spec"]["selector"].items())
      if (value != pod["metadata"]["labels"].value(name, "")) return false;
    return true;
  };
  CHECK(found_by(master_pod(small())));
  CHECK_FALSE(found_by(worker_of(small(), 0)));
  job_spec other = small();
  other.name = "other";
  CHECK_FALSE(found_by(master_pod(other)));
  CHECK(master_address(small()) == "elasticdl-test-mnist-master.rec.svc:50001");
  CHECK(master_service(full())["spec"]["ipFamilyPolicy"] == "PreferDualStack");
}

TEST_CASE("the secret holds the token, and both can be given to the master's pod") {
  json const secret = token_secret(small(), "0123456789abcdef");
  CHECK(secret["metadata"]["name"] == secret_name(small()));
  CHECK(secret["metadata"]["labels"]["elasticdl-job-name"] == "test-mnist");
  CHECK(secret["stringData"] == json{{"token", "0123456789abcdef"}});
  json const patch = owned_by(by);
  json owners = worker_of(small(), 0)["metadata"]["ownerReferences"];
  owners[0]["controller"] = false;  // a master makes no other secret in the place of one that is lost
  CHECK(patch == json{{"metadata", {{"ownerReferences", owners}}}});
}

}  // namespace objects_test

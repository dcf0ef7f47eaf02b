// SPDX-License-Identifier: Apache-2.0
// The files of k8s/, which people apply by hand.
#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "edl/cluster/kubernetes/objects.hpp"
#include "kubernetes/schema.hpp"
#include "kubernetes/yaml.hpp"
#include "scratch_directory.hpp"

namespace manifests_test {

using namespace edl::platform;
using namespace edl::kubernetes;
using edl::role;
using edl::testing::kubernetes::read_yaml;
using nlohmann::json;

namespace {

std::string const folder = EDL_MANIFESTS;

/// Policies are of groups whose schemas are not among the recorded ones: as far as k8s/ uses them.
json const policies = R"({
  "policy": {"x-kubernetes-group-version-kind": [{"group": "networking.k8s.io", "version": "v1", "kind": "NetworkPolicy"}],
    "type": "object", "required": ["spec"], "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"},
      "metadata": {"type": "object", "required": ["name"]}, "spec": {"$ref": "#/spec"}}},
  "budget": {"x-kubernetes-group-version-kind": [{"group": "policy", "version": "v1", "kind": "PodDisruptionBudget"}],
    "type": "object", "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"},
      "metadata": {"type": "object", "required": ["name"]}, "spec": {"type": "object", "properties": {
        "maxUnavailable": {"oneOf": [{"type": "integer"}, {"type": "string"}]}, "selector": {"$ref": "#/selector"}}}}},
  "spec": {"type": "object", "required": ["podSelector"], "properties": {"podSelector": {"$ref": "#/selector"},
    "policyTypes": {"type": "array", "items": {"type": "string"}},
    "ingress": {"type": "array", "items": {"type": "object", "properties": {
      "from": {"type": "array", "items": {"$ref": "#/peer"}}, "ports": {"type": "array", "items": {"$ref": "#/port"}}}}},
    "egress": {"type": "array", "items": {"type": "object", "properties": {
      "to": {"type": "array", "items": {"$ref": "#/peer"}}, "ports": {"type": "array", "items": {"$ref": "#/port"}}}}}}},
  "peer": {"type": "object", "properties": {"podSelector": {"$ref": "#/selector"},
    "namespaceSelector": {"$ref": "#/selector"}, "ipBlock": {"type": "object", "required": ["cidr"],
      "properties": {"cidr": {"type": "string"}, "except": {"type": "array", "items": {"type": "string"}}}}}},
  "port": {"type": "object", "properties": {"protocol": {"type": "string"}, "endPort": {"type": "integer"},
    "port": {"oneOf": [{"type": "integer"}, {"type": "string"}]}}},
  "selector": {"type": "object", "properties": {"matchLabels": {"type": "object",
    "additionalProperties": {"type": "string"}}}}
})"_json;

/// The job of k8s/demo-minikube.yaml, whose header has its command line.
job_spec minikube() {
  job_spec s;
  s.name = "test-mnist";
  s.image = "edl:mnist";
  s.image_pull_policy = "Never";
  s.command = {"mnist",
               "train",
               "--job_name=test-mnist",
               "--distribution_strategy=ParameterServerStrategy",
               "--num_workers=1",
               "--num_ps_pods=1",
               "--training_data=/data/mnist/train",
               "--validation_data=/data/mnist/test",
               "--num_epochs=2",
               "--minibatch_size=64",
               "--num_minibatches_per_task=2",
               "--evaluation_steps=50"};
  s.num_workers = 1;
  s.num_servers = 1;
  s.master = {{{"cpu", "0.2"}, {"memory", "1024Mi"}}, {{"cpu", "1"}, {"memory", "2048Mi"}}, ""};
  s.worker = {{{"cpu", "0.4"}, {"memory", "1024Mi"}}, {{"cpu", "1"}, {"memory", "2048Mi"}}, ""};
  s.server = s.master;
  s.service_account = "edl";
  s.volumes = parse_volumes("host_path=/data,mount_path=/data");
  return s;
}

/// The job of k8s/demo-cluster.yaml.
job_spec cluster() {
  job_spec s = minikube();
  s.image = "registry.example.com/edl:mnist";
  s.image_pull_policy = "Always";
  s.command = {"mnist",
               "train",
               "--job_name=test-mnist",
               "--distribution_strategy=ParameterServerStrategy",
               "--num_workers=4",
               "--num_ps_pods=2",
               "--training_data=/data/mnist/train",
               "--validation_data=/data/mnist/test",
               "--num_epochs=5",
               "--minibatch_size=64",
               "--num_minibatches_per_task=64",
               "--evaluation_steps=200",
               "--grads_to_wait=1"};
  s.num_workers = 4;
  s.num_servers = 2;
  resources const each{{"cpu", "2"}, {"memory", "2048Mi"}};
  s.master = s.server = {each, each, "high"};
  s.worker = {each, each, "low"};
  s.volumes = parse_volumes("mount_path=/data,claim_name=fileserver-claim");
  return s;
}

std::vector<json> objects_of(job_spec const& s, std::string const& token) {
  check(s);
  return {token_secret(s, token), master_service(s), master_pod(s)};
}

/// The schema of TrainingJobs, as a server that knows them publishes it.
json training_jobs(json const& definition) {
  json const& spec = definition.at("spec");
  json kind = spec.at("versions").at(0).at("schema").at("openAPIV3Schema");
  kind["x-kubernetes-group-version-kind"] = {{{"group", spec.at("group")},
                                              {"version", spec.at("versions").at(0).at("name")},
                                              {"kind", spec.at("names").at("kind")}}};
  return {{"TrainingJob", kind}};
}

/// All objects of all files, by file; what Kustomize reads is none of the API server's.
std::map<std::string, std::vector<json>> manifests() {
  std::map<std::string, std::vector<json>> all;
  for (auto const& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".yaml" && entry.path().stem() != "kustomization")
      all[entry.path().filename()] = read_yaml(entry.path());
  return all;
}

}  // namespace

TEST_CASE("every manifest is one that the API server publishes, and has no empty field") {
  auto const all = manifests();
  std::set<std::string> names;
  for (auto const& [file, objects] : all) names.insert(file);
  CHECK(names == std::set<std::string>{"claim.yaml", "controller-kueue.yaml", "controller-podgroups.yaml",
                                       "controller-of-namespace.yaml", "controller.yaml", "demo-cluster.yaml",
                                       "demo-minikube.yaml", "network-policy.yaml", "nginx.yaml",
                                       "priority-high.yaml", "priority-low.yaml", "rbac.yaml", "serve.yaml",
                                       "trainingjob-crd.yaml", "trainingjob-example.yaml",
                                       "trainingjob-spot.yaml", "volume-pod.yaml"});
  auto const recorded = edl::testing::kubernetes::recordings();
  if (!recorded) return;
  edl::testing::kubernetes::schema published(*recorded / "openapi");
  published.add(policies);
  published.add(training_jobs(all.at("trainingjob-crd.yaml").at(0)));
  for (auto const& [file, objects] : all) {
    CAPTURE(file);
    CHECK_FALSE(objects.empty());
    for (json const& object : objects) {
      CHECK(published.errors(object) == std::vector<std::string>{});
      auto empty = edl::testing::kubernetes::empty_fields(object);
      std::erase_if(empty, [](std::string const& at) {
        return at.ends_with("namespaceSelector") ||  // all namespaces
               at.ends_with("/subresources/status") || at.ends_with("/flags/default") ||
               (at.starts_with("/rules/") && at.ends_with("/apiGroups/0"));  // the core group
      });
      CHECK(empty == std::vector<std::string>{});
    }
  }
}

TEST_CASE("Kustomize's base has what the two files of the controller have") {
  if (std::system("command -v kubectl >/dev/null")) {
    MESSAGE("skipped: kubectl is not installed");
    return;
  }
  scratch const out;
  std::string const file = out / "base.yaml";
  REQUIRE(std::system(("kubectl kustomize '" + folder + "' >'" + file + "'").c_str()) == 0);
  std::multiset<json> wanted;
  for (auto const& name : {"/trainingjob-crd.yaml", "/controller.yaml"})
    for (json const& object : read_yaml(folder + name)) wanted.insert(object);
  auto const made = read_yaml(file);
  CHECK(std::multiset<json>(made.begin(), made.end()) == wanted);
}

TEST_CASE("the demo jobs are what the library makes of their command lines") {
  for (auto const& [file, spec] :
       {std::pair{"/demo-minikube.yaml", minikube()}, std::pair{"/demo-cluster.yaml", cluster()}}) {
    CAPTURE(file);
    auto const there = read_yaml(folder + file);
    REQUIRE(there.size() == 3);
    std::string const token = there[0].at("stringData").at("token");
    CHECK(token.size() >= 16);
    auto const made = objects_of(spec, token);
    for (std::size_t i = 0; i < made.size(); ++i) CHECK(json::diff(there[i], made[i]) == json::array());
    CHECK(to_json(job_from_json(to_json(spec))) == to_json(spec));
  }
}

TEST_CASE("the role lets a master do what it does, and no more") {
  auto const objects = read_yaml(folder + "/rbac.yaml");
  REQUIRE(objects.size() == 3);
  std::map<std::string, std::set<std::string>> allowed;
  for (json const& rule : objects[1].at("rules")) {
    CHECK(rule.at("apiGroups") == json::array({""}));
    for (std::string const what : rule.at("resources"))
      for (std::string const verb : rule.at("verbs")) allowed[what].insert(verb);
  }
  CHECK(allowed == std::map<std::string, std::set<std::string>>{
                       {"pods", {"create", "get", "list", "watch", "patch", "delete"}},
                       {"pods/resize", {"patch"}},
                       {"pods/finalizers", {"update"}},
                       {"events", {"create", "patch"}}});
  CHECK(objects[2].at("roleRef").at("name") == objects[1].at("metadata").at("name"));
  CHECK(objects[2].at("subjects")[0].at("name") == objects[0].at("metadata").at("name"));
  CHECK(master_pod(minikube())["spec"]["serviceAccountName"] == objects[0].at("metadata").at("name"));
}

TEST_CASE("the controller may do what it does, and no more") {
  auto const objects = read_yaml(folder + "/controller.yaml");
  std::map<std::string, json> kinds;
  for (json const& o : objects) kinds[o.at("kind")] = o;
  REQUIRE(kinds.size() == 8);
  std::map<std::string, std::set<std::string>> allowed;
  for (char const* kind : {"ClusterRole", "Role"})
    for (json const& rule : kinds[kind].at("rules"))
      for (std::string const what : rule.at("resources"))
        for (std::string const verb : rule.at("verbs")) allowed[what].insert(verb);
  CHECK(allowed == std::map<std::string, std::set<std::string>>{
                       {"nodes", {"list", "watch"}},
                       {"priorityclasses", {"list", "watch"}},
                       {"trainingjobs", {"get", "list", "watch", "delete"}},
                       {"trainingjobs/status", {"patch"}},
                       {"trainingjobs/finalizers", {"update"}},
                       {"pods", {"create", "get", "list", "watch", "patch", "delete"}},
                       {"services", {"create", "get"}},
                       {"secrets", {"create"}},
                       {"events", {"create"}},
                       {"leases", {"create", "get", "update"}}});
  json const& account = kinds["ServiceAccount"]["metadata"];
  for (char const* kind : {"ClusterRoleBinding", "RoleBinding"}) {
    CHECK(kinds[kind]["subjects"][0]["name"] == account["name"]);
    CHECK(kinds[kind]["subjects"][0]["namespace"] == account["namespace"]);
  }
  CHECK(kinds["Namespace"]["metadata"]["name"] == account["namespace"]);
  json const pod = kinds["Deployment"]["spec"]["template"];
  CHECK(kinds["Deployment"]["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]);
  CHECK(pod["spec"]["serviceAccountName"] == account["name"]);
  CHECK(pod["spec"]["containers"][0]["command"][0] == "edl-controller");
  // The lease is asked for by the name that the role allows.
  CHECK(kinds["Role"]["rules"][1]["resourceNames"] == json::array({"edl-controller"}));
}

TEST_CASE("the controller of a namespace may do there what that of a cluster may, and elsewhere only look") {
  auto const rights = [](std::string const& file, std::string const& kind) {
    std::map<std::string, std::set<std::string>> out;
    for (json const& o : read_yaml(folder + file))
      if (kind.empty() ? o.at("kind") == "Role" || o.at("kind") == "ClusterRole" : o.at("kind") == kind)
        for (json const& rule : o.at("rules"))
          for (std::string const what : rule.at("resources"))
            for (std::string const verb : rule.at("verbs")) out[what].insert(verb);
    return out;
  };
  char const* const mine = "/controller-of-namespace.yaml";
  CHECK(rights(mine, "") == rights("/controller.yaml", ""));
  for (auto const& [what, verbs] : rights(mine, "ClusterRole"))
    CHECK(verbs == std::set<std::string>{"list", "watch"});
  for (json const& o : read_yaml(folder + mine)) {
    bool const wide = std::string(o.at("kind")).starts_with("Cluster");
    CHECK(o.at("metadata").value("namespace", "") == (wide ? "" : "team-a"));
    if (o.at("kind") == "Deployment")
      CHECK(o["spec"]["template"]["spec"]["containers"][0]["command"][1] == "--namespace=team-a");
  }
}

TEST_CASE("a node is drained of one replica of the controller at a time") {
  for (char const* file : {"/controller.yaml", "/controller-of-namespace.yaml"}) {
    CAPTURE(file);
    std::map<std::string, json> kinds;
    for (json const& o : read_yaml(folder + file)) kinds[o.at("kind")] = o;
    json const &budget = kinds["PodDisruptionBudget"], &of = kinds["Deployment"];
    REQUIRE(budget.is_object());
    CHECK(budget["spec"]["maxUnavailable"] == 1);
    CHECK(budget["spec"]["selector"] == of["spec"]["selector"]);
    CHECK(budget["metadata"]["namespace"] == of["metadata"]["namespace"]);
    CHECK(of["spec"]["replicas"] > 1);
  }
}

TEST_CASE("rights for queues and gangs are given by files of their own, to the controller's account") {
  auto const controller = read_yaml(folder + "/controller.yaml");
  std::string account;
  for (json const& o : controller)
    if (o.at("kind") == "ServiceAccount") account = o.at("metadata").at("name");
  std::map<std::string, std::map<std::string, std::set<std::string>>> allowed;
  for (char const* file : {"/controller-kueue.yaml", "/controller-podgroups.yaml"})
    for (json const& o : read_yaml(folder + file)) {
      std::string const name = o.at("metadata").at("name");
      if (o.at("kind") == "ClusterRole") {
        for (json const& rule : o.at("rules"))
          for (std::string const what : rule.at("resources"))
            for (std::string const verb : rule.at("verbs")) allowed[name][what].insert(verb);
      } else {
        CHECK(o.at("roleRef").at("name") == name);
        bool const kueues = name == "kueue-trainingjobs";
        CHECK(o.at("subjects")[0].at("name") == (kueues ? "kueue-controller-manager" : account));
      }
    }
  CHECK(allowed["edl-controller-kueue"] ==
        std::map<std::string, std::set<std::string>>{
            {"workloads", {"create", "get", "list", "watch", "patch", "delete"}},
            {"workloads/status", {"patch"}},
            {"resourceflavors", {"list", "watch"}},
            {"workloadpriorityclasses", {"list", "watch"}}});
  CHECK(allowed["edl-controller-podgroups"] ==
        std::map<std::string, std::set<std::string>>{{"podgroups", {"create", "patch"}}});
  CHECK(allowed["kueue-trainingjobs"] ==
        std::map<std::string, std::set<std::string>>{{"trainingjobs", {"get", "list", "watch"}}});
}

TEST_CASE("the classes are those that flags name, and the service goes before the workers") {
  std::map<std::string, int> value;
  for (char const* file : {"/priority-high.yaml", "/priority-low.yaml"})
    for (json const& object : read_yaml(folder + file))
      value[object.at("metadata").at("name")] = object.at("value");
  CHECK(value == std::map<std::string, int>{{"high", 1'000'000}, {"low", 1000}});
  json const nginx = read_yaml(folder + "/nginx.yaml").at(0);
  CHECK(value.at(nginx["spec"]["template"]["spec"]["priorityClassName"]) >
        value.at(cluster().worker.priority));
  CHECK(nginx["spec"]["selector"]["matchLabels"] == nginx["spec"]["template"]["metadata"]["labels"]);
}

TEST_CASE("the policy is for the pods that jobs have, and for the ports that they listen on") {
  auto const policy = read_yaml(folder + "/network-policy.yaml");
  REQUIRE(policy.size() == 2);
  std::set<int> ports;
  for (json const& port : policy[0]["spec"]["ingress"][0]["ports"]) ports.insert(int(port["port"]));
  CHECK(ports == std::set<int>{master_port, server_port, worker_port});
  CHECK(policy[0]["spec"]["egress"][0]["ports"] == policy[0]["spec"]["ingress"][0]["ports"]);
  json const master = master_pod(minikube())["metadata"]["labels"];
  json const worker = member_pod(minikube(), {role::worker, 0}, 0, {}, {}, {"m", "u"})["metadata"]["labels"];
  auto const chosen = [](json const& selector, json const& labels) {
    for (auto const& [name, text] : selector["matchLabels"].items())
      if (text != labels.value(name, "")) return false;
    return true;
  };
  for (json const& selector :
       {policy[0]["spec"]["podSelector"], policy[0]["spec"]["ingress"][0]["from"][0]["podSelector"],
        policy[0]["spec"]["egress"][0]["to"][0]["podSelector"]}) {
    CHECK(chosen(selector, master));
    CHECK(chosen(selector, worker));
  }
  CHECK(chosen(policy[1]["spec"]["podSelector"], master));
  CHECK_FALSE(chosen(policy[1]["spec"]["podSelector"], worker));
}

TEST_CASE("the pod that data is copied through mounts the claim that jobs mount") {
  json const claim = read_yaml(folder + "/claim.yaml").at(0),
             pod = read_yaml(folder + "/volume-pod.yaml").at(0);
  std::string const name = claim["metadata"]["name"];
  CHECK(pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == name);
  CHECK(cluster().volumes.at(0).claim_name == name);
  json const job = master_pod(cluster());
  for (char const* id : {"runAsUser", "fsGroup"})
    CHECK(pod["spec"]["securityContext"][id] == job["spec"]["securityContext"][id]);
}

}  // namespace manifests_test

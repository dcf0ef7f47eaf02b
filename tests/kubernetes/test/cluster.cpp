// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>

#include "kubernetes/test/support.hpp"

namespace edl::testing::kubernetes {
namespace {

std::string const deployments = "/apis/apps/v1/namespaces/default/deployments";

options fast(std::vector<node> nodes = {node{}}) {
  return {.nodes = std::move(nodes), .second = std::chrono::milliseconds(50)};
}

json sized(std::string const& name, std::string const& cpu, std::string const& priority = "") {
  json p = pod(name, "sleep 600; true");
  p["spec"]["containers"][0]["resources"] = {{"requests", {{"cpu", cpu}}}};
  if (!priority.empty()) p["spec"]["priorityClassName"] = priority;
  return p;
}

void classes(cluster& c) {
  for (auto const& [name, value] : {std::pair{"low", 1000}, {"middle", 2000}, {"high", 1000000}})
    c.post("/apis/scheduling.k8s.io/v1/priorityclasses", {{"metadata", {{"name", name}}}, {"value", value}});
}

json items(cluster& c, std::string const& path) { return c.get(path)["items"]; }

bool running(cluster& c, std::string const& name) { return phase(c, name) == "Running"; }
bool gone(cluster& c, std::string const& name) { return c.get(pods + "/" + name)["code"] == 404; }

json reason(cluster& c, std::string const& name) {
  json const all = status(c, name).value("conditions", json::array());
  return all.empty() ? json() : all[0].value("message", json());
}

json events_of(cluster& c, std::string const& name) {
  return items(c, "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3D" + name);
}

json nginx(int replicas, std::string const& cpu = "100m") {
  json of = sized("x", cpu, "high");
  of["spec"]["restartPolicy"] = "Always";
  return {{"kind", "Deployment"},
          {"apiVersion", "apps/v1"},
          {"metadata", {{"name", "test-nginx"}}},
          {"spec",
           {{"replicas", replicas},
            {"selector", {{"matchLabels", {{"app", "nginx"}}}}},
            {"template", {{"metadata", {{"labels", {{"app", "nginx"}}}}}, {"spec", of["spec"]}}}}}};
}

}  // namespace

TEST_CASE("the scheduler fills nodes, and says why a pod waits") {
  cluster c(fast({{"a", "2", "4Gi"}, {"b", "1", "4Gi", {}, {{"disk", "fast"}}}}));
  for (auto const& [name, cpu] : {std::pair{"p0", "2"}, {"p1", "1"}, {"p2", "1"}})
    c.post(pods, sized(name, cpu));
  json picky = sized("picky", "1");
  picky["spec"]["nodeSelector"] = {{"disk", "slow"}};
  c.post(pods, picky);
  REQUIRE(c.wait([&] { return running(c, "p0") && running(c, "p1"); }));
  CHECK(c.get(pods + "/p0")["spec"]["nodeName"] == "a");
  CHECK(c.get(pods + "/p1")["spec"]["nodeName"] == "b");
  REQUIRE(c.wait([&] { return reason(c, "picky").is_string() && reason(c, "p2").is_string(); }));
  CHECK(reason(c, "p2") ==
        "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are "
        "available: 2 No preemption victims found for incoming pod.");
  CHECK(reason(c, "picky") ==
        "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. no new claims to "
        "deallocate, "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.");
  CHECK(c.wait([&] { return events_of(c, "p2").size() == 1; }));
  c.remove(pods + "/p0");
  CHECK(c.wait([&] { return running(c, "p2"); }));
}

TEST_CASE("as few and as unimportant pods as possible are preempted") {
  cluster c(fast({{"a", "3", "4Gi"}}));
  classes(c);
  c.post(pods, sized("middle", "1", "middle"));
  REQUIRE(c.wait([&] { return running(c, "middle"); }));
  for (char const* name : {"low0", "low1"}) {
    c.post(pods, sized(name, "1", "low"));
    REQUIRE(c.wait([&] { return running(c, name); }));
  }
  c.post(pods, sized("high", "1", "high"));
  REQUIRE(c.wait([&] { return running(c, "high"); }));
  CHECK(c.wait([&] { return gone(c, "low1"); }));
  CHECK(running(c, "low0"));
  CHECK(running(c, "middle"));
  c.post(pods, sized("low2", "1", "low"));  // has no one to preempt
  REQUIRE(c.wait([&] { return reason(c, "low2").is_string(); }));
  CHECK(running(c, "low0"));
}

TEST_CASE("a pod of no kind of image waits with the kubelet's words") {
  cluster c({.images = {{"mnist:1", {}}}, .second = std::chrono::milliseconds(20)});
  json p = pod("w", "true");
  p["spec"]["containers"][0]["image"] = "mnist:2";
  c.post(pods, p);
  REQUIRE(c.wait([&] {
    return container(c, "w").value("/state/waiting/reason"_json_pointer, "") == "ImagePullBackOff";
  }));
  CHECK(container(c, "w")["state"]["waiting"]["message"].get<std::string>().starts_with(
      "Back-off pulling image \"mnist:2\": ErrImagePull: "));
  p["metadata"]["name"] = "lost";
  p["spec"]["containers"][0]["image"] = "mnist:1";
  p["spec"]["containers"][0]["command"] = {"no-such-program"};
  c.post(pods, p);
  REQUIRE(c.wait([&] { return phase(c, "lost") == "Failed"; }));
  CHECK(container(c, "lost")["state"]["terminated"]["reason"] == "StartError");
}

TEST_CASE("a pod waits for the secret that it refers to") {
  cluster c({.second = std::chrono::milliseconds(20)});
  json p = pod("w", "echo $T");
  p["spec"]["containers"][0]["env"] = {
      {{"name", "T"}, {"valueFrom", {{"secretKeyRef", {{"name", "s"}, {"key", "token"}}}}}}};
  c.post(pods, p);
  REQUIRE(c.wait([&] {
    return container(c, "w").value("/state/waiting/message"_json_pointer, "") == "secret \"s\" not found";
  }));
  c.post("/api/v1/namespaces/default/secrets",
         {{"metadata", {{"name", "s"}}}, {"stringData", {{"token", "open"}}}});
  REQUIRE(c.wait([&] { return phase(c, "w") == "Succeeded"; }));
  CHECK(c.log("default", "w") == "open\n");
}

TEST_CASE("a failing container is started again after growing pauses") {
  cluster c({.second = std::chrono::milliseconds(5)});
  json p = pod("w", "exit 2");
  p["spec"]["restartPolicy"] = "OnFailure";
  c.post(pods, p);
  bool seen = false;
  CHECK(c.wait([&] {
    seen |= container(c, "w").value("/state/waiting/reason"_json_pointer, "") == "CrashLoopBackOff";
    return container(c, "w").value("restartCount", 0) >= 3;
  }));
  CHECK(seen);
}

TEST_CASE("out of memory is what the kernel would say") {
  cluster c;
  c.post(pods, sized("w", "1"));
  REQUIRE(c.wait([&] { return running(c, "w"); }));
  c.out_of_memory("default", "w");
  REQUIRE(c.wait([&] { return phase(c, "w") == "Failed"; }));
  CHECK(container(c, "w")["state"]["terminated"]["reason"] == "OOMKilled");
  CHECK(container(c, "w")["state"]["terminated"]["exitCode"] == 137);
}

TEST_CASE("a deployment keeps its pods") {
  cluster c(fast());
  classes(c);
  c.post(deployments, nginx(3));
  auto const alive = [&] {
    json out = items(c, pods + "?labelSelector=app%3Dnginx");
    out.erase(std::remove_if(out.begin(), out.end(),
                             [](json const& p) {
                               return p["metadata"].contains("deletionTimestamp") ||
                                      p["status"]["phase"] != "Running";
                             }),
              out.end());
    return out;
  };
  REQUIRE(c.wait([&] { return alive().size() == 3; }));
  std::string const first = alive()[0]["metadata"]["name"];
  CHECK(first.size() == std::string("test-nginx-7585fc5976-5hs7h").size());
  c.remove(pods + "/" + first);
  REQUIRE(c.wait([&] { return alive().size() == 3 && gone(c, first); }));
  c.call("PATCH", deployments + "/test-nginx/scale", {{"spec", {{"replicas", 1}}}});
  REQUIRE(c.wait([&] { return items(c, pods).size() == 1; }));
  CHECK(c.wait([&] { return c.get(deployments + "/test-nginx")["status"]["readyReplicas"] == 1; }));
  c.remove(deployments + "/test-nginx");
  CHECK(c.wait([&] { return items(c, pods).empty(); }));
}

TEST_CASE("a strict server before 1.35 refuses fields that it does not know") {
  cluster c({.minor = 34});
  CHECK(c.get("/version")["minor"] == "34");
  json p = pod("p", "sleep 600");
  p["spec"]["containers"][0]["restartPolicyRules"] = json::array();
  json const said = c.post(pods, p);
  CHECK(said["code"] == 400);
  CHECK(said["message"].get<std::string>().find("strict decoding error: unknown field") != std::string::npos);
}

TEST_CASE("a quota refuses pods in the server's words") {
  cluster c(fast());
  c.post("/api/v1/namespaces/default/resourcequotas",
         {{"metadata", {{"name", "compute"}}}, {"spec", {{"hard", {{"requests.cpu", "2"}, {"pods", "4"}}}}}});
  CHECK(c.post(pods, sized("w0", "1500m"))["kind"] == "Pod");
  json const no = c.post(pods, sized("w1", "1"));
  CHECK(no["code"] == 403);
  CHECK(no["message"] ==
        "pods \"w1\" is forbidden: exceeded quota: compute, requested: requests.cpu=1, used: "
        "requests.cpu=1500m, "
        "limited: requests.cpu=2");
  CHECK(c.post(pods, pod("w2", "true"))["message"] ==
        "pods \"w2\" is forbidden: failed quota: compute: must specify requests.cpu for: main");
}

TEST_CASE("rules refuse, and a review says so before") {
  cluster c({.forbidden = {{"create", "pods"}, {"get", "pods/log", "default"}}});
  json const no = c.post(pods, pod("w", "true"));
  CHECK(no["code"] == 403);
  CHECK(
      no["message"] ==
      "pods is forbidden: User \"kubernetes-admin\" cannot create resource \"pods\" in API group \"\" in the "
      "namespace \"default\"");
  auto const may = [&](std::string const& verb, std::string const& resource) {
    return c.post(
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {{"spec",
          {{"resourceAttributes",
            {{"verb", verb}, {"resource", resource}, {"namespace", "default"}}}}}})["status"]["allowed"];
  };
  CHECK(may("create", "pods") == false);
  CHECK(may("list", "pods") == true);
}

TEST_CASE("patches, dry runs, generated names and stale versions") {
  cluster c(fast());
  json p = pod("", "sleep 600");
  p["metadata"] = {{"generateName", "w-"}};
  CHECK(c.call("POST", pods + "?dryRun=All", p)["kind"] == "Pod");
  CHECK(items(c, pods).empty());
  std::string const name = c.post(pods, p)["metadata"]["name"];
  CHECK(name.size() == 7);
  std::string const path = pods + "/" + name;
  c.call("PATCH", path, {{"metadata", {{"labels", {{"a", "1"}, {"b", "2"}}}}}});
  c.call("PATCH", path, {{{"op", "remove"}, {"path", "/metadata/labels/a"}}}, "application/json-patch+json");
  json const main{{"name", "main"}, {"image", "other"}};
  json const strategic =
      c.call("PATCH", path, {{"spec", {{"containers", {main}}}}}, "application/strategic-merge-patch+json");
  CHECK(strategic["metadata"]["labels"] == json{{"b", "2"}});
  CHECK(strategic["spec"]["containers"][0]["image"] == "other");
  CHECK(strategic["spec"]["containers"][0]["command"][0] == "sh");
  CHECK(c.call("PATCH", path, {{"spec", {{"nodeName", "elsewhere"}}}})["code"] == 422);
  CHECK(c.call("PATCH", path, {{"metadata", {{"resourceVersion", "1"}}}})["code"] == 409);
  CHECK(c.call("DELETE", path, {{"preconditions", {{"uid", "another"}}}})["code"] == 409);
  json const applied{{"metadata", {{"name", "m"}}}, {"data", {{"x", "y"}}}};
  std::string const map = "/api/v1/namespaces/default/configmaps/m";
  CHECK(c.call("PATCH", map + "?fieldManager=edl", applied, "application/apply-patch+yaml")["data"]["x"] ==
        "y");
  CHECK(c.get(map)["data"]["x"] == "y");
}

}  // namespace edl::testing::kubernetes

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "kubernetes/test/support.hpp"

// Who may do what, and what becomes of pods that a busy node or an administrator has.
namespace edl::testing::kubernetes {
namespace {

using namespace std::chrono_literals;

std::string const account = "system:serviceaccount:default:default";

TEST_CASE("a pod asks as its account, which may be refused what its user may do") {
  cluster c({.forbidden = {{"list", "pods", "default", account}}});
  CHECK(c.get(pods)["kind"] == "PodList");
  c.post(pods,
         pod("w",
             "curl -s --cacert $(dirname $KUBECONFIG)/ca.crt -H \"Authorization: Bearer $(cat $(dirname "
             "$KUBECONFIG)/token)\" " +
                 c.url() + pods + "; true"));
  if (std::system("curl --version >/dev/null 2>&1") != 0) {
    MESSAGE("skipped: there is no curl here");
    return;
  }
  REQUIRE(c.wait([&] { return phase(c, "w") == "Succeeded"; }));
  json const answer = json::parse(c.log("default", "w"), nullptr, false);
  REQUIRE(answer.is_object());
  CHECK(answer["message"] ==
        "pods is forbidden: User \"" + account +
            "\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"");
}

TEST_CASE("access reviews answer for who asks, and for others") {
  cluster c({.forbidden = {{"list", "pods", "*", account}, {"delete", "pods"}}});
  auto const may = [&](std::string const& verb, std::string const& user) {
    json const what{{"namespace", "default"}, {"verb", verb}, {"resource", "pods"}};
    json const answer =
        user.empty() ? c.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                              {{"spec", {{"resourceAttributes", what}}}})
                     : c.post("/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
                              {{"spec", {{"resourceAttributes", what}, {"user", user}}}});
    return answer["status"]["allowed"].get<bool>();
  };
  CHECK(may("list", ""));
  CHECK_FALSE(may("delete", ""));
  CHECK_FALSE(may("list", account));
  CHECK(may("create", account));
}

TEST_CASE("rights are taken and given back while the server runs") {
  cluster c;
  CHECK(c.get(pods)["kind"] == "PodList");
  c.forbid({{"list", "pods"}});
  CHECK(c.get(pods)["code"] == 403);
  c.forbid({});
  CHECK(c.get(pods)["kind"] == "PodList");
}

TEST_CASE("a pod of an account that there is not is refused in the server's words") {
  cluster c;
  json p = pod("w", "true");
  p["spec"]["serviceAccountName"] = "nobody";
  json const refused = c.post(pods, p);
  CHECK(refused["code"] == 403);
  CHECK(refused["message"] ==
        "pods \"w\" is forbidden: error looking up service account default/nobody: serviceaccount "
        "\"nobody\" not found");
  c.post("/api/v1/namespaces/default/serviceaccounts", {{"metadata", {{"name", "nobody"}}}});
  CHECK(c.post(pods, p)["metadata"]["name"] == "w");
}

TEST_CASE(
    "a busy kubelet tells late that a process has ended, and deletes a pod of which it has told nothing") {
  cluster c({.report_delay = 1500ms});
  c.post(pods, pod("w", "true"));
  c.post(pods, pod("v", "true"));
  REQUIRE(c.wait([&] { return phase(c, "w") == "Running" && phase(c, "v") == "Running"; }));
  auto const ran = std::chrono::steady_clock::now();
  c.remove(pods + "/v");
  REQUIRE(c.wait([&] { return phase(c, "w") == "Succeeded"; }));
  CHECK(std::chrono::steady_clock::now() - ran > 500ms);
  CHECK(c.wait([&] { return c.get(pods + "/v")["code"] == 404; }));
}

TEST_CASE("a node is drained as kubectl does it") {
  cluster c({.nodes = {{.name = "a"}, {.name = "b"}}, .second = 50ms});
  json const owner = c.post(pods, pod("alone", "sleep 600; true"));
  REQUIRE(c.wait([&] { return phase(c, "alone") == "Running"; }));
  std::string const node =
      owner["metadata"]["name"] == "alone" ? c.get(pods + "/alone")["spec"]["nodeName"] : "";
  CHECK(c.drain(node, false).find("(use --force to override): default/alone, continuing") !=
        std::string::npos);
  CHECK(phase(c, "alone") == "Running");
  CHECK(c.get("/api/v1/nodes/" + node)["spec"]["unschedulable"] == true);
  CHECK(c.drain(node, true).empty());
  CHECK(c.wait([&] { return c.get(pods + "/alone")["code"] == 404; }));

  json member = pod("member", "true");
  std::string const other = node == "a" ? "b" : "a";
  c.post(pods, member);  // has ended: no hindrance
  REQUIRE(c.wait([&] { return phase(c, "member") == "Succeeded"; }));
  CHECK(c.get(pods + "/member")["spec"]["nodeName"] == other);
  CHECK(c.drain(other, false).empty());
}

TEST_CASE("a drain takes one of the pods of a disruption budget at a time") {
  cluster c({.second = 50ms});
  for (char const* name : {"v", "w"}) {
    json replica = pod(name, "sleep 600; true");
    replica["metadata"]["labels"] = {{"app", "web"}};
    c.post(pods, replica);
  }
  REQUIRE(c.wait([&] { return phase(c, "v") == "Running" && phase(c, "w") == "Running"; }));
  json const made =
      c.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets",
             {{"apiVersion", "policy/v1"},
              {"kind", "PodDisruptionBudget"},
              {"metadata", {{"name", "web"}}},
              {"spec", {{"maxUnavailable", 1}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}}});
  REQUIRE(made["kind"] == "PodDisruptionBudget");
  std::string const node = c.get(pods + "/v")["spec"]["nodeName"];
  CHECK(c.drain(node, true).find("violate the pod's disruption budget") != std::string::npos);
  int leaving = 0;
  for (char const* name : {"v", "w"}) {
    json const there = c.get(pods + "/" + name);
    leaving += !there.contains("metadata") || there["metadata"].contains("deletionTimestamp");
  }
  CHECK(leaving == 1);
}

}  // namespace
}  // namespace edl::testing::kubernetes

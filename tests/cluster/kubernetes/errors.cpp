// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/errors.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cluster/kubernetes/support.hpp"
#include "cluster/kubernetes/transcript.hpp"
#include "kubernetes/schema.hpp"

namespace errors_test {

namespace k8s = edl::kubernetes;
using test::says;

TEST_CASE("recorded refusals are one line each that names what to change") {
  auto const folder = edl::testing::kubernetes::recordings();
  if (!folder) return;
  auto const text = [&](char const* file) -> std::string {
    auto const t = test::read_transcript(*folder / "transcripts" / file);
    auto const path = t.target.substr(0, t.target.find('?'));
    return k8s::refusal(t.code, t.body, t.method + " " + path, "context 'x' of F").what();
  };
  CHECK(
      text("04-pod-create-already-exists.http") ==
      "POST /api/v1/namespaces/rec/pods: 409 AlreadyExists: pods \"w0\" already exists; delete it first, or "
      "choose another name");
  CHECK(text("11-pod-get-not-found.http") ==
        "GET /api/v1/namespaces/rec/pods/nope: 404 NotFound: pods \"nope\" not found");
  CHECK(says(text("08-pod-create-invalid.http"),
             {"422 Invalid: Pod \"W_bad\" is invalid: metadata.name: Invalid"}));
  CHECK(says(text("09-pod-create-bad-quantity.http"), {"400 BadRequest: ", "quantities must match"}));
  CHECK(says(
      text("10-pod-create-unknown-priority.http"),
      {"403 Forbidden: ", "no PriorityClass with name no-such was found; 'kubectl get priorityclasses'"}));
  CHECK(says(text("24-pods-list-forbidden.http"),
             {"403 Forbidden: pods is forbidden: User \"system:anonymous\" cannot list",
              "; 'edl rbac --users' prints"}));
  CHECK(text("25-unauthorized.http") ==
        "GET /api/v1/namespaces/rec/pods: 401: Unauthorized; the credentials of context 'x' of F were "
        "rejected: renew them, or choose other ones");
  CHECK(says(text("30-cr-put-conflict.http"),
             {"409 Conflict: ", "; it has changed since it was read: repeat the command"}));
  CHECK(says(text("36-pods-list-expired.http"), {"410 Expired: The resourceVersion"}));
}

TEST_CASE("a role is promised only where `edl rbac` prints one") {
  auto const text = [](std::string const& user, std::string const& what) {
    auto const body = nlohmann::json{
        {"reason", "Forbidden"},
        {"message",
         "x is forbidden: User \"" + user + "\" cannot list resource " +
             what}}.dump();
    return std::string(k8s::refusal(403, body, "GET /x", "F").what());
  };
  CHECK(text("jane", R"("pods/log" in API group "" in the namespace "team")")
            .ends_with("'edl rbac --users' prints the role that allows it"));
  CHECK(text("system:serviceaccount:team:edl", R"("pods" in API group "" in the namespace "team")")
            .ends_with("'edl rbac' prints the role that allows it"));
  for (char const* other :
       {R"("nodes" in API group "" at the cluster scope)", R"("pods" in API group "" at the cluster scope)",
        R"("deployments" in API group "apps" in the namespace "edl-system")"})
    CHECK(text("jane", other).ends_with("an administrator of the cluster may allow it"));
}

TEST_CASE("other refusals") {
  auto const status = [](int code, char const* reason, char const* message) -> std::string {
    auto const body = nlohmann::json{{"reason", reason}, {"message", message}}.dump();
    return k8s::refusal(code, body, "POST /x", "F").what();
  };
  CHECK(says(status(403, "Forbidden",
                    "pods \"x\" is forbidden: exceeded quota: q, requested: cpu=9, limited: cpu=1"),
             {"; ask for less, or for a larger quota"}));
  CHECK(says(status(404, "NotFound", "namespaces \"x\" not found"),
             {"; create the namespace, or name another"}));
  CHECK(says(status(404, "NotFound", "the server could not find the requested resource"),
             {"; does `server` name"}));
  CHECK(k8s::refusal(404, "404 page not found\n", "GET /x", "F").what() ==
        std::string("GET /x: 404: 404 page not found; does `server` name a Kubernetes API server that has "
                    "this resource?"));
  CHECK(says(k8s::refusal(302, "", "GET /x", "F").what(), {"GET /x: 302; does `server` name"}));
  CHECK(says(k8s::refusal(502, "<html>\n<body>" + std::string(5000, 'x'), "GET /x", "F").what(),
             {"502: <html> <body>xxx"}));
  auto const e = k8s::refusal(429, R"({"reason":5,"message":["x"]})", "GET /x", "F", std::chrono::seconds(7));
  CHECK(e.reason() == "");
  CHECK(e.what() == std::string("GET /x: 429"));
  CHECK(e.retry_after() == std::chrono::seconds(7));
}

TEST_CASE("a text from outside stays in its line") {
  CHECK(k8s::one_line("a\r\nb\tc\x01\x7f") == "a b c");
  CHECK(k8s::one_line("  a  ") == "  a");
  CHECK(k8s::one_line("12345", 5) == "12345");
  CHECK(k8s::one_line("123456", 5) == "12345…");
  CHECK(k8s::one_line("aé", 2) == "aé");  // a character is not cut
  CHECK(k8s::one_line("aéb", 2) == "aé…");
  CHECK(k8s::one_line(std::string(1000, '\x80'), 100).size() < 110);  // bytes that belong to no character
}

}  // namespace errors_test

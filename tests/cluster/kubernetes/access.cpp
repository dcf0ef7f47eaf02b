// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/access.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cluster/kubernetes/support.hpp"
#include "edl/cluster/kubernetes/client.hpp"

namespace access_test {

namespace k8s = edl::kubernetes;
namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::json;
using test::folder, test::says, test::thrown;

namespace {

/// A variable of the environment, for as long as this lives.
class variable {
 public:
  variable(char const* name, std::optional<std::string> const& value) : name_(name) {
    if (char const* const old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~variable() { set(old_); }

 private:
  void set(std::optional<std::string> const& value) {
    if (value)
      ::setenv(name_, value->c_str(), 1);
    else
      ::unsetenv(name_);
  }
  char const* name_;
  std::optional<std::string> old_;
};

std::string indented(std::string const& text) {
  std::string out;
  for (char c : text) out += c == '\n' ? "\n      " : std::string(1, c);
  return out;
}

/// A kubeconfig of one context; `cluster` and `user` are YAML, a line each.
std::string kubeconfig(std::string const& cluster, std::string const& user, std::string const& context = "") {
  return "apiVersion: v1\nkind: Config\ncurrent-context: one\ncontexts:\n- name: one\n  context:\n    "
         "cluster: c\n"
         "    user: u\n" +
         (context.empty() ? "" : "    " + context + "\n") + "clusters:\n- name: c\n  cluster:\n      " +
         indented(cluster) + "\nusers:\n- name: u\n  user:\n      " + indented(user) + "\n";
}

std::string const somewhere = "server: https://10.0.0.1:6443";

}  // namespace

TEST_CASE("a pod's account is read from where it is mounted, and read anew when it changes") {
  variable const host("KUBERNETES_SERVICE_HOST", "10.0.0.1"), port("KUBERNETES_SERVICE_PORT", "443");
  folder const f;
  f.write("token", "first\n");
  f.write("ca.crt", "an authority");
  f.write("namespace", "team");
  auto a = k8s::in_cluster(f.path.string());
  CHECK(a.server == "https://10.0.0.1:443");
  CHECK(a.user_space == "team");
  CHECK(a.ca == "an authority");
  CHECK(a.token(false) == "first");
  CHECK_FALSE(a.renew(a));

  f.write("token", "second\n");
  CHECK(a.token(false) == "second");
  f.write("ca.crt", "another authority");
  CHECK(a.renew(a));
  CHECK(a.ca == "another authority");
  CHECK_FALSE(a.renew(a));

  // While a file is being replaced the last one serves.
  fs::remove(f.path / "token");
  fs::remove(f.path / "ca.crt");
  CHECK(a.token(false) == "second");
  CHECK_FALSE(a.renew(a));

  f.write("token", "th\nird");
  CHECK(says(thrown([&] { a.token(false); }), {f.path.string() + "/token has a blank, a line break"}));
  f.write("token", " \n");
  CHECK(says(thrown([&] { a.token(false); }), {"/token is empty"}));

  variable const six("KUBERNETES_SERVICE_HOST", "fd00::1");
  f.write("token", "x");
  f.write("ca.crt", "x");
  CHECK(k8s::in_cluster(f.path.string()).server == "https://[fd00::1]:443");
}

TEST_CASE("what is no pod, or has no account, says so") {
  variable const port("KUBERNETES_SERVICE_PORT", "443");
  {
    variable const host("KUBERNETES_SERVICE_HOST", std::nullopt);
    CHECK(says(thrown([] { k8s::in_cluster(); }), {"not in a pod", "KUBERNETES_SERVICE_HOST", "kubeconfig"}));
  }
  variable const host("KUBERNETES_SERVICE_HOST", "10.0.0.1");
  CHECK(says(thrown([] { k8s::in_cluster("/nowhere"); }),
             {"service account", "/nowhere/token", "No such file", "automountServiceAccountToken"}));
}

TEST_CASE("a kubeconfig's certificates, keys and tokens are given in it or beside it") {
  folder const f;
  SUBCASE("as data") {
    auto const a = k8s::from_kubeconfig(f.write(
        "config", kubeconfig(somewhere + "\ncertificate-authority-data: Y2E=\ntls-server-name: kubernetes",
                             "client-certificate-data: Y2VydA==\nclient-key-data: a2V5", "namespace: team")));
    CHECK(a.server == "https://10.0.0.1:6443");
    CHECK(a.ca == "ca");
    CHECK(a.certificate == "cert");
    CHECK(a.key == "key");
    CHECK(a.server_name == "kubernetes");
    CHECK(a.user_space == "team");
    CHECK_FALSE(a.insecure);
    CHECK_FALSE(a.token);
    CHECK(a.origin == "context 'one' of " + f.path.string() + "/config");
  }
  SUBCASE("as files, relative to it, that change") {
    f.write("pki/ca.crt", "ca");
    f.write("pki/me.crt", "cert");
    auto const key = f.write("me.key", "key");
    auto a = k8s::from_kubeconfig(
        f.write("config", kubeconfig(somewhere + "\ncertificate-authority: pki/ca.crt",
                                     "client-certificate: pki/me.crt\nclient-key: " + key)));
    CHECK(a.ca == "ca");
    CHECK(a.certificate == "cert");
    CHECK(a.key == "key");
    CHECK(a.user_space == "default");
    CHECK_FALSE(a.renew(a));
    f.write("me.key", "other key");
    f.write("pki/ca.crt", "other ca");
    CHECK(a.renew(a));
    CHECK(a.key == "other key");
    CHECK(a.ca == "other ca");
  }
  SUBCASE("a token") {
    auto const a = k8s::from_kubeconfig(f.write("config", kubeconfig(somewhere, "token: secret")));
    CHECK(a.token(false) == "secret");
    CHECK(a.token(true) == "secret");
  }
  SUBCASE("a token in a file, which comes first and changes") {
    f.write("token", "secret\n");
    auto const a =
        k8s::from_kubeconfig(f.write("config", kubeconfig(somewhere, "token: old\ntokenFile: token")));
    CHECK(a.token(false) == "secret");
    f.write("token", "newer");
    CHECK(a.token(false) == "newer");
  }
  SUBCASE("nothing, and an http server") {
    auto const a = k8s::from_kubeconfig(f.write("config", kubeconfig("server: http://127.0.0.1:8001", "{}")));
    CHECK(a.server == "http://127.0.0.1:8001");
    CHECK_FALSE(a.token);
    CHECK(a.certificate == "");
  }
  SUBCASE("no verification") {
    CHECK(k8s::from_kubeconfig(
              f.write("config", kubeconfig(somewhere + "\ninsecure-skip-tls-verify: true", "token: x")))
              .insecure);
  }
  SUBCASE("JSON is YAML") {
    json const c{{"current-context", "a"},
                 {"contexts", {{{"name", "a"}, {"context", {{"cluster", "c"}}}}}},
                 {"clusters", {{{"name", "c"}, {"cluster", {{"server", "https://x"}}}}}}};
    CHECK(k8s::from_kubeconfig(f.write("config", c.dump(2))).server == "https://x");
  }
}

TEST_CASE("contexts are chosen by name, out of several files") {
  folder const f;
  auto const first = f.write("first", R"(
contexts:
- {name: a, context: {cluster: ca, user: ua}}
- {name: both, context: {cluster: ca, user: ua, namespace: of-first}}
clusters:
- {name: ca, cluster: {server: "https://first", certificate-authority: ca.crt}}
users:
- {name: ua, user: {token: ta}}
)");
  f.write("ca.crt", "authority of the first");
  auto const second = f.write("deep/second", R"(
current-context: b
contexts:
- {name: b, context: {cluster: cb, user: ua}}
- {name: both, context: {cluster: cb, user: ua, namespace: of-second}}
clusters:
- {name: ca, cluster: {server: "https://hidden"}}
- {name: cb, cluster: {server: "https://second", certificate-authority: ca.crt}}
)");
  f.write("deep/ca.crt", "authority of the second");
  auto const both = first + ":" + f.path.string() + "/not-there:" + second + ":";
  auto a = k8s::from_kubeconfig(both);
  CHECK(a.server == "https://second");
  CHECK(a.ca == "authority of the second");  // relative to its own file
  CHECK(a.token(false) == "ta");
  a = k8s::from_kubeconfig(both, "a");
  CHECK(a.server == "https://first");
  CHECK(a.ca == "authority of the first");
  CHECK(k8s::from_kubeconfig(both, "both").user_space == "of-first");
  CHECK(says(thrown([&] { k8s::from_kubeconfig(first); }),
             {"kubeconfig " + first + ": it has no current-context", "its contexts: a, both"}));
  CHECK(says(thrown([&] { k8s::from_kubeconfig(both, "c"); }), {"no context 'c'; it has: a, both, b, both"}));
}

TEST_CASE("a kubeconfig that cannot be used says which file, what, and the way out") {
  folder const f;
  auto const text = [&](std::string const& content) {
    auto const path = f.write("config", content);
    auto const what = thrown([&] { k8s::from_kubeconfig(path); });
    CHECK(says(what, {path}));
    return what;
  };
  CHECK(says(thrown([] { k8s::from_kubeconfig("/nowhere/config"); }), {"/nowhere/config", "No such file"}));
  CHECK(says(thrown([] { k8s::from_kubeconfig("/nowhere/a:/nowhere/b"); }), {"/nowhere/a:/nowhere/b"}));
  CHECK(says(thrown([&] { k8s::from_kubeconfig(f.path.string()); }), {"cannot be read", "Is a directory"}));
  CHECK(says(text(""), {"is empty"}));
  CHECK(says(text("just a text"), {"not a kubeconfig"}));
  CHECK(says(text("a: [1, 2\nb: {"), {"config:", "not YAML"}));
  CHECK(says(text(std::string(17 << 20, '#')), {"larger than 16 MiB"}));
  CHECK(says(text(std::string(20'000, '[')), {"not YAML"}));
  CHECK(says(text("current-context: a\ncontexts: 5"), {"contexts must be a list"}));
  CHECK(says(text("current-context: {}\ncontexts: []"), {"current-context must be a text"}));
  CHECK(says(text("current-context: a\ncontexts: []"), {"no context 'a'; it has: none"}));
  CHECK(
      says(text("current-context: a\ncontexts: [{name: a, context: 5}]"), {"context 'a'", "must be a map"}));
  CHECK(says(text("current-context: a\ncontexts: [{name: a, context: {cluster: x}}]\nclusters: [{name: y}]"),
             {"context 'a' of ", "no cluster 'x'; it has: y"}));
  CHECK(says(text("current-context: a\ncontexts: [{name: a, context: {cluster: x, user: me}}]\n"
                  "clusters: [{name: x, cluster: {server: 'https://x'}}]"),
             {"no user 'me'; it has: none"}));
  CHECK(says(text(kubeconfig("certificate-authority-data: ''", "token: x")),
             {"cluster 'c' of ", "has no server"}));
  CHECK(says(text(kubeconfig(somewhere + "\ncertificate-authority-data: '%%%'", "token: x")),
             {"cluster 'c'", "certificate-authority-data is damaged", "base64"}));
  CHECK(says(text(kubeconfig(somewhere + "\ncertificate-authority-data: Y2", "token: x")), {"truncated"}));
  CHECK(says(text(kubeconfig(somewhere + "\ncertificate-authority: ca.crt", "token: x")),
             {"cluster 'c'", "certificate-authority", f.path.string() + "/ca.crt", "No such file"}));
  CHECK(says(text(kubeconfig(somewhere + "\ninsecure-skip-tls-verify: true\ncertificate-authority-data: Y2E=",
                             "token: x")),
             {"contradicts", "remove one"}));
  CHECK(says(text(kubeconfig(somewhere + "\ninsecure-skip-tls-verify: maybe", "token: x")),
             {"must be true or false, not 'maybe'"}));
  CHECK(
      says(text(kubeconfig(somewhere + "\nproxy-url: http://x", "token: x")), {"does not use a proxy-url"}));
  CHECK(says(text(kubeconfig(somewhere, "username: me\npassword: x")),
             {"user 'u'", "username and password", "token"}));
  CHECK(says(text(kubeconfig(somewhere, "auth-provider: {name: gcp}")), {"auth-provider", "exec plugin"}));
  CHECK(says(text(kubeconfig(somewhere, "token: x\nas: admin")), {"as: edl does not act as another user"}));
  CHECK(says(text(kubeconfig(somewhere, "token: 'a b'")), {"token has a blank"}));
  CHECK(says(text(kubeconfig(somewhere, "token: [x]")), {"token must be a text"}));
  CHECK(says(text(kubeconfig(somewhere, "tokenFile: nope")), {"tokenFile", "/nope", "No such file"}));
  CHECK(says(
      text(kubeconfig(somewhere, "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}")),
      {"unknown apiVersion 'client.authentication.k8s.io/v1alpha1'"}));
  CHECK(says(text(kubeconfig(somewhere, "exec: {apiVersion: client.authentication.k8s.io/v1}")),
             {"has no command"}));
  CHECK(says(text(kubeconfig(somewhere, "exec: 5")), {"exec must be a map"}));
  CHECK(says(text(kubeconfig(
                 somewhere,
                 "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Often}")),
             {"interactiveMode must be Never, IfAvailable or Always, not 'Often'"}));
}

TEST_CASE("the nearest cluster is found") {
  folder const f;
  auto const config = f.write("config", kubeconfig("server: https://of-variable", "token: x"));
  f.write("home/.kube/config", kubeconfig("server: https://of-home", "token: x"));
  variable const home("HOME", f.path.string() + "/home");
  {
    variable const outside("KUBERNETES_SERVICE_HOST", std::nullopt), none("KUBECONFIG", std::nullopt);
    CHECK(k8s::find_access().server == "https://of-home");
    variable const named("KUBECONFIG", config);
    CHECK(k8s::find_access().server == "https://of-variable");
    variable const nowhere("HOME", f.path.string());
    variable const unnamed("KUBECONFIG", std::nullopt);
    CHECK(says(thrown([] { k8s::find_access(); }),
               {"no cluster is known", "KUBECONFIG", f.path.string() + "/.kube/config"}));
  }
  variable const inside("KUBERNETES_SERVICE_HOST", "10.0.0.1"), port("KUBERNETES_SERVICE_PORT", "443");
  variable const none("KUBECONFIG", std::nullopt);
  CHECK(k8s::find_access(true).server == "https://of-home");
  CHECK(k8s::find_access(false, "one").server == "https://of-home");
  // The account is mounted where this process is a pod's, which a test need not be.
  if (!fs::exists("/var/run/secrets/kubernetes.io/serviceaccount/token"))
    CHECK(says(thrown([] { k8s::find_access(); }), {"the pod's service account"}));
}

TEST_CASE("a plugin's token is kept until it expires or is refused") {
  folder const f;
  auto const runs = f.path / "runs";
  f.write("plugin", R"(#!/bin/sh
echo run >> )" + runs.string() +
                        R"(
n=$(wc -l < )" + runs.string() +
                        R"()
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t'$n'"}}'
)");
  fs::permissions(f.path / "plugin", fs::perms::owner_all);
  auto const a = k8s::from_kubeconfig(
      f.write("config", kubeconfig(somewhere,
                                   "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, "
                                   "interactiveMode: Never}")));
  CHECK_FALSE(fs::exists(runs));  // nobody has asked for it yet
  CHECK(a.token(false) == "t1");
  CHECK(a.token(false) == "t1");
  CHECK(a.token(true) == "t2");
  CHECK(a.token(false) == "t2");
}

TEST_CASE("a plugin may give a certificate, and a new one is used from the next call on") {
  test::authority const ca;
  auto const first = test::make_identity({.name = "first"}, &ca.self),
             second = test::make_identity({.name = "second"}, &ca.self);
  std::atomic<bool> refuse{false};
  test::wire_server s(
      &ca.server,
      [&](test::request const&, test::wire& w) {
        if (w.peer() == "first" && refuse)
          w.json(401, "{}");
        else
          w.json(200, json{{"who", w.peer()}}.dump());
      },
      &ca.self);
  folder const f;
  auto const credential = [](test::identity const& who) {
    return json{{"apiVersion", "client.authentication.k8s.io/v1"},
                {"kind", "ExecCredential"},
                {"status", {{"clientCertificateData", who.certificate}, {"clientKeyData", who.key}}}}
        .dump();
  };
  f.write("out", credential(first));
  f.write("ca.crt", ca.self.certificate);
  auto const a = k8s::from_kubeconfig(f.write(
      "config", kubeconfig("server: " + s.url() + "\ncertificate-authority: ca.crt",
                           "exec: {apiVersion: client.authentication.k8s.io/v1, command: cat, args: [" +
                               f.path.string() + "/out]}")));
  k8s::client c(a, {.retry_timeout = 0ms});
  CHECK(c.get("/x")["who"] == "first");
  f.write("out", credential(second));
  CHECK(c.get("/x")["who"] == "first");
  refuse = true;
  CHECK(c.get("/x")["who"] == "second");
}

}  // namespace access_test

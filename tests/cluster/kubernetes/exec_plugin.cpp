// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/exec_plugin.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "edl/core/error.hpp"

namespace exec_plugin_test {

namespace k8s = edl::kubernetes;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

k8s::exec_plugin shell(std::string const& script) {
  k8s::exec_plugin p;
  p.version = "v1";
  p.command = "sh";
  p.arguments = {"-c", script};
  p.interactive = "Never";
  p.origin = "user 'u': exec";
  return p;
}

std::string credential(json const& status, std::string const& version = "v1") {
  return json{{"apiVersion", "client.authentication.k8s.io/" + version},
              {"kind", "ExecCredential"},
              {"status", status}}
      .dump();
}

std::string why(k8s::exec_plugin const& p) {
  try {
    k8s::run(p);
    return "nothing was thrown";
  } catch (edl::error const& e) {
    return e.what();
  }
}

bool says(std::string const& text, std::initializer_list<char const*> parts) {
  bool all = text.find('\n') == text.npos && text.find("user 'u': exec") == 0;
  for (char const* part : parts) all = all && text.find(part) != text.npos;
  if (!all) MESSAGE(text);
  return all;
}

}  // namespace

TEST_CASE("a plugin gives a token, a certificate, and when they expire") {
  auto c = k8s::run(shell("echo '" + credential({{"token", "secret"}}) + "'"));
  CHECK(c.token == "secret");
  CHECK(c.certificate == "");
  CHECK_FALSE(c.expires);
  auto p = shell("echo '" +
                 credential({{"clientCertificateData", "cert"},
                             {"clientKeyData", "key"},
                             {"expirationTimestamp", "2026-11-20T10:39:01Z"}},
                            "v1beta1") +
                 "'");
  p.version = "v1beta1";
  c = k8s::run(p);
  CHECK(c.certificate == "cert");
  CHECK(c.key == "key");
  CHECK(c.expires == 1795171141);
}

TEST_CASE("a plugin gets its arguments, its variables, and what it is asked for") {
  auto p = shell(R"sh(
info=$(printf %s "$KUBERNETES_EXEC_INFO" | tr '"' "'")
printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
printf '"status":{"token":"%s"}}' "$0-$A-$HOME-$info-$(cat)")sh");
  p.arguments.push_back("zero");
  p.variables = {{"A", "1"}, {"HOME", "/mine"}};
  CHECK(k8s::run(p).token ==
        "zero-1-/mine-{'apiVersion':'client.authentication.k8s.io/v1','kind':'ExecCredential',"
        "'spec':{'interactive':false}}-");
  p.cluster = R"({"server":"https://x"})";
  CHECK(k8s::run(p).token.find("'cluster':{'server':'https://x'}") != std::string::npos);
}

TEST_CASE("a plugin that gives nothing says why") {
  CHECK(says(why(shell("exit 3")), {"'sh' exited with code 3; run it by hand"}));
  CHECK(says(why(shell("kill -9 $$")), {"was killed by signal 9"}));
  CHECK(says(why(shell("true")), {"it printed nothing"}));
  CHECK(says(why(shell("echo nonsense")), {"is not an ExecCredential"}));
  CHECK(says(why(shell("echo '[]'")), {"is not an ExecCredential"}));
  CHECK(says(why(shell("echo '" + credential({{"token", "x"}}, "v1beta1") + "'")),
             {"it speaks 'client.authentication.k8s.io/v1beta1', but the kubeconfig requests v1"}));
  CHECK(says(why(shell("echo '" + credential(json::object()) + "'")), {"neither a token nor a certificate"}));
  CHECK(says(why(shell("echo '" + credential(5) + "'")), {"it has no status"}));
  CHECK(says(why(shell("echo '" + credential({{"clientCertificateData", "x"}}) + "'")), {"come together"}));
  CHECK(says(why(shell("echo '" + credential({{"token", "a b"}}) + "'")),
             {"its token has a blank, a line break"}));
  CHECK(says(why(shell("echo '" + credential({{"token", "a"}, {"expirationTimestamp", "soon"}}) + "'")),
             {"expirationTimestamp 'soon' is not a time"}));
  CHECK(says(why(shell("yes")), {"prints more than 1 MiB"}));

  auto p = shell("");
  p.command = "no-such-plugin";
  CHECK(says(why(p), {"'no-such-plugin' cannot be run: No such file", "add its directory to $PATH"}));
  p.install_hint = "get it from\nsomewhere";
  CHECK(says(why(p), {"'no-such-plugin' cannot be run", "; get it from somewhere"}));
  p = shell("sleep 1000; true");
  p.time = 200ms;
  CHECK(says(why(p), {"has not ended within 0.2 s"}));
}

TEST_CASE("what a plugin leaves behind does not keep its caller") {
  auto p = shell("sleep 3 & echo '" + credential({{"token", "x"}}) + "'");
  p.time = 2s;
  CHECK(k8s::run(p).token == "x");
}

TEST_CASE("credentials are got anew when they have expired or are refused") {
  // Each run has a number of its own.
  auto const script = [](std::string const& more) {
    return R"sh(printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",)sh"
           R"sh("status":{"token":"%s")sh" +
           more + "}}' $$";
  };
  k8s::exec_credentials c(shell(script(R"(,"expirationTimestamp":"1970-01-01T00:01:40Z")")));
  auto const first = c.get(false, 0).token;
  CHECK(c.get(false, 99).token == first);
  auto const second = c.get(false, 100).token;
  CHECK(second != first);
  auto const third = c.get(true, 0).token;
  CHECK(third != second);
  k8s::exec_credentials lasting(shell(script("")));
  auto const only = lasting.get(false, 0).token;
  CHECK(lasting.get(false, 4'000'000'000).token == only);
}

TEST_CASE("times are read as RFC 3339 writes them") {
  CHECK(k8s::parse_time("1970-01-01T00:00:10Z") == 10);
  CHECK(k8s::parse_time("1970-01-01T00:00:10.123456Z") == 10);
  CHECK(k8s::parse_time("1970-01-01T02:00:10+02:00") == 10);
  CHECK(k8s::parse_time("1969-12-31T23:30:10-00:30") == 10);
  for (char const* bad : {"", "1970-01-01", "1970-01-01T00:00:10", "1970-01-01T00:00:10Zx",
                          "1970-01-01T00:00:10+2:00", "1970-01-01T00:00:10+02:0x", "tomorrow"})
    CHECK_FALSE(k8s::parse_time(bad));
}

}  // namespace exec_plugin_test

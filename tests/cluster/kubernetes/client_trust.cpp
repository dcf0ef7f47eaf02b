// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cluster/kubernetes/support.hpp"
#include "edl/cluster/kubernetes/client.hpp"

namespace client_trust_test {

namespace k8s = edl::kubernetes;
using namespace std::chrono_literals;
using nlohmann::json;
using test::issued, test::says, test::thrown, test::to;

TEST_CASE(
    "a server is trusted when its certificate is signed by the given authority, for its name or address") {
  auto const answer = [](test::request const&, test::wire& w) { w.json(200, "{}"); };
  auto const& ca = issued().self;
  auto const outcome = [&](test::about const& about, auto&& change, test::identity const* issuer) {
    auto const who = test::make_identity(about, issuer);
    test::wire_server s(&who, answer);
    auto a = to(s);
    change(a, s);
    k8s::client c(a, {.retry_timeout = 0ms});
    auto const text = thrown<k8s::untrusted>([&] { c.get("/x"); });
    bool const refused = text.find("is not trusted: ") != text.npos;
    CHECK(s.requests() == (refused ? 0 : 1));  // nobody else gets to see a token
    if (refused) CHECK(says(text, {"GET /x: the API server https://", "(a test) is not trusted: "}));
    return text;
  };
  auto const as_is = [](k8s::access&, test::wire_server&) {};
  auto const by_name = [](k8s::access& a, test::wire_server& s) {
    a.server = "https://localhost:" + std::to_string(s.port());
  };
  std::string const good = "nothing was thrown";

  CHECK(outcome({.alternatives = "IP:127.0.0.1"}, as_is, &ca) == good);
  CHECK(outcome({.alternatives = "DNS:localhost"}, by_name, &ca) == good);
  CHECK(outcome(
            {.alternatives = "DNS:kubernetes"}, [](auto& a, auto&) { a.server_name = "kubernetes"; }, &ca) ==
        good);

  CHECK(says(outcome({.alternatives = "DNS:kubernetes,IP:10.0.0.1"}, as_is, &ca),
             {"is for kubernetes, 10.0.0.1, not for 127.0.0.1", "tls-server-name"}));
  CHECK(says(outcome({.alternatives = "DNS:kubernetes,IP:127.0.0.1"}, by_name, &ca), {"not for localhost"}));
  CHECK(says(outcome({.alternatives = "otherName:1.2.3.4;UTF8:x,URI:spiffe://a,DNS:kubernetes"}, as_is, &ca),
             {"is for kubernetes, not for 127.0.0.1"}));
  CHECK(says(outcome({.alternatives = "DNS:127.0.0.1"}, as_is, &ca), {"not for 127.0.0.1"}));
  CHECK(says(outcome({.name = "127.0.0.1"}, as_is, &ca), {"is for no name, not for 127.0.0.1"}));
  CHECK(says(outcome({.name = "localhost"}, by_name, &ca), {"is for no name, not for localhost"}));
  CHECK(says(outcome(
                 {.alternatives = "IP:127.0.0.1"}, [](auto& a, auto&) { a.server_name = "other"; }, &ca),
             {"not for other"}));

  auto const foreign = test::make_identity({.name = "foreign authority", .authority = true});
  CHECK(says(outcome({.alternatives = "IP:127.0.0.1"}, as_is, &foreign),
             {"signed by CN=foreign authority, an authority that this process does not trust",
              "certificate-authority"}));
  auto const namesake = test::make_identity({.name = "test authority", .authority = true});
  CHECK(says(outcome({.alternatives = "IP:127.0.0.1"}, as_is, &namesake), {"CN=test authority"}));
  CHECK(says(outcome({.alternatives = "IP:127.0.0.1"}, as_is, nullptr),
             {"CN=server, an authority that this process does not trust"}));
  // Without an authority of one's own the system's are asked, which have not signed this.
  CHECK(says(
      outcome({.alternatives = "IP:127.0.0.1"}, [](auto& a, auto&) { a.ca.clear(); }, &ca), {"not trusted"}));

  CHECK(says(outcome({.alternatives = "IP:127.0.0.1", .from = -7200, .until = -3600}, as_is, &ca),
             {"the certificate of CN=server expired on 20", "renewed"}));
  CHECK(says(outcome({.alternatives = "IP:127.0.0.1", .from = 3600, .until = 7200}, as_is, &ca),
             {"the certificate of CN=server is not valid before 20", "clock"}));

  // Asked for in so many words, anybody is trusted.
  CHECK(outcome(
            {.name = "x", .from = -7200, .until = -3600}, [](auto& a, auto&) { a.insecure = true; },
            nullptr) == good);
}

TEST_CASE("any given certificate is an authority, as a server's own") {
  auto const self = test::make_identity({.alternatives = "IP:127.0.0.1"});
  test::wire_server s(&self, [](test::request const&, test::wire& w) { w.json(200, "{}"); });
  auto a = to(s);
  a.ca = issued().self.certificate + self.certificate;
  CHECK(k8s::client(a).get("/x") == json::object());

  auto const between = test::make_identity({.name = "intermediate", .authority = true}, &issued().self);
  auto const leaf = test::make_identity({.alternatives = "IP:127.0.0.1"}, &between);
  test::wire_server t(&leaf, [](test::request const&, test::wire& w) { w.json(200, "{}"); });
  a = to(t);
  a.ca = between.certificate;
  CHECK(k8s::client(a).get("/x") == json::object());
}

TEST_CASE("a client shows its certificate, and who has none is told so") {
  auto const me = test::make_identity({.name = "me"}, &issued().self);
  test::wire_server s(
      &issued().server, [](test::request const&, test::wire& w) { w.json(200, "{}"); }, &issued().self);
  auto a = to(s);
  a.certificate = me.certificate;
  a.key = me.key;
  CHECK(k8s::client(a).get("/x") == json::object());
  a.certificate = a.key = "";
  CHECK(says(thrown<k8s::untrusted>([&] { k8s::client(a, {.retry_timeout = 0ms}).get("/x"); }),
             {"refuses this side's certificate"}));
}

TEST_CASE("certificates that cannot be used are named") {
  test::wire_server s(&issued().server, [](test::request const&, test::wire& w) { w.json(200, "{}"); });
  auto const me = test::make_identity({.name = "me"}, &issued().self);
  auto const text = [&](auto&& change) {
    auto a = to(s);
    a.certificate = me.certificate;
    a.key = me.key;
    change(a);
    return thrown<k8s::untrusted>([&] { k8s::client(a).get("/x"); });
  };
  CHECK(says(text([](auto& a) { a.ca = "nothing"; }),
             {"a test: certificate-authority: no certificates in PEM"}));
  CHECK(says(text([](auto& a) { a.ca.resize(a.ca.size() / 2); }), {"certificate-authority: it is damaged"}));
  CHECK(says(text([](auto& a) { a.certificate = "x"; }), {"client-certificate: no certificates in PEM"}));
  CHECK(
      says(text([](auto& a) { a.key = "x"; }), {"client-key: no private key of a test: client-certificate"}));
  CHECK(says(text([](auto& a) { a.key = ""; }), {"a client-certificate, but no client-key"}));
  CHECK(says(text([](auto& a) { a.certificate = ""; }), {"a client-key, but no client-certificate"}));
  CHECK(says(text([](auto& a) { a.key = issued().server.key; }),
             {"client-key: no private key of a test: client-certificate"}));
  CHECK(s.requests() == 0);
}

}  // namespace client_trust_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/base/http/client/client_connection.hpp"

#include <doctest/doctest.h>

#include "base/http/client/support.hpp"
#include "edl/base/net/security/certificates.hpp"

namespace client_connection_test {

namespace http = edl::http;
using test::says, test::thrown;

TEST_CASE("the address of a server is read") {
  auto const parts = [](char const* text) {
    auto const e = http::parse_endpoint(text, "an API server");
    return std::string(e.tls ? "tls " : "plain ") + e.host + " " + e.port + " " + e.authority + " " +
           e.prefix;
  };
  CHECK(parts("https://10.0.0.1:6443") == "tls 10.0.0.1 6443 10.0.0.1:6443 ");
  CHECK(parts("https://example.com") == "tls example.com 443 example.com ");
  CHECK(parts("https://example.com/") == "tls example.com 443 example.com ");
  CHECK(parts("http://localhost:8001") == "plain localhost 8001 localhost:8001 ");
  CHECK(parts("http://localhost") == "plain localhost 80 localhost ");
  CHECK(parts("https://[fd00::1]:6443/k8s/clusters/a/") == "tls fd00::1 6443 [fd00::1]:6443 /k8s/clusters/a");
  CHECK(parts("https://[::1]") == "tls ::1 443 [::1] ");
}

TEST_CASE("what is no address of a server says why") {
  for (auto const& [text, why] : {std::pair<char const*, char const*>{"", "neither https:// nor http://"},
                                  {"10.0.0.1:6443", "neither"},
                                  {"ftp://x", "neither"},
                                  {"https://", "no host"},
                                  {"https://:6443", "no host"},
                                  {"https://x:", "port"},
                                  {"https://x:0", "port"},
                                  {"https://x:65536", "port"},
                                  {"https://x:999999999999", "port"},
                                  {"https://x:64a3", "port"},
                                  {"https://[::1:6443", "']' is missing"},
                                  {"https://[::1]6443", "port"},
                                  {"https://me@x", "a character too many"},
                                  {"https://x y", "a character too many"},
                                  {"https://x/a?b", "a character too many"},
                                  {"https://x\r\nHost: y", "a character too many"}}) {
    CAPTURE(text);
    CHECK(says(thrown([&] { http::parse_endpoint(text, "an API server"); }),
               {"is not an address of an API server", why, "https://host:port"}));
  }
}

TEST_CASE("a connection carries bytes both ways, and knows when it is idle") {
  for (auto const* who : {&test::issued().server, static_cast<test::identity const*>(nullptr)}) {
    test::wire_server s(who, [](test::request const& r, test::wire& w) {
      w.send(r.target);
      if (r.target == "/end") w.close();
    });
    auto const time = http::limit::of(std::chrono::seconds(20));
    auto const trusted =
        who ? edl::net::load_trust({.authorities = {test::issued().self.certificate, "a test"}}) : nullptr;
    http::client_connection c({.at = http::parse_endpoint(s.url(), "a server"), .name = "a server"}, trusted,
                              time);
    char buffer[100];
    auto const ask = [&](std::string const& target) {
      c.send("GET " + target + " HTTP/1.1\r\n\r\n", time);
      std::string got;
      while (got.size() < target.size()) got.append(buffer, c.receive(buffer, time));
      return got;
    };
    CHECK(ask("/one") == "/one");
    CHECK(c.idle());
    CHECK(ask("/end") == "/end");
    // Without a goodbye TLS cannot tell an end from a cut.
    if (who)
      CHECK_THROWS_AS(c.receive(buffer, time), http::unreachable);
    else
      CHECK(c.receive(buffer, time) == 0);
    CHECK_FALSE(c.idle());
  }
}

}  // namespace client_connection_test

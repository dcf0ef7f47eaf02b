// SPDX-License-Identifier: Apache-2.0
// Servers that are slow, silent, endless, or something else; and streams.
#include <doctest/doctest.h>

#include <atomic>
#include <latch>
#include <nlohmann/json.hpp>
#include <set>

#include "cluster/kubernetes/refusals.hpp"
#include "cluster/kubernetes/support.hpp"
#include "cluster/kubernetes/transcript.hpp"
#include "edl/cluster/kubernetes/client.hpp"
#include "kubernetes/schema.hpp"

namespace client_timeouts_test {

namespace k8s = edl::kubernetes;
using namespace refusals;
using namespace std::chrono_literals;
using test::issued, test::says, test::thrown, test::to;

TEST_CASE("nothing waits for ever") {
  k8s::client::options const hasty{.timeout = 300ms, .retry_timeout = 300ms};
  SUBCASE("for a handshake") {
    int const deaf = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    REQUIRE(::bind(deaf, reinterpret_cast<sockaddr*>(&here), size) == 0);
    REQUIRE(::listen(deaf, 5) == 0);
    ::getsockname(deaf, reinterpret_cast<sockaddr*>(&here), &size);
    k8s::access a;
    a.server = "https://127.0.0.1:" + std::to_string(ntohs(here.sin_port));
    a.origin = "a test";
    a.ca = issued().self.certificate;
    k8s::client c(a, hasty);
    CHECK(says(thrown<k8s::unreachable>([&] { c.get("/x"); }), {"has not answered for 0.3 s"}));
    ::close(deaf);
  }
  SUBCASE("for an answer") {
    test::wire_server s(&issued().server, [](test::request const&, test::wire& w) { w.stall(); });
    k8s::client c(to(s), hasty);
    CHECK(says(thrown<k8s::unreachable>([&] { c.get("/x"); }), {"has not answered for 0.3 s"}));
  }
  SUBCASE("for one that comes byte by byte") {
    for (std::string const begin :
         {"HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"}) {
      test::wire_server s(&issued().server, [&](test::request const&, test::wire& w) {
        w.send(begin);
        while (w.alive()) {
          w.send("x");
          std::this_thread::sleep_for(1ms);
        }
        w.close();
      });
      k8s::client c(to(s), hasty);
      CHECK(says(thrown<k8s::unreachable>([&] { c.get("/x"); }), {"has not answered for"}));
    }
  }
  SUBCASE("for a server to take what is sent") {
    test::wire_server s(&issued().server, [](test::request const&, test::wire&) {});
    int const slow = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    REQUIRE(::bind(slow, reinterpret_cast<sockaddr*>(&here), size) == 0);
    REQUIRE(::listen(slow, 5) == 0);
    ::getsockname(slow, reinterpret_cast<sockaddr*>(&here), &size);
    auto a = to(s);
    a.server = "http://127.0.0.1:" + std::to_string(ntohs(here.sin_port));
    k8s::client c(a, hasty);
    CHECK_THROWS_AS(c.create("/x", json{{"metadata", {{"name", std::string(20 << 20, 'x')}}}}),
                    k8s::unreachable);
    ::close(slow);
  }
}

TEST_CASE("nobody there") {
  std::uint16_t port;
  {
    test::wire_server const s(nullptr, [](test::request const&, test::wire&) {});
    port = s.port();
  }
  k8s::access a;
  a.origin = "a test";
  a.server = "https://127.0.0.1:" + std::to_string(port);
  CHECK(
      says(thrown<k8s::unreachable>([&] { k8s::client(a, {.retry_timeout = 0ms}).get("/x"); }),
           {"GET /x: the API server https://127.0.0.1:", "(a test) cannot be reached: Connection refused"}));
  a.server = "https://no-such-host.invalid";
  CHECK(says(thrown<k8s::unreachable>([&] { k8s::client(a, {.retry_timeout = 0ms}).get("/x"); }),
             {"cannot be reached: 'no-such-host.invalid' is not found"}));
}

TEST_CASE("who speaks something else is told apart") {
  auto const text = [&](std::string const& bytes) {
    test::wire_server s(nullptr, [&](test::request const&, test::wire& w) {
      w.send(bytes);
      w.close();
    });
    return thrown<edl::error>([&] { k8s::client(to(s), {.retry_timeout = 0ms}).get("/x"); });
  };
  CHECK(says(text("SSH-2.0-OpenSSH_9.2\r\n"), {"GET /x: the reply is not HTTP"}));
  CHECK(says(text("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<xml>"),
             {"GET http://", "is not JSON: parse error at line 1", "'<xml>'"}));
  CHECK(says(text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), {"bad chunk at 'zz'"}));
  CHECK(says(text("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"), {"bad Content-Length"}));
  CHECK(says(text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 40\r\n\r\n{}"),
             {"is not HTTP", "Content-Length"}));
  CHECK(says(text("HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x')), {"is not HTTP"}));
  CHECK(says(text("HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n"),
             {": 302; does `server` name"}));
  CHECK(says(text("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 22\r\n\r\n<html>\n<body>\nsorry\n"),
             {"broke off"}));
  CHECK(says(text("HTTP/1.1 403 Forbidden\r\nContent-Length: 20\r\n\r\n<html>\n<body>\nsorry\n"),
             {"403: <html> <body> sorry"}));
}

TEST_CASE("http and https are told apart") {
  SUBCASE("by what a server says at once") {
    int const listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&here), size) == 0);
    REQUIRE(::listen(listener, 5) == 0);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&here), &size);
    std::thread server([&] {
      int const fd = ::accept(listener, nullptr, nullptr);
      char buffer[4096];
      std::string_view const answer = "HTTP/1.1 400 Bad Request\r\n\r\n";
      CHECK(::recv(fd, buffer, sizeof buffer, 0) > 0);
      CHECK(::send(fd, answer.data(), answer.size(), 0) > 0);
      ::close(fd);
    });
    k8s::access a;
    a.server = "https://127.0.0.1:" + std::to_string(ntohs(here.sin_port));
    a.origin = "a test";
    CHECK(says(thrown<k8s::untrusted>([&] { k8s::client(a, {.retry_timeout = 0ms}).get("/x"); }),
               {"does not speak TLS: should its address begin with http://?"}));
    server.join();
    ::close(listener);
    return;
  }
  auto const answer = [](test::request const&, test::wire& w) { w.json(200, "{}"); };
  test::wire_server const plain(nullptr, answer), tls(&issued().server, answer);
  auto a = to(plain);
  a.server.replace(0, 4, "https");
  // Its server waits for more of what it takes for a request, and so does this side.
  CHECK(says(thrown([&] { k8s::client(a, {.timeout = 200ms, .retry_timeout = 0ms}).get("/x"); }),
             {"has not answered"}));
  a = to(tls);
  a.server.replace(0, 5, "http");
  CHECK_THROWS_AS(k8s::client(a, {.retry_timeout = 0ms}).get("/x"), edl::error);
}

TEST_CASE("an answer without an end is not kept in memory") {
  test::wire_server s(nullptr, [&](test::request const&, test::wire& w) {
    w.begin();
    std::string const piece(1 << 20, ' ');
    for (int i = 0; i < 100 && w.alive(); ++i) w.piece(piece);
    w.close();
  });
  k8s::client c(to(s), {.retry_timeout = 0ms});
  CHECK(says(thrown<edl::error>([&] { c.get("/x"); }), {"the reply is longer than 64 MiB"}));
}

TEST_CASE("a server that refuses a long request before it has read it is understood") {
  auto const refuse = [](test::request const&, test::wire& w) {
    w.json(413, status(413, "RequestEntityTooLarge", "limit is 3145728"));
    w.close();
  };
  for (bool const tls : {false, true}) {
    test::wire_server refusing(tls ? &issued().server : nullptr, refuse, nullptr, 0, true);
    k8s::client c(to(refusing), {.retry_timeout = 0ms});
    CHECK(says(thrown<k8s::api_error>(
                   [&] { c.create("/x", json{{"metadata", {{"name", std::string(8 << 20, 'x')}}}}); }),
               {"413 RequestEntityTooLarge: limit is 3145728; the object is too large"}));
  }
}

TEST_CASE("a server that goes while it is being told something does not end this process") {
  test::wire_server s(&issued().server, [&](test::request const&, test::wire& w) { w.cut(); });
  k8s::client c(to(s), {.retry_timeout = 0ms});
  for (int i = 0; i < 3; ++i)
    CHECK_THROWS_AS(c.create("/x", json{{"metadata", {{"name", std::string(8 << 20, 'x')}}}}),
                    k8s::unreachable);
}

TEST_CASE("a stream is read as it comes, until somebody has had enough") {
  std::atomic<bool> go_on{false};
  test::wire_server s(&issued().server, [&](test::request const&, test::wire& w) {
    w.begin();
    w.piece("one\n");
    while (!go_on && w.alive()) std::this_thread::sleep_for(1ms);
    w.piece("two\n");
    w.piece("three\n");
    w.last_piece();
  });
  k8s::client c(to(s));
  std::string all;
  SUBCASE("the server") {
    c.stream("/log", {},
             [&](std::string_view part) {
               go_on = true;  // the first has come though there is more to come
               all += part;
               return true;
             },
             10s, {});
    CHECK(all == "one\ntwo\nthree\n");
  }
  SUBCASE("the reader") {
    c.stream("/log", {},
             [&](std::string_view part) {
               all += part;
               return false;
             },
             10s, {});
    CHECK(all == "one\n");
  }
  SUBCASE("somebody else") {
    std::atomic<bool> stopped{false};
    c.stream(
        "/log", {},
        [&](std::string_view part) {
          stopped = true;
          all += part;
          return true;
        },
        1h, [&] { return stopped.load(); });
    CHECK(all == "one\n");
  }
  SUBCASE("the client") {
    CHECK(says(thrown<k8s::unreachable>([&] {
                 c.stream("/log", {},
                          [&](std::string_view) {
                            c.stop();
                            return true;
                          },
                          1h, {});
               }),
               {"stopped"}));
    CHECK_THROWS_AS(c.get("/x"), k8s::unreachable);
  }
  SUBCASE("an exception") {
    struct mine {};
    CHECK_THROWS_AS(c.stream("/log", {}, [&](std::string_view) -> bool { throw mine(); }, 10s, {}), mine);
  }
  SUBCASE("time") {
    CHECK(says(thrown<k8s::unreachable>(
                   [&] { c.stream("/log", {}, [&](std::string_view) { return true; }, 200ms, {}); }),
               {"has not answered for 0.2 s"}));
  }
}

TEST_CASE("a stream that is refused says so as any other call") {
  test::wire_server s(&issued().server, [&](test::request const&, test::wire& w) {
    w.json(404, status(404, "NotFound", "pods \"x\" not found"));
  });
  k8s::client c(to(s));
  bool given = false;
  CHECK(says(thrown<k8s::api_error>([&] {
               c.stream("/api/v1/namespaces/default/pods/x/log", {{"follow", "true"}},
                        [&](std::string_view) {
                          given = true;
                          return true;
                        },
                        1s, {});
             }),
             {"404 NotFound: pods \"x\" not found"}));
  CHECK_FALSE(given);
}

TEST_CASE("a call that waits is stopped") {
  std::atomic<bool> asked{false};
  test::wire_server s(&issued().server, [&](test::request const&, test::wire& w) {
    asked = true;
    w.stall();
  });
  k8s::client c(to(s), {.timeout = 1h, .retry_timeout = 1h});
  std::thread other([&] { CHECK_THROWS_AS(c.get("/x"), k8s::unreachable); });
  while (!asked) std::this_thread::sleep_for(1ms);
  c.stop();
  other.join();
}

}  // namespace client_timeouts_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/base/http/server.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/ssl.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "base/http/client.hpp"
#include "edl/base/net/event.hpp"

namespace http_server_test {

using namespace http_client;
using namespace std::chrono_literals;
using edl::http::request;
using edl::http::response;

struct fixture {
  explicit fixture(edl::http::server_options o = {}) : server(node, quiet(std::move(o)), routes()) {}
  static edl::http::server_options quiet(edl::http::server_options o) {
    o.log = edl::logger(edl::severity::critical);
    return o;
  }
  edl::http::router routes() {
    using edl::http::at_once;
    return std::vector<edl::http::route>{
        {"GET", "/hello", at_once([](request const& r) {
           return response{.type = "text/plain", .body = "hello " + r.parameter("name")};
         })},
        {"POST", "/echo/{}", at_once([](request const& r) {
           return response{.type = "text/plain", .body = r.arguments.at(0) + "=" + r.body};
         })},
        {"GET", "/open", at_once([](request const&) { return response{.body = "{}"}; }), true},
        {"GET", "/busy", at_once([](request const&) -> response {
           throw edl::http::failure(429, "the queue is full", {{"Retry-After", "1"}});
         })},
        {"GET", "/broken", at_once([](request const&) -> response { throw edl::error("it broke"); })},
        {"GET", "/slow",
         [this](request&) -> asio::awaitable<response> {
           waiting.set_value();
           while (!go) co_await release.wait();
           co_return response{.type = "text/plain", .body = "at last"};
         }},
        {"GET", "/events", [this](request&) -> asio::awaitable<response> {
           co_return response{.type = "text/event-stream",
                              .stream = [this](edl::http::stream_writer& to) -> asio::awaitable<void> {
                                struct end {
                                  std::promise<void>& said;
                                  ~end() { said.set_value(); }
                                } const end{ended};
                                co_await to.write("data: 1\n\n");
                                while (!go) co_await release.wait();
                                co_await to.write("data: 2\n\n");
                              }};
         }}};
  }
  void let_go() {
    node.post([this] {
      go = true;
      release.notify();
    });
  }

  edl::net::node node{node_options()};
  edl::net::event release{node.executor()};
  bool go = false;
  std::promise<void> waiting, ended;
  edl::http::server server;
};

bool has(std::string const& text, std::string_view part) { return text.find(part) != text.npos; }

TEST_CASE("requests are answered, one after the other on one connection") {
  fixture f;
  connection c(f.server.port());
  std::string const first = c.say(get("/hello?x=1&name=a%20b+c")).answer();
  CHECK(first.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(has(first, "Connection: keep-alive"));
  CHECK(first.ends_with("hello a b c"));
  CHECK(c.say(post("/echo/a%2Fb", "body")).answer().ends_with("a/b=body"));
  // In pieces, in chunks, and two at once.
  for (char const b : post("/echo/x", "yz")) c.say({&b, 1});
  CHECK(c.answer().ends_with("x=yz"));
  CHECK(c.say("POST /echo/c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
              "chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")
            .answer()
            .ends_with("c=abc"));
  c.say(get("/hello") + get("/open"));
  CHECK(c.answer().ends_with("hello "));
  CHECK(c.answer().ends_with("{}"));
  std::string const head = c.say("HEAD /hello HTTP/1.1\r\nHost: h\r\n\r\n").until("\r\n\r\n");
  CHECK(has(head, "Content-Length: 6"));
  std::string const last = c.say(get("/hello", "Connection: close\r\n")).rest();
  CHECK(has(last, "Connection: close"));
  CHECK(last.ends_with("hello "));
  CHECK(f.server.address() == "http://127.0.0.1:" + std::to_string(f.server.port()));
}

TEST_CASE("what is wrong with a request is said, in JSON") {
  fixture f({.bounds = {.header = 300, .body = 8}});
  struct {
    std::string request, status, text;
    bool closes;
  } const wrong[] = {
      {get("/nowhere"), "404 Not Found", "nothing at /nowhere", false},
      {post("/hello", ""), "405 Method Not Allowed", "/hello takes GET, HEAD, not POST", false},
      {"what?\r\n\r\n", "400 Bad Request", "not a request of HTTP/1.1", true},
      {"GET /hello HTTP/1.1\r\n\r\n", "400 Bad Request", "no field 'Host'", true},
      {get("/hello%zz"), "400 Bad Request", "bad %XX at its byte 5", false},
      {post("/echo/a", "123456789"), "413 Content Too Large", "longer than 8 bytes", true},
      {"POST /echo/a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n0\r\n\r\n",
       "413 Content Too Large", "longer than 8 bytes", true},
      {"POST /echo/a HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
       "400 Bad Request", "Transfer-Encoding", true},
      {"POST /echo/a HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
       "400 Bad Request", "Content-Length", true},
      {"POST /echo/a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n" + get("/open"),
       "400 Bad Request", "only 'chunked' is read", true},
      {"POST /echo/a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + get("/open"),
       "501 Not Implemented", "only 'chunked' is read", true},
      {get("/hello", "A: " + std::string(400, 'a') + "\r\n"), "431 Request Header Fields Too Large",
       "longer than 300 bytes", true},
      {get("/hello", "Expect: miracles\r\n"), "417 Expectation Failed", "100-continue", true},
      {get("/busy"), "429 Too Many Requests", "the queue is full", false},
      {get("/broken"), "500 Internal Server Error", "it broke", false},
  };
  for (auto const& w : wrong) {
    CAPTURE(w.request);
    connection c(f.server.port());
    std::string const said = c.say(w.request).answer();
    CHECK(said.starts_with("HTTP/1.1 " + w.status));
    CHECK(has(said, "Content-Type: application/json"));
    CHECK(has(said, "{\"error\":\""));
    CHECK(has(said, w.text));
    if (w.closes)
      CHECK(c.rest().empty());
    else
      CHECK(c.say(get("/open")).answer().ends_with("{}"));
  }
  connection half(f.server.port());
  half.say("GET /hel").say_no_more();
  CHECK(has(half.rest(), "400 Bad Request"));
  CHECK(has(ask(f.server.port(), get("/busy")), "Retry-After: 1"));
  CHECK(has(ask(f.server.port(), post("/open", "")), "Allow: GET, HEAD"));
}

TEST_CASE("a body that has to be asked for is asked for, unless it is too long") {
  fixture f({.bounds = {.body = 8}});
  connection c(f.server.port());
  c.say("POST /echo/a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  CHECK(c.until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  CHECK(c.say("xy").answer().ends_with("a=xy"));
  c.say("POST /echo/a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n");
  CHECK(c.answer().starts_with("HTTP/1.1 413"));
}

TEST_CASE("who has sent a body that is too long hears so, though nobody wants it") {
  fixture f({.bounds = {.body = 8}});
  connection c(f.server.port());
  CHECK(c.say(post("/echo/a", std::string(16 << 20, 'x'))).answer().starts_with("HTTP/1.1 413"));
  CHECK(c.rest().empty());
}

TEST_CASE("without the token nothing is answered but what is open") {
  fixture f({.token = "secret"});
  auto const port = f.server.port();
  std::string const refused = ask(port, get("/hello"));
  CHECK(has(refused, "401 Unauthorized"));
  CHECK(has(refused, "WWW-Authenticate: Bearer"));
  CHECK(has(ask(port, get("/hello", "Authorization: Bearer secreT\r\n")), "401"));
  CHECK(has(ask(port, get("/hello", "Authorization: Bearer secret\r\n")), "200 OK"));
  CHECK(has(ask(port, get("/hello", "Authorization: bEARER secret\r\n")), "200 OK"));
  CHECK(has(ask(port, get("/hello", "Authorization: Bearer\r\n")), "401"));
  CHECK(has(ask(port, get("/open")), "200 OK"));
  CHECK(has(ask(port, post("/open", "")), "405"));
  // What there is, and what it takes, is not told either.
  CHECK(has(ask(port, post("/hello", "")), "401"));
  CHECK(has(ask(port, get("/nowhere")), "401"));
  CHECK(has(ask(port, post("/echo/a", std::string(2 << 20, 'x'))), "401"));
  CHECK(has(ask(port, get("/nowhere", "Authorization: Bearer secret\r\n")), "404"));
  // A body is not read before.
  connection c(port);
  CHECK(has(c.say("POST /echo/a HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n").answer(), "401"));
}

TEST_CASE("who is slow is told, and an idle connection is closed") {
  fixture f({.bounds = {.head = 20ms, .read = 20ms}});
  connection head(f.server.port()), body(f.server.port());
  CHECK(has(head.say("GET /he").rest(), "408 Request Timeout"));
  CHECK(has(body.say("POST /echo/a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nx").rest(),
            "the request's body came too slowly"));
  fixture hasty({.bounds = {.idle = 20ms}});
  CHECK(connection(hasty.server.port()).rest().empty());
}

TEST_CASE("one connection too many is told so") {
  fixture f({.bounds = {.connections = 1}});
  connection first(f.server.port());
  CHECK(has(first.say(get("/open")).answer(), "200 OK"));
  connection second(f.server.port());
  std::string const said = second.rest();
  CHECK(has(said, "503 Service Unavailable"));
  CHECK(has(said, "Retry-After"));
  CHECK(has(first.say(get("/open")).answer(), "200 OK"));
}

TEST_CASE("the bodies of all requests have a bound, too") {
  fixture f({.bounds = {.body = 1000, .bodies = 500}});
  std::string const few(400, 'x'), many(900, 'x');
  for (int i = 0; i < 3; ++i) CHECK(has(ask(f.server.port(), post("/echo/a", few)), "200 OK"));
  connection c(f.server.port());
  std::string const said = c.say(post("/echo/a", many)).answer();
  CHECK(has(said, "503 Service Unavailable"));
  CHECK(has(said, "too many bytes"));
  CHECK(has(ask(f.server.port(), post("/echo/a", few)), "200 OK"));
}

TEST_CASE("clients do not take all descriptors of a process") {
  ::rlimit const before = [] {
    ::rlimit now{};
    ::getrlimit(RLIMIT_NOFILE, &now);
    return now;
  }();
  ::rlimit const few{300, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  {
    fixture f;
    std::vector<std::unique_ptr<connection>> clients;
    for (int i = 0; i < 86; ++i) clients.push_back(std::make_unique<connection>(f.server.port()));
    CHECK(has(clients.back()->say(get("/open")).answer(), "200 OK"));
    CHECK(has(connection(f.server.port()).rest(), "86 clients are connected, the maximum"));
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_CASE("an answer may come in pieces, until the server stops") {
  fixture f;
  connection c(f.server.port());
  std::string const head = c.say(get("/events")).until("\r\n\r\n");
  CHECK(has(head, "Transfer-Encoding: chunked"));
  CHECK(has(head, "Content-Type: text/event-stream"));
  CHECK(c.until("\n\n\r\n") == "9\r\ndata: 1\n\n\r\n");
  SUBCASE("to its end, and the connection goes on") {
    f.let_go();
    CHECK(c.until("0\r\n\r\n") == "9\r\ndata: 2\n\n\r\n0\r\n\r\n");
    CHECK(has(c.say(get("/open")).answer(), "200 OK"));
  }
  SUBCASE("or is cut off") {
    CHECK(f.server.drain(1h));
    CHECK(c.rest().empty());
    f.ended.get_future().wait();
  }
}

TEST_CASE("to a client of HTTP/1.0 a stream ends with the connection") {
  fixture f;
  f.let_go();
  connection c(f.server.port());
  std::string const said = c.say("GET /events HTTP/1.0\r\n\r\n").rest();
  CHECK(said.ends_with("\r\n\r\ndata: 1\n\ndata: 2\n\n"));
}

TEST_CASE("draining lets answers be made, and nothing begins") {
  fixture f;
  connection idle(f.server.port()), busy(f.server.port());
  CHECK(has(idle.say(get("/open")).answer(), "200 OK"));
  busy.say(get("/slow"));
  f.waiting.get_future().wait();
  auto drained = std::async(std::launch::async, [&] { return f.server.drain(1h); });
  CHECK(idle.rest().empty());
  CHECK_THROWS(connection(f.server.port()));
  f.let_go();
  std::string const last = busy.rest();
  CHECK(has(last, "Connection: close"));
  CHECK(last.ends_with("at last"));
  CHECK(drained.get());
}

TEST_CASE("a server that parts answers on, and ends each connection") {
  fixture f;
  connection c(f.server.port());
  CHECK(has(c.say(get("/open")).answer(), "Connection: keep-alive"));
  f.server.part();
  CHECK(has(c.say(get("/open")).rest(), "Connection: close"));
  CHECK(has(ask(f.server.port(), get("/open")), "Connection: close"));
}

TEST_CASE("who has connected is heard before the server ends, also whom nobody has accepted yet") {
  fixture f({.bounds = {.first = 1h}});
  std::promise<void> held, drains;
  f.node.post([&] {
    held.set_value();
    drains.get_future().wait();
  });
  held.get_future().wait();
  auto c = std::make_unique<connection>(f.server.port());  // of which only the system knows
  auto drained = std::async(std::launch::async, [&] {
    drains.set_value();
    return f.server.drain(1h);
  });
  while (true) try {  // until it listens no more
      connection another(f.server.port());
    } catch (std::exception const&) {
      break;
    }
  std::string const said = c->say(get("/hello")).answer();
  CAPTURE(said);
  CHECK(has(said, "200 OK"));
  CHECK(c->rest().empty());
  c.reset();
  CHECK(drained.get());
}

TEST_CASE("where too many are connected, who was quiet for long makes room") {
  fixture f({.bounds = {.connections = 2, .quiet = 0ms}});
  connection first(f.server.port()), second(f.server.port());
  CHECK(has(first.say(get("/open")).answer(), "200 OK"));
  CHECK(has(second.say(get("/open")).answer(), "200 OK"));
  CHECK(has(ask(f.server.port(), get("/open")), "200 OK"));
  CHECK(first.rest().empty());
  CHECK(has(second.say(get("/open")).answer(), "200 OK"));
}

TEST_CASE("a request that has come when draining begins is answered") {
  fixture f;
  auto open = std::make_unique<connection>(f.server.port());
  connection& c = *open;
  CHECK(has(c.say(get("/open")).answer(), "200 OK"));
  std::promise<void> held, drains;
  f.node.post([&] {
    held.set_value();
    drains.get_future().wait();
  });
  held.get_future().wait();
  c.say(get("/hello"));
  auto drained = std::async(std::launch::async, [&] {
    drains.set_value();
    return f.server.drain(1h);
  });
  CHECK(has(c.answer(), "200 OK"));
  CHECK(c.rest().empty());
  open.reset();
  CHECK(drained.get());
}

TEST_CASE("what is not answered in time is cut off, and a node that stops ends all") {
  {
    fixture f;
    connection busy(f.server.port());
    busy.say(get("/slow"));
    f.waiting.get_future().wait();
    CHECK(!f.server.drain(0ms));
    CHECK(busy.rest().empty());
  }
  fixture f;
  connection busy(f.server.port());
  busy.say(get("/slow"));
  f.waiting.get_future().wait();
  f.node.stop();
  CHECK(busy.rest().empty());
}

TEST_CASE("an address that is taken is an error that names it") {
  fixture f;
  CHECK_THROWS_WITH_AS(fixture({.port = f.server.port()}), doctest::Contains("choose another port"),
                       edl::error);
  CHECK_THROWS_AS(fixture({.certificate = "/nowhere"}), edl::usage_error);
  CHECK_THROWS_WITH_AS(fixture({.certificate = "/nowhere", .key = "/nowhere"}), doctest::Contains("/nowhere"),
                       edl::error);
}

TEST_CASE("TLS, where there is a certificate") {
  std::string const where =
      std::filesystem::temp_directory_path() / ("edl-http-" + std::to_string(::getpid()));
  std::filesystem::create_directories(where);
  std::string const key = where + "/key.pem", chain = where + "/chain.pem";
  REQUIRE(std::system(("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
                       "-subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout " +
                       key + " -out " + chain + " >/dev/null 2>&1")
                          .c_str()) == 0);
  {
    fixture f({.certificate = chain, .key = key});
    CHECK(f.server.address().starts_with("https://"));
    asio::io_context io;
    asio::ssl::context trust(asio::ssl::context::tls_client);
    trust.load_verify_file(chain);
    trust.set_verify_mode(asio::ssl::verify_peer);
    asio::ssl::stream<asio::ip::tcp::socket> s(io, trust);
    s.set_verify_callback(asio::ssl::host_name_verification("localhost"));
    s.next_layer().connect({asio::ip::make_address("127.0.0.1"), f.server.port()});
    s.handshake(asio::ssl::stream_base::client);
    asio::write(s, asio::buffer(get("/hello", "Connection: close\r\n")));
    std::string said(4096, '\0');
    asio::error_code failed;
    said.resize(asio::read(s, asio::buffer(said), failed));
    CHECK(failed == asio::error::eof);  // the end was told, and not only the connection's
    CHECK(said.ends_with("hello "));
    connection plain(f.server.port());
    CHECK(!has(plain.say(get("/hello")).rest(), "hello"));
  }
  std::filesystem::remove_all(where);
}

}  // namespace http_server_test

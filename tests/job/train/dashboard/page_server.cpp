// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/dashboard/page_server.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <future>

#include "base/http/client.hpp"

namespace page_server_test {

namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

std::string get(std::string const& path) { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"; }

}  // namespace

TEST_CASE("open pages leave room for whoever asks for a document") {
  edl::train::page_server page(
      {.page = edl::train::make_page("", ""),
       .documents = {{"/api/job", [](edl::http::request const&) { return "{}"; }}},
       .follow = [](std::string_view) -> edl::train::page_news { return [] { return std::string(); }; },
       .log = edl::logger(edl::severity::critical)});
  std::deque<http_client::connection> open;
  for (int i = 0; i < 64; ++i) open.emplace_back(page.port()).say(get("/api/live")).until("retry: 1000\n\n");
  CHECK(page.readers() == 64);
  std::string const said = http_client::connection(page.port()).say(get("/api/live")).answer();
  CHECK(has(said, "503 Service Unavailable"));
  CHECK(has(said, "64 pages are open already"));
  CHECK(http_client::connection(page.port()).say(get("/api/job")).answer().ends_with("{}"));
}

TEST_CASE("a name of this machine is one in any letters, and another name is refused") {
  edl::train::page_server page(
      {.page = edl::train::make_page("", ""),
       .documents = {{"/api/job", [](edl::http::request const&) { return "{}"; }}},
       .follow = [](std::string_view) -> edl::train::page_news { return [] { return std::string(); }; },
       .log = edl::logger(edl::severity::critical)});
  auto const ask = [&](std::string const& host) {
    return http_client::ask(page.port(), "GET /api/job HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  };
  for (char const* host : {"localhost", "LOCALHOST", "LocalHost:80", "[::1]:80", "127.0.0.1"})
    CHECK(ask(host).ends_with("{}"));
  for (char const* host : {"localhost.example.org", "example.org", "10.0.0.1"})
    CHECK(ask(host).starts_with("HTTP/1.1 403 "));
}

TEST_CASE("a page is served with its documents, and one that waits keeps nobody else waiting") {
  std::promise<void> come;
  auto const there = come.get_future().share();
  std::atomic<int> watched{0}, told{0};
  edl::train::page_server page({.page = edl::train::make_page("<body>this one</body>", "'a script';"),
                                .documents = {{"/api/slow/{}",
                                               [there](edl::http::request const& r) {
                                                 there.wait();
                                                 return "[\"" + r.arguments.at(0) + "\"]";
                                               },
                                               true},
                                              {"/api/none",
                                               [](edl::http::request const&) -> std::string {
                                                 throw edl::http::failure(404, "none");
                                               }}},
                                .follow = [&](std::string_view) -> edl::train::page_news {
                                  return [&told]() -> std::optional<std::string> {
                                    if (told == 2) return std::nullopt;
                                    return told == 1 ? "data: one\n\n" : "";
                                  };
                                },
                                .watch = [&] { ++watched; },
                                .log = edl::logger(edl::severity::critical)});
  http_client::connection slow(page.port());
  slow.say(get("/api/slow/a%2Fb"));
  std::string const text = http_client::ask(page.port(), get("/"));
  CHECK(has(text, "<body>this one</body>"));
  CHECK(has(text, "'a script';"));
  CHECK(http_client::ask(page.port(), get("/api/none")).starts_with("HTTP/1.1 404 "));
  CHECK(page.readers() == 0);
  http_client::connection live(page.port());
  live.say(get("/api/live")).until("retry: 1000\n\n");
  CHECK(page.readers() == 1);
  CHECK(watched == 1);
  told = 1;
  page.wake();
  live.until("data: one\n\n");
  told = 2;
  page.wake();
  live.until("0\r\n\r\n");
  come.set_value();
  CHECK(has(slow.answer(), "[\"a/b\"]"));
}

}  // namespace page_server_test

// SPDX-License-Identifier: Apache-2.0
#include "http_file.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "remote/web_server.hpp"
#include "text.hpp"

namespace http_file_test {

using namespace std::chrono_literals;

namespace {

constexpr http_limits impatient{.silence = 60'000ms, .answer = 60'000ms, .tries = 3, .pause = 0ms};

std::string letters(std::size_t n) {
  std::string all(n, '\0');
  for (std::size_t i = 0; i < n; ++i) all[i] = char('a' + i * i % 23);
  return all;
}

std::string read(http_file& file, std::uint64_t offset, std::size_t count) {
  std::string into(count, '\0');
  file.read(offset, into);
  return into;
}

/// What is said when a file is opened of a server that answers so.
std::string refusal(web::server const& s, http_limits const& limits = impatient) {
  return complaint([&] { http_file file(s.url("/a"), limits); });
}

}  // namespace

TEST_CASE("any bytes of a file are read, and no others are asked for") {
  std::string const all = letters(100'000);
  web::server const s(std::map<std::string, std::string>{{"/dir/a?signature=secret", all}});
  http_file file(s.url("/dir/a?signature=secret"), impatient);
  CHECK(file.name() == s.url("/dir/a"));
  CHECK(file.size() == all.size());
  CHECK(read(file, 0, all.size()) == all);
  CHECK(read(file, 77'777, 20) == all.substr(77'777, 20));
  CHECK(read(file, all.size() - 1, 1) == all.substr(all.size() - 1));
  CHECK(s.requests() == 4);
  CHECK(read(file, 5, 0).empty());
  CHECK(s.requests() == 4);
  CHECK(complaint([&] { read(file, all.size() - 1, 2); }) ==
        s.url("/dir/a") + ": ends at byte 100000, before byte 100001");
  CHECK(s.requests() == 4);
}

TEST_CASE("a file without bytes has none") {
  web::server const s(std::map<std::string, std::string>{{"/a", ""}});
  CHECK(http_file(s.url("/a"), impatient).size() == 0);
}

TEST_CASE("what stays as it is is told at once, with URL and byte") {
  auto const told_once = [](std::string const& bytes, std::string const& why) {
    web::server const s([&](web::request const&) { return web::reply{bytes}; });
    CHECK(refusal(s) == s.url("/a") + ": byte 0: " + why);
    CHECK(s.requests() == 1);
  };
  told_once(web::head("200 OK", 5) + "whole",
            "the server answers with the whole file: it knows no range requests");
  told_once(web::head("404 Not Found", 4) + "none", "the server answers 404");
  told_once(web::head("403 Forbidden", 0), "the server answers 403");
  told_once(web::head("302 Found", 0, "Location: http://other/a\r\n"),
            "the server redirects to http://other/a; name that URL");
  told_once(web::head("206 Partial Content", 1, web::content_range(1, 1, 9)) + "x",
            "the server answers `bytes 1-1/9` where `bytes 0-0/…` was asked for");
  told_once(web::head("206 Partial Content", 1) + "x",
            "the server answers `` where `bytes 0-0/…` was asked for");
  told_once(web::head("206 Partial Content", 1, "Content-Range: bytes 0-0/*\r\n") + "x",
            "the size in `bytes 0-0/*` is none");
  told_once(web::head("206 Partial Content", 1, "Content-Range: bytes 0-0/99999999999999999999\r\n") + "x",
            "the size in `bytes 0-0/99999999999999999999` is none");
  told_once(web::head("206 Partial Content", 1, web::content_range(0, 0, 0)) + "x",
            "the server answers `bytes 0-0/0` where `bytes 0-0/…` was asked for");
}

TEST_CASE("a server that is busy is asked again, so often and no oftener") {
  std::string const all = letters(1000);
  for (std::string const status : {"503 Service Unavailable", "500 Internal Server Error",
                                   "429 Too Many Requests", "408 Request Timeout"}) {
    CAPTURE(status);
    web::server const twice([&](web::request const& r) {
      return web::reply{r.number < 3 ? web::head(status, 4) + "busy" : web::part(all, r)};
    });
    http_file file(twice.url("/a"), impatient);
    CHECK(read(file, 0, 1000) == all);
    CHECK(twice.requests() == 4);
    web::server const always([&](web::request const&) { return web::reply{web::head(status, 0)}; });
    CHECK(refusal(always) ==
          always.url("/a") + ": byte 0: the server answers " + status.substr(0, 3) + "; tried 3 times");
    CHECK(always.requests() == 3);
  }
}

TEST_CASE("a connection that is cut goes on where it broke off") {
  std::string const all = letters(1000);
  std::mutex mutex;
  std::vector<std::uint64_t> asked;
  web::server const s([&](web::request const& r) -> web::reply {
    std::lock_guard const lock(mutex);
    asked.push_back(r.first);
    auto const right = web::part(all, r);
    if (r.number == 2) return {right.substr(0, right.size() - 700), web::then::close};
    if (r.number == 3) return {"HTTP/1.1 206 Par", web::then::close};
    return {right};
  });
  http_file file(s.url("/a"), impatient);
  CHECK(read(file, 10, 900) == all.substr(10, 900));
  CHECK(asked == std::vector<std::uint64_t>{0, 10, 210, 210});
}

TEST_CASE("a body that is shorter each time is given up, and says where") {
  std::string const all = letters(1000);
  web::server const s([&](web::request const& r) -> web::reply {
    auto const right = web::part(all, r);
    return r.number == 1 ? web::reply{right}
                         : web::reply{right.substr(0, right.size() - 100), web::then::close};
  });
  http_file file(s.url("/a"), impatient);
  auto const said = complaint([&] { read(file, 0, 500); });
  CHECK(said.starts_with(s.url("/a") + ": byte 400: the answer ends too early"));
  CHECK(said.ends_with("tried 3 times"));
}

TEST_CASE("more bytes than were asked for are not taken") {
  web::server const s([&](web::request const&) {
    return web::reply{web::head("206 Partial Content", 5, web::content_range(0, 0, 9)) + "xxxxx"};
  });
  CHECK(refusal(s) == s.url("/a") + ": byte 0: the server sends more than was asked for; tried 3 times");
}

TEST_CASE("a server that never answers costs a bounded time, and the error says URL and byte") {
  web::server const s([](web::request const&) { return web::reply{{}, web::then::silence}; });
  auto const said = refusal(s, {.silence = 50ms, .answer = 60'000ms, .tries = 2, .pause = 0ms});
  CHECK(said ==
        s.url("/a") + ": byte 0: the answer ends too early, or nothing comes for 50 ms; tried 2 times");
  CHECK(s.requests() == 2);
}

TEST_CASE("so does one that sends a byte now and then, in its head or in its body") {
  std::string const all = letters(1 << 20);
  for (std::string const& bytes :
       {web::part(all, {.last = all.size() - 1}), "HTTP/1.1 206 " + std::string(8'000, 'x')}) {
    web::server const s([&](web::request const& r) -> web::reply {
      return r.number == 1 ? web::reply{web::part(all, r)} : web::reply{bytes, web::then::drip};
    });
    http_file file(s.url("/a"), {.silence = 60'000ms, .answer = 100ms, .tries = 2, .pause = 0ms});
    auto const said = complaint([&] { read(file, 0, all.size()); });
    CAPTURE(said);
    CHECK(said.starts_with(s.url("/a") + ": byte "));
    CHECK(said.ends_with(": the answer is not complete after 100 ms; tried 2 times"));
  }
}

TEST_CASE("nobody there is told with the URL") {
  auto s = std::make_unique<web::server>(std::map<std::string, std::string>{});
  std::string const url = s->url("/a");
  s.reset();
  CHECK(complaint([&] { http_file file(url, impatient); }).starts_with(url + ": byte 0: no connection: "));
}

TEST_CASE("a file that changes while it is open is noticed") {
  std::string const before = letters(1000), longer = letters(1001);
  for (bool const grows : {true, false}) {
    web::server const s([&](web::request const& r) {
      std::string_view const tag = r.number == 1 ? "ETag: \"1\"\r\n" : "ETag: \"2\"\r\n";
      return web::reply{grows ? web::part(r.number == 1 ? before : longer, r) : web::part(before, r, tag)};
    });
    http_file file(s.url("/a"), impatient);
    CHECK(complaint([&] { read(file, 3, 5); }) ==
          s.url("/a") + ": byte 3: the file has changed since it was opened; start again");
  }
}

}  // namespace http_file_test

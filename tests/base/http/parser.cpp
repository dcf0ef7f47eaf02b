// SPDX-License-Identifier: Apache-2.0
#include "edl/base/http/parser.hpp"

#include <doctest/doctest.h>

#include <string>

#include "base/http/client/support.hpp"
#include "edl/base/http/client/errors.hpp"

namespace http_parser_test {

using edl::http::failure;
using edl::http::request_parser, edl::http::response_parser;
using test::says, test::thrown;

TEST_CASE("a request is read in whatever pieces it comes") {
  std::string const text =
      "POST /a%20b?q=1#f HTTP/1.1\r\nHost: h\r\nX-Y:  z \r\nContent-Length: 3\r\n\r\nabcGET / HTTP";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    CAPTURE(step);
    request_parser p(1000, 10);
    std::string waiting;
    std::size_t at = 0;
    while (!p.done()) {
      waiting += text.substr(at, step);
      at += step;
      waiting.erase(0, p.feed(waiting));
    }
    CHECK(p.headed());
    CHECK(p.keeps_alive());
    CHECK(p.chunks());
    auto const r = p.take();
    CHECK(r.method == "POST");
    CHECK(r.path == "/a%20b");
    CHECK(r.query == "q=1");
    CHECK(r.field("x-y") == "z");
    CHECK(r.body == "abc");
    CHECK(std::string("GET / HTTP").starts_with(waiting));
  }
}

TEST_CASE("a chunked body without a chunk is read byte by byte, too") {
  std::string const request = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                    answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  request_parser p(1000, 10);
  std::string waiting;
  for (char c : request) {
    CHECK(!p.done());
    waiting.erase(0, p.feed(waiting += c));
  }
  CHECK(p.done());
  CHECK(waiting.empty());
  response_parser r;
  for (char c : answer) {
    CHECK(!r.done());
    r.feed({&c, 1}, [](std::string_view) { return true; });
  }
  CHECK(r.done());
  CHECK(r.reusable());
}

TEST_CASE("the form of proxies is taken, and what is no path is not") {
  request_parser p(1000, 10);
  p.feed("GET HTTP://h:1/x?y HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(p.head().path == "/x");
  request_parser bare(1000, 10), star(1000, 10);
  bare.feed("GET http://h HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(bare.head().path == "/");
  CHECK_THROWS_AS(star.feed("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"), failure);
  CHECK(!star.done());
  request_parser two(1000, 10);
  CHECK_THROWS_WITH_AS(two.feed("GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n"),
                       "the request has the field 'Host' more than once", failure);
}

TEST_CASE("where the body's end is in doubt, the request is refused, and so is what stands behind it") {
  auto const refused = [](std::string const& fields, std::string const& version = "1.1") {
    request_parser p(1000, 100);
    int status = 200;
    try {
      p.feed("POST / HTTP/" + version + "\r\nHost: h\r\n" + fields +
             "\r\n\r\n0\r\n\r\nGET /next HTTP/1.1\r\n\r\n");
    } catch (failure const& f) {
      status = f.status;
    }
    CHECK(p.done() == (status == 200));
    return status;
  };
  for (char const* const coding : {"chunked", "Chunked", " chunked "}) {
    CAPTURE(coding);
    CHECK(refused("Transfer-Encoding: " + std::string(coding)) == 200);
  }
  for (char const* const coding : {"identity", "gzip", "xchunked", "\"chunked\"", "chunked, identity",
                                   "chunked;q=1", "x, chunked , y", "", ","}) {
    CAPTURE(coding);
    CHECK(refused("Transfer-Encoding: " + std::string(coding)) == 400);
  }
  CHECK(refused("Transfer-Encoding: gzip, chunked") == 501);
  CHECK(refused("Transfer-Encoding: chunked, chunked") == 501);
  CHECK(refused("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked") == 400);
  CHECK(refused("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked") == 400);
  CHECK(refused("Transfer-Encoding : chunked") == 400);
  CHECK(refused("Transfer-Encoding: chunked", "1.0") == 400);
  CHECK(refused("Content-Length: 1\r\nTransfer-Encoding: chunked") == 400);
  CHECK(refused("Transfer-Encoding: chunked\r\nContent-Length: 1") == 400);
  CHECK(refused("Content-Length: 1") == 200);
  for (char const* const length : {"1\r\nContent-Length: 1", "1\r\nContent-Length: 2", "1, 1", "+1", "-1",
                                   "0x1", "1 1", "", "18446744073709551617"}) {
    CAPTURE(length);
    CHECK(refused("Content-Length: " + std::string(length)) == 400);
  }
}

namespace {

/// What an answer holds, fed in pieces of `step` bytes.
struct reading {
  response_parser response;
  std::string body;

  reading(std::string_view bytes, std::size_t step) {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size())))
      response.feed(bytes.substr(0, step), [&](std::string_view part) {
        body += part;
        return true;
      });
  }
};

std::string why(std::string const& bytes) {
  return thrown<edl::http::untrusted>([&] { reading(bytes, 1 << 20); });
}

}  // namespace

TEST_CASE("an answer is read however its bytes are cut") {
  std::string const chunked =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-One:  two \r\n\r\n"
      "5;name=value\r\nhello\r\n1A\r\n, and a piece of 26 bytes.\r\n0\r\nTrailer: x\r\n\r\n";
  std::string const sized = "HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\n\r\nhello";
  std::string const interim =
      "HTTP/1.1 100 Continue\r\nX: y\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n";
  for (std::size_t step : {1, 2, 3, 7, 1000}) {
    CAPTURE(step);
    reading const c(chunked, step);
    CHECK(c.response.code() == 200);
    CHECK(c.response.field("x-one") == "two");
    CHECK(c.response.field("x-two") == "");
    CHECK(c.body == "hello, and a piece of 26 bytes.");
    CHECK(c.response.done());
    CHECK(c.response.reusable());
    reading const s(sized, step);
    CHECK(s.response.code() == 404);
    CHECK(s.body == "hello");
    CHECK(s.response.reusable());
    reading const i(interim, step);
    CHECK(i.response.code() == 201);
    CHECK(i.response.field("x") == "");
    CHECK(i.response.done());
  }
}

TEST_CASE("an answer without a length ends with its connection, others do not") {
  reading r("HTTP/1.1 200 OK\r\n\r\nhello", 100);
  CHECK(r.body == "hello");
  CHECK_FALSE(r.response.done());
  CHECK(r.response.end());
  CHECK(r.response.done());
  CHECK_FALSE(r.response.reusable());
  for (std::string const cut : {"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
                                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"}) {
    CAPTURE(cut);
    reading c(cut, 100);
    CHECK_FALSE(c.response.end());
  }
}

TEST_CASE("a connection is used again when both sides know where the answer ended") {
  auto const reusable = [](std::string const& bytes) { return reading(bytes, 1000).response.reusable(); };
  CHECK(reusable("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
  CHECK(reusable("HTTP/1.1 204 No Content\r\n\r\n"));
  CHECK_FALSE(reusable("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n"));
  CHECK_FALSE(reusable("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
  CHECK_FALSE(reusable("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nmore than that"));
  response_parser r;
  r.feed("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", [](std::string_view) { return false; });
  CHECK(r.done());
  CHECK_FALSE(r.reusable());
}

TEST_CASE("what is no answer is refused") {
  CHECK(says(why("SSH-2.0-OpenSSH_9.2\r\n"), {"not HTTP", "'SSH-2.0-OpenSSH_9.2'"}));
  CHECK(says(why("HTTP/2 200\r\n"), {"not HTTP"}));
  CHECK(says(why("HTTP/1.1 099 OK\r\n\r\n"), {"bad status"}));
  CHECK(says(why("HTTP/1.1 2x0 OK\r\n"), {"not HTTP"}));
  CHECK(says(why("HTTP/1.1 200 OK\r\nno field\r\n"), {"bad field"}));
  CHECK(says(why("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), {"bad Content-Length"}));
  CHECK(says(why("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"), {"bad Content-Length"}));
  CHECK(says(why("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
             {"unknown transfer encoding"}));
  std::string const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  CHECK(says(why(chunked + "x\r\n"), {"bad chunk at 'x'"}));
  CHECK(says(why(chunked + "-5\r\n"), {"bad chunk"}));
  CHECK(says(why(chunked + "fffffffffffffffff\r\n"), {"bad chunk"}));
  CHECK(says(why(chunked + "5\r\nhelloworld"), {"bad chunk"}));
  CHECK(says(why(chunked + "5\r\nhello!\r\n\r\n"), {"bad chunk"}));
  CHECK(says(why(chunked + std::string(70'000, '1')), {"header limit"}));
  CHECK(says(why("HTTP/1.1 200 OK\r\n" + std::string(70'000, 'x')), {"header limit"}));
  std::string many = "HTTP/1.1 200 OK\r\n";
  while (many.size() < 70'000) many += "X: y\r\n";
  CHECK(says(why(many), {"header limit"}));
  // Interim answers do not go on for ever, either.
  std::string interim;
  while (interim.size() < 70'000) interim += "HTTP/1.1 100 Continue\r\n\r\n";
  CHECK(says(why(interim), {"header limit"}));
}

}  // namespace http_parser_test

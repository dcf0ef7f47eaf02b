// SPDX-License-Identifier: Apache-2.0
#include "edl/base/http/request_parser.hpp"

#include <doctest/doctest.h>

#include <string>

namespace http_request_parser_test {

using edl::http::failure;
using edl::http::request_parser;

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

}  // namespace http_request_parser_test

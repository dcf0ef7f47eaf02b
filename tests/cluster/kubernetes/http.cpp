// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/http.hpp"

#include <doctest/doctest.h>

#include "cluster/kubernetes/support.hpp"

namespace http_test {

namespace k8s = edl::kubernetes;
using test::says, test::thrown;

namespace {

/// What an answer holds, fed in pieces of `step` bytes.
struct reading {
  k8s::response response;
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
  return thrown<k8s::untrusted>([&] { reading(bytes, 1 << 20); });
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
  k8s::response r;
  r.feed("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", [](std::string_view) { return false; });
  CHECK(r.done());
  CHECK_FALSE(r.reusable());
}

TEST_CASE("what is no answer is refused") {
  CHECK(says(why("SSH-2.0-OpenSSH_9.2\r\n"), {"no HTTP", "'SSH-2.0-OpenSSH_9.2'"}));
  CHECK(says(why("HTTP/2 200\r\n"), {"no HTTP"}));
  CHECK(says(why("HTTP/1.1 2x0 OK\r\n"), {"no HTTP"}));
  CHECK(says(why("HTTP/1.1 200 OK\r\nno field\r\n"), {"a bad field 'no field'"}));
  CHECK(says(why("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), {"a bad length '-1'"}));
  CHECK(says(why("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"), {"a bad length"}));
  CHECK(says(why("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
             {"an unknown transfer encoding"}));
  std::string const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  CHECK(says(why(chunked + "x\r\n"), {"a bad chunk size 'x'"}));
  CHECK(says(why(chunked + "-5\r\n"), {"a bad chunk size"}));
  CHECK(says(why(chunked + "fffffffffffffffff\r\n"), {"a bad chunk size"}));
  CHECK(says(why(chunked + "5\r\nhelloworld"), {"a line too long"}));
  CHECK(says(why(chunked + "5\r\nhello!\r\n"), {"a chunk that does not end"}));
  CHECK(says(why(chunked + std::string(5000, '1')), {"a line too long"}));
  CHECK(says(why("HTTP/1.1 200 OK\r\n" + std::string(70'000, 'x')), {"too long"}));
  std::string many = "HTTP/1.1 200 OK\r\n";
  while (many.size() < 70'000) many += "X: y\r\n";
  CHECK(says(why(many), {"a head too long"}));
  // Interim answers do not go on for ever, either.
  std::string interim;
  while (interim.size() < 70'000) interim += "HTTP/1.1 100 Continue\r\n\r\n";
  CHECK(says(why(interim), {"a head too long"}));
}

TEST_CASE("all but unreserved characters are escaped") {
  CHECK(k8s::percent_encoded("azAZ09-._~") == "azAZ09-._~");
  CHECK(k8s::percent_encoded("a=b,c in (d)&/?#%\xc3\xa9") == "a%3Db%2Cc%20in%20%28d%29%26%2F%3F%23%25%C3%A9");
}

}  // namespace http_test

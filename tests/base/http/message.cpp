// SPDX-License-Identifier: Apache-2.0
#include "edl/base/http/message.hpp"

#include <doctest/doctest.h>

namespace http_message_test {

TEST_CASE("fields and keys of the query are found by their names") {
  edl::http::request const r{.query = "a=1&b=x%26y+z&c&=e", .headers = {{"host", "here"}}};
  CHECK(r.field("host") == "here");
  CHECK(r.field("accept").empty());
  CHECK(r.parameter("a") == "1");
  CHECK(r.parameter("b") == "x&y z");
  CHECK(r.parameter("c").empty());
  CHECK(r.parameter("d").empty());
}

TEST_CASE("codes are decoded, and what is none is refused") {
  CHECK(edl::http::decoded("a%2fb+c") == "a/b+c");
  CHECK(edl::http::decoded("a+c", true) == "a c");
  for (char const* wrong : {"%", "%2", "%zz", "%00", "a%-1"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(edl::http::decoded(wrong), edl::http::failure);
  }
}

TEST_CASE("an error is JSON, whatever it quotes") {
  auto const r = edl::http::to_response({404, "no \"x\" \xff", {{"A", "b"}}});
  CHECK(r.status == 404);
  CHECK(r.body == "{\"error\":\"no \\\"x\\\" \xEF\xBF\xBD\"}\n");
  CHECK(r.headers.at(0).second == "b");
  CHECK(edl::http::reason(404) == "Not Found");
}

TEST_CASE("all but unreserved characters are escaped") {
  CHECK(edl::http::percent_encoded("azAZ09-._~") == "azAZ09-._~");
  CHECK(edl::http::percent_encoded("a=b,c in (d)&/?#%\xc3\xa9") ==
        "a%3Db%2Cc%20in%20%28d%29%26%2F%3F%23%25%C3%A9");
}

}  // namespace http_message_test

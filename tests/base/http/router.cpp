// SPDX-License-Identifier: Apache-2.0
#include "edl/base/http/router.hpp"

#include <doctest/doctest.h>

namespace http_router_test {

using edl::http::failure;

int status(edl::http::router const& r, std::string const& method, std::string const& path) {
  auto const found = r.find({.method = method, .path = path});
  return found.refused ? found.refused->status : 200;
}

TEST_CASE("a path is matched by segments") {
  edl::http::router const r({{"GET", "/v2/models/{}", {}},
                             {"POST", "/v2/models/{}/infer", {}},
                             {"GET", "/", {}},
                             {"GET", "/v2", {}}});
  auto const infer = r.find({.method = "POST", .path = "/v2/models/a%2Fb/infer"});
  REQUIRE(infer.at);
  CHECK(infer.at->path == "/v2/models/{}/infer");
  CHECK(infer.arguments == std::vector<std::string>{"a/b"});
  CHECK(status(r, "GET", "/") == 200);
  CHECK(status(r, "HEAD", "/v2") == 200);
  CHECK(status(r, "GET", "/v2/") == 404);
  CHECK(status(r, "GET", "/v2/models/") == 404);
  CHECK(status(r, "GET", "/v2/models/a/infer") == 405);
  CHECK(status(r, "GET", "/v2/models/a/infer/b") == 404);
  CHECK(status(r, "GET", "/v2/models/%") == 400);
}

TEST_CASE("the first path that fits decides, and tells all methods that it has") {
  auto const exists = [](std::vector<std::string> const& arguments) {
    if (arguments.at(0) != "a") throw failure(404, "no " + arguments[0]);
  };
  edl::http::router const r({{"POST", "/{}:predict", {}, false, exists},
                             {"GET", "/{}", {}, false, exists},
                             {"PUT", "/{}", {}, false, exists}});
  for (auto const& [path, takes] : {std::pair{"/a:predict", "POST"}, {"/a", "GET, HEAD, PUT"}}) {
    auto const found = r.find({.method = "DELETE", .path = path});
    REQUIRE(found.refused);
    CHECK(found.refused->status == 405);
    CHECK(found.refused->headers == edl::http::fields{{"Allow", takes}});
  }
  CHECK(status(r, "POST", "/b:predict") == 200);  // its handler tells
  CHECK(status(r, "DELETE", "/b:predict") == 404);
  CHECK(status(r, "DELETE", "/b") == 404);
  CHECK(r.find({.method = "POST", .path = "/a%3Apredict"}).arguments == std::vector<std::string>{"a"});
  CHECK(status(r, "PUT", "/:predict") == 200);  // a name
}

}  // namespace http_router_test

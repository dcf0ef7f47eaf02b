// SPDX-License-Identifier: Apache-2.0
#include "edl/job/http/router.hpp"

#include <doctest/doctest.h>

namespace http_router_test {

using edl::http::failure;

int status(edl::http::router const& r, std::string const& method, std::string const& path) {
  std::vector<std::string> arguments;
  try {
    r.find({.method = method, .path = path}, arguments);
    return 200;
  } catch (failure const& f) {
    return f.status;
  }
}

TEST_CASE("a path is matched by segments") {
  edl::http::router const r({{"GET", "/v2/models/{}", {}},
                             {"POST", "/v2/models/{}/infer", {}},
                             {"GET", "/", {}},
                             {"GET", "/v2", {}}});
  std::vector<std::string> arguments;
  CHECK(r.find({.method = "POST", .path = "/v2/models/a%2Fb/infer"}, arguments).path ==
        "/v2/models/{}/infer");
  CHECK(arguments == std::vector<std::string>{"a/b"});
  CHECK(status(r, "GET", "/") == 200);
  CHECK(status(r, "HEAD", "/v2") == 200);
  CHECK(status(r, "GET", "/v2/") == 404);
  CHECK(status(r, "GET", "/v2/models/") == 404);
  CHECK(status(r, "GET", "/v2/models/a/infer") == 405);
  CHECK(status(r, "GET", "/v2/models/a/infer/b") == 404);
  CHECK(status(r, "GET", "/v2/models/%") == 400);
}

}  // namespace http_router_test

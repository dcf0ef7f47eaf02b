// SPDX-License-Identifier: Apache-2.0
#include "edl/platform/kubernetes/job_size.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace edl::platform::kubernetes;
using nlohmann::json;

namespace {

json pod(json const& annotations) { return {{"metadata", {{"annotations", annotations}}}}; }

}  // namespace

TEST_CASE("A master's pod shows the size of its job, or none") {
  CHECK(to_text({3, 2}) == "workers=3,servers=2");
  CHECK(shown_size(pod({{"elasticdl/size", "workers=3,servers=2"}})) == job_size{3, 2});
  for (char const* other : {"", "workers=3", "workers=3,servers=", "workers=3,servers=2,more=1",
                            "workers=-1,servers=2", "workers=99999999999,servers=2", "servers=2,workers=3"})
    CHECK_FALSE(shown_size(pod({{"elasticdl/size", other}})));
  CHECK_FALSE(shown_size(json::object()));
  CHECK_FALSE(shown_size(pod({{"elasticdl/size", 3}})));
}

TEST_CASE("A wish is what its annotations say") {
  CHECK(wish_of(json::object()).empty());
  size_wish const wish = wish_of(pod({{"elasticdl/num-workers", "3"}}));
  CHECK(wish == size_wish{"3", ""});
  CHECK_FALSE(wish.empty());
  CHECK_FALSE(wish_of(pod({{"elasticdl/num-ps-pods", "x"}})).empty());
}

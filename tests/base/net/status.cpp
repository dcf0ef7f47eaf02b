// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/status.hpp"

#include <doctest/doctest.h>

namespace status_test {

using namespace edl::net;

TEST_CASE("statuses have names, also those of a newer peer") {
  CHECK(name(status::ok) == "ok");
  CHECK(name(status::stale_generation) == "stale generation");
  CHECK(name(status::internal) == "internal");
  CHECK(name(status(77)) == "unknown");
}

}  // namespace status_test

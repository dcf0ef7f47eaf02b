// SPDX-License-Identifier: Apache-2.0
#include "edl/app/environment.hpp"

#include <doctest/doctest.h>

#include "edl/core/error.hpp"

namespace environment_test {

using namespace edl::app;

TEST_CASE("MASTER_ADDR is one address or several") {
  auto const one = master_addresses("10.0.0.3:50001");
  REQUIRE(one.size() == 1);
  CHECK(one[0].host == "10.0.0.3");
  CHECK(one[0].port == 50001);
  auto const two = master_addresses("unix:@edl-x,tcp:h:1");
  REQUIRE(two.size() == 2);
  CHECK(joined(two) == "unix:@edl-x!master,tcp:h:1!master");  // nobody else may answer there
  CHECK_THROWS_AS(master_addresses("nowhere"), edl::error);
  CHECK_THROWS_AS(master_addresses(""), edl::error);
}

TEST_CASE("a process can say how it was started, and no two are the same") {
  CHECK(own_command().at(0).find("test-app") != std::string::npos);
  CHECK(draw_incarnation() != draw_incarnation());
}

}  // namespace environment_test

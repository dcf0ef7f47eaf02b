// SPDX-License-Identifier: Apache-2.0
#include "edl/job/ps/frozen.hpp"

#include <doctest/doctest.h>

#include <string>

namespace frozen_test {

using edl::ps::frozen;

TEST_CASE("versions are kept until they are released") {
  frozen<std::string> kept(2);
  CHECK(kept.keep(10, "ten"));
  CHECK(kept.find(10) == "ten");
  CHECK_FALSE(kept.find(11));
  kept.release(10);
  kept.release(10);
  CHECK_FALSE(kept.find(10));
}

TEST_CASE("the oldest that nobody asked for gives way; what is under way stays") {
  frozen<std::string> kept(2);
  CHECK(kept.keep(10, "ten"));
  CHECK(kept.keep(20, "twenty"));
  CHECK(kept.find(10));
  CHECK(kept.keep(30, "thirty"));
  CHECK(kept.size() == 2);
  CHECK_FALSE(kept.find(20));
  CHECK(kept.find(30));
  CHECK_FALSE(kept.keep(40, "forty"));  // both are in use
  CHECK_FALSE(kept.find(40));
  kept.release(10);
  CHECK(kept.keep(50, "fifty"));
  kept.clear();
  CHECK(kept.size() == 0);
  CHECK_FALSE(frozen<std::string>(0).keep(1, "one"));
}

}  // namespace frozen_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/literal.hpp"

#include <doctest/doctest.h>

#include <type_traits>

namespace literal_test {

namespace {

template <edl::nn::literal Name>
struct named {
  static constexpr std::string_view name = Name.view();
};

}  // namespace

TEST_CASE("a literal is a name that tells types apart") {
  CHECK(named<"age">::name == "age");
  CHECK(named<"">::name.empty());
  CHECK(std::is_same_v<named<"age">, named<"age">>);
  CHECK_FALSE(std::is_same_v<named<"age">, named<"ages">>);
}

}  // namespace literal_test

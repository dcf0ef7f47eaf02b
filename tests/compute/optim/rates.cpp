// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/rates.hpp"

#include <doctest/doctest.h>

#include <limits>

namespace rates_test {

using edl::rate_of, edl::rates;

TEST_CASE("rates are parts with names and factors above 0, at most sixteen") {
  constexpr rates some{{"conv2d*", 0.1f}, {"dense/kernel,dense/bias", 2.0f}};
  static_assert(some.valid() && some.parts().size() == 2);
  static_assert(some.parts()[1].names == "dense/kernel,dense/bias" && some.parts()[1].factor == 2);
  static_assert(rates{}.valid() && rates{}.parts().empty());
  static_assert(rates{{"conv2d*", 0.1f}}.parts().size() == 1);
  static_assert(!rates{{"conv2d*", 0.0f}}.valid());
  static_assert(!rates{{"conv2d*", -1.0f}}.valid());
  static_assert(!rates{{"", 1.0f}}.valid());
  CHECK_FALSE(rates{{"a", std::numeric_limits<float>::infinity()}}.valid());
  CHECK_FALSE(rates{{"a", std::numeric_limits<float>::quiet_NaN()}}.valid());
  constexpr rate_of a{"a", 1};
  constexpr rates most{a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a};
  static_assert(most.valid() && most.parts().size() == rates::most);
  constexpr rates more{a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a};
  static_assert(!more.valid() && more.parts().size() == rates::most);
}

}  // namespace rates_test

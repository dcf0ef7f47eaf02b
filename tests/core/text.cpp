// SPDX-License-Identifier: Apache-2.0
#include "edl/core/text.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

namespace text_test {

using edl::number_from;

TEST_CASE("blanks go at the ends alone") {
  CHECK(edl::trimmed("\t a b\r\n") == "a b");
  CHECK(edl::trimmed(" \n").empty());
  CHECK(edl::trimmed("").empty());
  CHECK(edl::trimmed("\n a\n ", " ") == "\n a\n");
  CHECK(edl::lower("Größe A-Z") == "größe a-z");
}

TEST_CASE("a number is the whole text, and of its type") {
  CHECK(number_from<int>("-12") == -12);
  CHECK(number_from<std::uint64_t>("18446744073709551615") == ~std::uint64_t{0});
  CHECK(number_from<std::uint64_t>("ff", 16) == 255u);
  CHECK(number_from<double>("1e-3") == 0.001);
  CHECK(std::isinf(number_from<float>("inf").value()));
  for (char const* none : {"", " 1", "1 ", "+1", "1x", "0x1", "1.5", "2147483648", "--1"}) {
    CAPTURE(none);
    CHECK_FALSE(number_from<int>(none));
  }
  CHECK_FALSE(number_from<unsigned>("-1"));
  CHECK_FALSE(number_from<float>("1e39"));
}

}  // namespace text_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/author/shortened.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace shortened_test {

TEST_CASE("rows are cut to another width, or filled up with zeros") {
  edl::author::shortened<std::int32_t> cut;
  std::vector<std::int32_t> const rows{1, 2, 3, 4, 5, 6};
  auto const list = [](edl::view<std::int32_t> of) { return std::vector(of.begin(), of.end()); };
  CHECK(list(cut(rows, 3, 2)) == std::vector<std::int32_t>{1, 2, 4, 5});
  CHECK(list(cut(rows, 3, 3)) == rows);
  CHECK(list(cut(rows, 2, 3)) == std::vector<std::int32_t>{1, 2, 0, 3, 4, 0, 5, 6, 0});
  CHECK(list(cut({}, 2, 3)).empty());
}

}  // namespace shortened_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/features/pieces.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace pieces_test {

using edl::features::pieces;

std::vector<std::string> all(pieces const& of) {
  std::vector<std::string> list;
  for (std::string_view const piece : of) list.emplace_back(piece);
  return list;
}

TEST_CASE("a text falls into pieces, and the ignored ones are left out") {
  using list = std::vector<std::string>;
  CHECK(all(pieces("1,2,3")) == list{"1", "2", "3"});
  CHECK(all(pieces("")) == list{});
  CHECK(all(pieces(",,a,,b,")) == list{"a", "b"});
  CHECK(all(pieces("4|-1|5", '|', "-1")) == list{"4", "5"});
  CHECK(all(pieces("4||", '|', "-1")) == list{"4", "", ""});
  CHECK(all(pieces("-1", '|', "-1")) == list{});
}

}  // namespace pieces_test

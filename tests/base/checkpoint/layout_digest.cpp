// SPDX-License-Identifier: Apache-2.0
#include "edl/base/checkpoint/layout_digest.hpp"

#include <doctest/doctest.h>

#include "base/wire/scratch.hpp"

namespace layout_digest_test {

using edl::checkpoint::layout_digest;

TEST_CASE("a digest changes with names, extents, order and what is trained") {
  auto const layout = odd_layout();
  auto const digest = layout_digest(layout);
  CHECK(layout_digest(odd_layout()) == digest);
  auto other = layout;
  other.variables[1].name = "conv2d_1/biaz";
  CHECK(layout_digest(other) != digest);
  other = layout;
  other.variables[3].dims = {7, 12};
  CHECK(layout_digest(other) != digest);
  other = layout;
  other.variables[3].dims = {84};
  CHECK(layout_digest(other) != digest);
  other = layout;
  std::swap(other.variables[1], other.variables[2]);
  CHECK(layout_digest(other) != digest);
  other = layout;
  other.parameters += 5, other.state -= 5;
  CHECK(layout_digest(other) != digest);
}

TEST_CASE("a digest is the same for ever: files carry it") {
  // FNV-1a of sixteen zero bytes, computed apart.
  CHECK(layout_digest({}) == 0x88201FB960FF6465u);
}

}  // namespace layout_digest_test

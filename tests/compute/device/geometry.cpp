// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/geometry.hpp"

#include <doctest/doctest.h>

namespace geometry_test {

TEST_CASE("a convolution takes as many samples into a product as keep it efficient") {
  edl::conv_geometry g{{28, 28, 8}, {26, 26, 4}, 3, 1, 0, 2};
  CHECK(g.patch() == 3 * 3 * 4);
  CHECK(g.positions() == 26 * 26);
  CHECK(g.samples_at_once(64) == 1);
  g.out = {4, 4, 4};
  CHECK(g.samples_at_once(64) == 32);
  CHECK(g.samples_at_once(5) == 5);
}

TEST_CASE("only a 1x1 kernel at every place needs no patches") {
  edl::conv_geometry g{{8, 8, 3}, {8, 8, 4}, 1, 1, 0, 1};
  CHECK(g.pointwise());
  g.stride = 2;
  CHECK_FALSE(g.pointwise());
}

TEST_CASE("a chain that pools leaves out what fills no window") {
  CHECK(edl::norm_chain{.in = {5, 4, 3}, .window = 2}.out() == edl::shape{2, 2, 3});
  CHECK(edl::norm_chain{.in = {5, 4, 3}}.out() == edl::shape{5, 4, 3});
}

TEST_CASE("narrow samples take half the scalars") {
  CHECK(edl::elements_of(6, true) == 12);
  CHECK(edl::elements_of(6, false) == 6);
  CHECK(edl::scalars_of(7, false) == 7);
  CHECK(edl::scalars_of(7, true) == 4);
  CHECK(edl::scalars_of(8, true) == 4);
  CHECK_FALSE(edl::bfloat16_io{}.any());
  CHECK(edl::bfloat16_io{.out = true}.any());
}

}  // namespace geometry_test

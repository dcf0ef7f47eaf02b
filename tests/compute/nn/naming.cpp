// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/naming.hpp"

#include <doctest/doctest.h>

namespace naming_test {

namespace nn = edl::nn;

TEST_CASE("names are paths, twins are numbered within their container, parameters lie before state") {
  nn::naming names;
  nn::variable_spec const kernel{.name = "kernel", .dims = {2, 3}},
      mean{.name = "mean", .dims = {4}, .trained = false};
  names.enter("norm");
  names.add(mean);
  names.leave();
  for (int i = 0; i < 2; ++i) {
    names.enter("block");
    for (int k = 0; k < 2; ++k) {
      names.enter("dense");
      names.add(kernel);
      names.leave();
    }
    names.leave();
  }
  edl::parameter_layout const l = names.lay_out();
  REQUIRE(l.variables.size() == 5);
  CHECK(l.parameters == 24);
  CHECK(l.state == 4);
  char const* const wanted[] = {"block/dense/kernel", "block/dense_1/kernel", "block_1/dense/kernel",
                                "block_1/dense_1/kernel", "norm/mean"};
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(l.variables[i].name == wanted[i]);
    CHECK(l.variables[i].offset == 6 * i);
  }
}

}  // namespace naming_test

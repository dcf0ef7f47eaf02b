// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/upsample.hpp"

#include "compute/nn/harness.hpp"

namespace upsample_test {

namespace nn = edl::nn;

TEST_CASE("upsample repeats each place, exactly") {
  for (edl::extent const factor : {edl::extent{2}, edl::extent{1, 3}, edl::extent{3, 1}, edl::extent{1}}) {
    lone_layer<nn::upsample> h{
        .l = {.factor = factor}, .in = {2, 3, 5}, .batch = 2, .cpu = edl::basic_cpu<double>({.threads = 3})};
    CHECK(h.out == edl::shape{2 * factor.height, 3 * factor.width, 5});
    h.forward();
    auto const at = [](edl::shape s, int sample, int row, int column, int channel) {
      return std::size_t(((sample * s.height + row) * s.width + column) * s.channels + channel);
    };
    for (int s = 0; s < 2; ++s)
      for (int i = 0; i < h.out.height; ++i)
        for (int j = 0; j < h.out.width; ++j)
          for (int k = 0; k < 5; ++k)
            REQUIRE(h.y[at(h.out, s, i, j, k)] == h.x[at(h.in, s, i / factor.height, j / factor.width, k)]);
  }
}

TEST_CASE("gradients of upsample") {
  check_gradients(nn::upsample{}, {3, 2, 4});
  check_gradients(nn::upsample{.factor = {1, 3}}, {2, 2, 3});
  check_gradients(nn::upsample{.factor = {3, 2}}, {2, 2, 1});
}

TEST_CASE("a factor below 1 does not fit") {
  CHECK(nn::upsample{.factor = {0, 2}}.check({2, 2, 2}) == edl::fit::option_out_of_range);
}

}  // namespace upsample_test

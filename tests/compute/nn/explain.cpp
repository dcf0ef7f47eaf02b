// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/explain.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "compute/nn/networks.hpp"

namespace explain_test {

TEST_CASE("a plan says what is computed as one, by what, and how much memory it takes") {
  edl::cpu own({.kernels = edl::kernels::own});
  std::ostringstream said;
  edl::nn::explain<mnist>(said, own, 64);
  std::string const text = said.str();
  CAPTURE(text);
  CHECK(text.find("conv2d (2 layers)") != std::string::npos);
  CHECK(text.find("batch_normalization (2 layers)") != std::string::npos);
  CHECK(text.find("24x24x64     12x12x64") != std::string::npos);
  CHECK(text.find("patches, Eigen's product") != std::string::npos);
  CHECK(text.find("\ndense ") != std::string::npos);
  CHECK(text.find("memory, MB: variables 0.44, gradients 0.44") != std::string::npos);
}

TEST_CASE("what stands within a step is indented under it") {
  edl::cpu device;
  std::ostringstream said;
  edl::nn::explain<zoo>(said, device, 4);
  std::string const text = said.str();
  CAPTURE(text);
  CHECK(text.find("\nresidual ") != std::string::npos);
  CHECK(text.find("\n  sequential ") != std::string::npos);
  CHECK(text.find("\n    batch_normalization (2 layers)") != std::string::npos);
  CHECK(text.find("\n  max_pool ") != std::string::npos);
}

struct gate {
  constexpr auto forward(auto a, auto b, auto& layer) const {
    return a * edl::nn::sigmoid(layer.variable("slope", b.channels(), edl::nn::constant{1}) * b);
  }
};

TEST_CASE("a plan has a line for each joint of a graph, and for the product with a tied table") {
  static constexpr auto joined = edl::nn::graph(edl::nn::features{8}, [](auto x) {
    auto const a = x | edl::nn::dense{.units = 4}, b = x | edl::nn::dense{.units = 4};
    auto const sum = edl::nn::apply(gate{}, a, b) + a;
    return sum | edl::nn::dense{.units = 2};
  });
  static constexpr auto attends =
      edl::nn::graph(edl::nn::image{.height = 4, .width = 1, .channels = 4}, [](auto x) {
        auto const y = edl::nn::cross_attention(x, x | edl::nn::relu{}, {.heads = 2});
        return edl::nn::matmul(y, x) | edl::nn::dense{.units = 2};
      });
  static constexpr auto tied = edl::nn::sequential(
      edl::nn::ids{8}, edl::nn::tied(edl::nn::embedding{.vocabulary = 500, .width = 16}, edl::nn::relu{}));
  edl::cpu device;
  std::ostringstream graph, matrices, table;
  edl::nn::explain<joined>(graph, device, 10'000);
  edl::nn::explain<attends>(matrices, device, 1);
  edl::nn::explain<tied>(table, device, 1000);
  CAPTURE(graph.str());
  CAPTURE(matrices.str());
  CAPTURE(table.str());
  CHECK(graph.str().find(
            "\n  gate                                    1x1x4        1x1x4           4      0.") !=
        std::string::npos);
  CHECK(graph.str().find(
            "\n  sum                                     1x1x4        1x1x4           0      0.16") !=
        std::string::npos);
  for (auto const* joint : {"\n  cross_attention ", "\n  matmul "})
    CHECK(matrices.str().find(joint) != std::string::npos);
  // 8,000 places of 500 elements, and a gradient of 16.
  CHECK(table.str().find(
            "product with the table                   1x8x16      1x8x500           0     16.51") !=
        std::string::npos);
}

TEST_CASE("a plan says what is computed again for a bound of memory") {
  static constexpr auto deep = edl::nn::sequential(
      edl::nn::image{.height = 8, .width = 8, .channels = 4},
      edl::nn::repeat<4>(edl::nn::sequential(edl::nn::residual(block(4)), edl::nn::relu{})),
      edl::nn::dense{.units = 2});
  edl::cpu device;
  std::ostringstream whole, bounded, wide;
  std::size_t const all = edl::model<deep, edl::cpu>::memory(64).total();
  CHECK(edl::nn::explain<deep>(whole, device, 64).empty());
  std::string const price = edl::nn::explain<deep>(bounded, device, 64, all * 8 / 10);
  CHECK(bounded.str().ends_with("\n" + price + "\n"));
  edl::nn::explain<deep>(wide, device, 64, all);
  CHECK(wide.str().ends_with("\nnothing has to be computed again for --memory_budget\n"));
  CHECK(whole.str().find("computed again") == std::string::npos);
  CHECK(bounded.str().find(" of 4 steps within step 1 are computed again in the backward pass: about ") !=
        std::string::npos);
}

TEST_CASE("a plan counts two bytes where samples are bfloat16") {
  edl::cpu own({.kernels = edl::kernels::own, .precision = edl::precision::bfloat16});
  std::ostringstream said;
  edl::nn::explain<mnist>(said, own, 64);
  std::string const text = said.str();
  CAPTURE(text);
  // 64 samples of 9,216 elements, and a byte for each that says whether it stays.
  CHECK(text.find("dropout                                12x12x64     12x12x64           0      1.77") !=
        std::string::npos);
}

}  // namespace explain_test

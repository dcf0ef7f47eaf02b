// SPDX-License-Identifier: Apache-2.0
// A perceptron of two hidden layers on MNIST.
#include <edl/edl.hpp>

namespace nn = edl::nn;

struct mlp {
  static constexpr auto network = nn::sequential(
      nn::features{.count = 784}, nn::dense{.units = 512}, nn::relu{}, nn::dropout{.rate = 0.2f},
      nn::dense{.units = 512}, nn::relu{}, nn::dropout{.rate = 0.2f}, nn::dense{.units = 10});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::adam optimizer{};
  static constexpr edl::polynomial_decay schedule{.rate = 0.001f,
                                                  .steps = 4690};  // 5 epochs of minibatches of 64
  using metrics = edl::metrics<edl::accuracy>;

  static void feed(edl::example const& record, edl::sample<mlp>& into, edl::mode m) {
    into.features = record.floats("image") / 255.0f;
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

int main(int argc, char** argv) { return edl::run<mlp>(argc, argv); }

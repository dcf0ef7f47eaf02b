// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/any_device.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
#include "edl/core/error.hpp"

namespace any_device_test {

namespace nn = edl::nn;

namespace {

constexpr auto every_operation = nn::sequential(
    nn::image{.height = 12, .width = 12, .channels = 3},
    nn::conv2d{.filters = 8, .kernel = 3, .padding = nn::padding::same}, nn::batch_norm{}, nn::relu{},
    nn::max_pool{.window = 2}, nn::dropout{.rate = 0.25f},
    nn::residual(nn::sequential(nn::conv2d{.filters = 8, .kernel = 3, .padding = nn::padding::same},
                                nn::batch_norm{}, nn::gelu{})),
    nn::relu{}, nn::average_pool{.window = 2},
    nn::concat(nn::sequential(nn::conv2d{.filters = 3, .kernel = 1}, nn::sigmoid{}),
               nn::sequential(nn::conv2d{.filters = 2, .kernel = 1}, nn::tanh{}),
               nn::sequential(nn::conv2d{.filters = 2, .kernel = 1}, nn::leaky_relu{})),
    nn::scale{.factor = 0.5f}, nn::dense{.units = 6}, nn::softmax{});

template <class Device>
using network = edl::model<every_operation, Device>;

constexpr int batch = 5;

/// Outputs, gradients and variables after a training pass, and outputs of an evaluation.
template <class Network>
std::vector<float> course(Network& net) {
  std::vector<float> x(std::size_t(batch) * Network::input.size()), all;
  edl::random_stream const random{5, 0};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = random.uniform(i) - 0.5f;
  auto const keep = [&](std::span<float const> some) { all.insert(all.end(), some.begin(), some.end()); };
  keep(net.forward(x, batch, edl::mode::training, 3));
  auto const dy = net.output_gradient();
  for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = random.uniform(i + x.size()) - 0.5f;
  net.backward(x, batch);
  keep(net.gradients());
  keep(net.variables());
  keep(net.forward(x, batch, edl::mode::evaluation));
  return all;
}

std::shared_ptr<edl::backend> processor() {
  return std::make_shared<edl::cpu>(edl::cpu_options{.kernels = edl::kernels::fixed});
}

}  // namespace

TEST_CASE("a network on any device that is the processor computes the bits that it does on the processor") {
  for (nn::storage const keep :
       {nn::storage::float32, nn::storage::bfloat16, nn::storage::recomputed, nn::storage::compact}) {
    network<edl::cpu> plain(
        {.max_batch = batch, .seed = 7, .device = {.kernels = edl::kernels::fixed}, .keep = keep});
    network<edl::any_device> any({.max_batch = batch, .seed = 7, .device = processor(), .keep = keep});
    CHECK(course(any) == course(plain));
  }
}

TEST_CASE("a backend that lacks padding or dropout of weights says so, and where they are computed") {
  edl::cpu on;  // what a backend inherits that has no such operation of its own
  CHECK_THROWS_WITH_AS(on.edl::backend::masked_attention_forward({}, 1, {}, {}, {}, {}),
                       "attention with padding or dropout is not computed by this device: use the processor "
                       "(--device=cpu)",
                       edl::error);
  CHECK_THROWS_WITH_AS(on.edl::backend::masked_attention_backward({}, 1, {}, {}, {}, {}, {}),
                       doctest::Contains("attention with padding or dropout"), edl::error);
  CHECK_THROWS_WITH_AS(on.edl::backend::masked_recurrent_forward({}, 1, {}, {}, {}, {}, {}, {}),
                       doctest::Contains("recurrence with padding is not computed"), edl::error);
  CHECK_THROWS_WITH_AS(on.edl::backend::masked_recurrent_backward({}, 1, {}, {}, {}, {}, {}, {}, {}),
                       doctest::Contains("recurrence with padding is not computed"), edl::error);
  CHECK_THROWS_WITH_AS(on.edl::backend::masked_average_pool_forward({}, 1, {}, {}),
                       doctest::Contains("pooling with padding is not computed"), edl::error);
  CHECK_THROWS_WITH_AS(on.edl::backend::masked_max_pool_backward({}, 1, {}, {}, {}, {}),
                       doctest::Contains("pooling with padding is not computed"), edl::error);
}

}  // namespace any_device_test

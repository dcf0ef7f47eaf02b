// SPDX-License-Identifier: Apache-2.0
// A loss and an optimiser of a user's, which join an accelerator by a function beside them.
#include <array>

#include "cuda/gpu.hpp"
#include "edl/compute/device/device_buffer.hpp"
#include "edl/compute/nn/loss/on_accelerator.hpp"
#include "edl/compute/optim/on_accelerator.hpp"

namespace own_test {

namespace mine {

/// A loss that has no code of its own in the library: the mean squared error of a temperature in Kelvin.
struct squared_kelvin {};

void compute_loss(edl::accelerator& d, squared_kelvin, edl::shape output, int batch, edl::view<float> outputs,
                  edl::view<float> labels, std::span<float> gradients, std::span<float> loss) {
  d.mean_squared_error(std::size_t(batch), output.size(), outputs, labels, gradients, loss);
}

/// weights −= rate · gradients
struct descent {};

void apply(edl::accelerator& d, descent, std::span<float> weights, edl::view<float> gradients,
           std::span<std::span<float> const>, float rate, std::uint64_t) {
  d.add_divided(gradients, -1 / rate, weights);
}

struct on_the_host_only {};

}  // namespace mine

static_assert(edl::nn::computes_on_accelerator<mine::squared_kelvin>);
static_assert(!edl::nn::computes_on_accelerator<mine::on_the_host_only>);
static_assert(edl::optimizes_on_accelerator<mine::descent>);
static_assert(!edl::optimizes_on_accelerator<mine::on_the_host_only>);

TEST_CASE("a loss and an optimiser of one's own run on an accelerator") {
  auto const gpu = gpu_or_skip();
  if (!gpu) return;
  edl::device_buffer<float> outputs(gpu, 4), labels(gpu, 4), gradients(gpu, 4), loss(gpu, 1);
  std::array<float, 4> const said{1, 2, 3, 4}, meant{0, 2, 5, 4};
  gpu->write(said, outputs.span());
  gpu->write(meant, labels.span());
  edl::nn::loss_on(*gpu, mine::squared_kelvin{}, {1, 1, 2}, 2, outputs.span(), labels.span(),
                   gradients.span(), loss.span());
  std::array<float, 1> mean{};
  gpu->read(loss.span(), mean);
  CHECK(mean[0] == doctest::Approx(5.0 / 4));
  edl::step_on(*gpu, mine::descent{}, outputs.span(), gradients.span(), {}, 0.5f, 0);
  std::array<float, 4> slope{}, now{};
  gpu->read(gradients.span(), slope);
  gpu->read(outputs.span(), now);
  for (std::size_t i = 0; i < said.size(); ++i) CHECK(now[i] == doctest::Approx(said[i] - 0.5f * slope[i]));
}

}  // namespace own_test

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <new>
#include <vector>

#include "compute/device/draw.hpp"
#include "compute/nn/networks.hpp"
#include "counted_allocations.hpp"
#include "edl/compute/nn/losses.hpp"

namespace {

#ifdef EDL_TEST_COUNTS_ALLOCATIONS
constexpr auto words = edl::nn::sequential(
    edl::nn::image{.width = 70, .channels = 8}, edl::nn::positions{},
    edl::nn::repeat<2>(edl::nn::residual(edl::nn::sequential(
        edl::nn::layer_norm{}, edl::nn::attention{.heads = 2, .causal = true, .rotary = true}))),
    edl::nn::bidirectional(edl::nn::lstm{.units = 20}), edl::nn::gru{.units = 5, .last = true});

/// Of ids, with padding between the places.
constexpr auto padded = edl::nn::sequential(
    edl::nn::ids{.count = 70},
    edl::nn::masked(edl::nn::embedding{.vocabulary = 5, .width = 8},
                    edl::nn::residual(edl::nn::attention{.heads = 2, .causal = true, .dropout = 0.1f}),
                    edl::nn::bidirectional(edl::nn::lstm{.units = 20}),
                    edl::nn::concat(edl::nn::gru{.units = 5, .last = true}, edl::nn::global_average_pool{})));

/// A function of its input, with a layer that is shared, one of which the gradient is derived, and a result
/// that is used again.
constexpr auto graph = edl::nn::graph(edl::nn::image{.height = 6, .width = 6, .channels = 4}, [](auto x) {
  auto const tower =
      edl::nn::shared<"tower">(edl::nn::conv2d{.filters = 4, .kernel = 3, .padding = edl::nn::padding::same},
                               edl::nn::layer_norm{}, edl::nn::mish{});
  auto const a = x | tower;
  return edl::nn::concat(a, (a | tower) + x) | edl::nn::dense{.units = 3};
});

/// Allocations of training steps after the first.
template <auto const& Net>
long of_training(int batch) {
  // A library's kernels allocate as they please; with two threads each has memory of its own.
  edl::model<Net, edl::cpu> m({.max_batch = batch, .device = {.threads = 2, .kernels = edl::kernels::own}});
  auto x = numbers<float>(std::size_t(batch) * m.input.size(), 1);
  for (std::size_t i = 0; Net.of_ids && i < x.size(); ++i) x[i] = float(i * i % 5);
  std::size_t heard = 1;
  std::function<void(std::size_t)> const ready = [&](std::size_t first) { heard = first; };
  long before = 0;
  for (std::uint64_t step = 0; step < 3; ++step) {
    if (step == 1) before = allocations;
    m.forward(x, batch, edl::mode::training, step);
    for (float& g : m.output_gradient()) g = 0.1f;
    m.backward(x, batch, ready);
    CHECK(heard == 0);
    m.forward(x, batch, edl::mode::evaluation, step);
  }
  return allocations - before;
}
#endif

}  // namespace

TEST_CASE("a training step allocates nothing") {
#ifdef EDL_TEST_COUNTS_ALLOCATIONS
  long before = allocations;
  void* volatile plain = std::malloc(10);
  std::free(plain);
  CHECK(allocations == before + 1);  // the count counts
  before = allocations;
  void* volatile aligned = ::operator new(100, std::align_val_t{64});
  ::operator delete(aligned, std::align_val_t{64});
  CHECK(allocations == before + 1);
  CHECK(of_training<mnist>(16) == 0);
  CHECK(of_training<zoo>(5) == 0);
  CHECK(of_training<fast>(5) == 0);
  CHECK(of_training<words>(5) == 0);
  CHECK(of_training<padded>(5) == 0);
  CHECK(of_training<graph>(5) == 0);

  auto const outputs = numbers<float>(35, 1), labels = numbers<float>(35, 2);
  std::vector<float> gradient(35);
  for (int step = 0; step < 3; ++step) {
    if (step == 1) before = allocations;
    (void)edl::nn::as_loss(edl::nn::huber{})({.channels = 7}, 5, edl::view<float>(outputs),
                                             edl::view<float>(labels), gradient);
  }
  CHECK(allocations == before);
#else
  MESSAGE("skipped: a sanitizer owns the heap");
#endif
}

// SPDX-License-Identifier: Apache-2.0
// Covers edl/compute/device/muon_step.hpp.
#include <array>

#include "compute/device/draw.hpp"
#include "cuda/gpu.hpp"
#include "edl/compute/device/device_buffer.hpp"
#include "edl/compute/optim/on_accelerator.hpp"

namespace muon_test {

using edl::precision;

static_assert(edl::optimizes_whole_on_accelerator<edl::muon>);
static_assert(!edl::optimizes_on_accelerator<edl::muon>);

TEST_CASE("steps of Muon on a GPU are those of the processor, of matrices and of what is none") {
  edl::variable const variables[] = {{"dense/kernel", {12, 5}, 0},    // higher than wide
                                     {"dense_1/kernel", {5, 12}, 0},  // wider than high
                                     {"conv2d/kernel", {3, 3, 4, 8}, 0},
                                     {"dense/bias", {12}, 0}};
  for (auto const p : {precision::float32, precision::bfloat16}) {
    auto const gpu = gpu_or_skip({.precision = p});
    if (!gpu) return;
    for (bool const nesterov : {true, false})
      for (edl::variable const& v : variables) {
        CAPTURE(v.name);
        CAPTURE(int(p));
        CAPTURE(nesterov);
        edl::muon const rule{.nesterov = nesterov, .newton_schulz_steps = 3, .weight_decay = 0.1f};
        std::size_t const n = v.dims.size();
        std::vector<float> w = numbers<float>(n, 1), m(n), second(n);
        edl::device_buffer<float> there(gpu, n), gradients(gpu, n), slots(gpu, 2 * n);
        gpu->write(w, there.span());
        gpu->bind(there.span());
        std::span<float> const own[] = {m, second},
                               on_gpu[] = {slots.span().first(n), slots.span().subspan(n)};
        std::vector<float> const before = w;
        for (std::uint64_t step = 0; step < 3; ++step) {
          auto const g = numbers<float>(n, 10 + step);
          gpu->write(g, gradients.span());
          rule.apply_whole<float>(v, w, g, own, 0.05f, step);
          edl::apply_whole(*gpu, rule, v, there.span(), gradients.span(), on_gpu, 0.05f, step);
        }
        std::vector<float> now(n), moved(n), wanted(n), momentum(n);
        gpu->read(there.span(), now);
        gpu->read(slots.span().first(n), momentum);
        for (std::size_t i = 0; i < n; ++i) moved[i] = now[i] - before[i], wanted[i] = w[i] - before[i];
        CHECK(distance(moved, wanted) < (p == precision::float32 ? 1e-4 : 0.05));
        CHECK(distance(momentum, m) < 1e-6);
      }
  }
}

}  // namespace muon_test

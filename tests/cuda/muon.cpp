// SPDX-License-Identifier: Apache-2.0
// Covers edl/compute/device/muon_step.hpp.
#include <array>

#include "compute/device/draw.hpp"
#include "cuda/gpu.hpp"
#include "edl/compute/device/device_buffer.hpp"
#include "edl/compute/optim/on_accelerator.hpp"

namespace muon_test {

using edl::muon, edl::precision;
using variables = std::vector<edl::variable>;

static_assert(edl::optimizes_whole_on_accelerator<muon>);
static_assert(!edl::optimizes_on_accelerator<muon>);

namespace {

struct course {
  std::vector<float> moved, slots;  ///< how far weights have come, and what is remembered
};

/// Three steps on variables that lie one after the other: those of the GPU, and of the processor. Of the GPU
/// all at once, or with `apart` one after the other.
std::array<course, 2> stepped(edl::accelerator& gpu, muon const& rule, variables all, bool apart = false) {
  std::size_t n = 0;
  for (edl::variable& v : all) v.offset = n, n += v.dims.size();
  std::size_t const slots = rule.slots().size();
  std::vector<float> w = numbers<float>(n, 1), own(slots * n);
  std::vector<float> const before = w;
  std::shared_ptr<edl::accelerator> const on(std::shared_ptr<void>(), &gpu);
  edl::device_buffer<float> there(on, n), gradients(on, n), own_there(on, slots * n);
  gpu.write(w, there.span());
  gpu.bind(there.span());
  auto const of = [&](std::span<float> from, edl::variable const& v) {
    std::vector<std::span<float>> parts;
    for (std::size_t s = 0; s < slots; ++s) parts.push_back(from.subspan(s * n + v.offset, v.dims.size()));
    return parts;
  };
  for (std::uint64_t step = 0; step < 3; ++step) {
    auto const g = numbers<float>(n, 10 + step);
    gpu.write(g, gradients.span());
    std::vector<edl::variable_step> steps;
    for (edl::variable const& v : all) {
      std::size_t const size = v.dims.size();
      auto const parts = of(own, v);
      rule.apply_whole<float>(v, std::span(w).subspan(v.offset, size), std::span(g).subspan(v.offset, size),
                              parts, 0.05f, step);
      steps.push_back({v, there.span().subspan(v.offset, size),
                       std::as_const(gradients).span().subspan(v.offset, size), of(own_there.span(), v),
                       0.05f});
    }
    std::span<edl::variable_step const> const some(steps);
    for (std::size_t i = 0; apart && i < some.size(); ++i) apply_whole(gpu, rule, some.subspan(i, 1), step);
    if (!apart) apply_whole(gpu, rule, some, step);
  }
  std::array<course, 2> result;
  std::vector<float> now(n);
  gpu.read(there.span(), now);
  for (std::size_t i = 0; i < n; ++i) {
    result[0].moved.push_back(now[i] - before[i]);
    result[1].moved.push_back(w[i] - before[i]);
  }
  result[0].slots.resize(slots * n);
  gpu.read(own_there.span(), result[0].slots);
  result[1].slots = own;
  return result;
}

variables const some{{"dense/kernel", {12, 5}, 0},    // higher than wide
                     {"dense_1/kernel", {5, 12}, 0},  // wider than high
                     {"conv2d/kernel", {3, 3, 4, 8}, 0}, {"dense/bias", {12}, 0},
                     {"dense_2/kernel", {5, 12}, 0},     {"dense_3/kernel", {16, 16}, 0}};

}  // namespace

TEST_CASE("steps of Muon on a GPU are those of the processor, of matrices and of what is none") {
  for (auto const p : {precision::float32, precision::tf32, precision::bfloat16}) {
    auto const gpu = gpu_or_skip({.precision = p});
    if (!gpu) return;
    for (muon const& rule :
         {muon{.newton_schulz_steps = 3, .weight_decay = 0.1f},
          muon{.nesterov = false, .newton_schulz_steps = 3, .reset_norms = {.every = 2}},
          muon{.newton_schulz_steps = 3, .match_adamw = false, .sgd_for_rest = true, .weight_decay = 0.1f}})
      for (bool const apart : {false, true}) {
        CAPTURE(int(p));
        CAPTURE(rule.nesterov);
        CAPTURE(apart);
        auto const [on_gpu, wanted] = stepped(*gpu, rule, some, apart);
        CHECK(distance(on_gpu.moved, wanted.moved) < (p == precision::float32 ? 1e-4
                                                      : p == precision::tf32  ? 5e-3
                                                                              : 0.05));
        CHECK(distance(on_gpu.slots, wanted.slots) < 1e-6);
      }
  }
}

TEST_CASE("as many matrices as there are make steps of Muon on a GPU, in several products") {
  auto const gpu = gpu_or_skip();
  if (!gpu) return;
  variables many;
  for (int i = 0; i < 70; ++i)
    many.push_back({"dense_" + std::to_string(i) + "/kernel", {2 + i % 7, 2 + i % 3}, 0});
  auto const [on_gpu, wanted] = stepped(*gpu, {.newton_schulz_steps = 2}, many);
  CHECK(distance(on_gpu.moved, wanted.moved) < 1e-4);
}

TEST_CASE("where no algorithm for many products is right, edl's own kernels make the steps of Muon") {
  setenv("EDL_CUDA_DOUBLE_WHIMS", "no_algorithms", 1);
  for (auto const p : {precision::float32, precision::bfloat16}) {
    auto const gpu = gpu_or_skip({.precision = p});
    if (!gpu) break;
    auto const [on_gpu, wanted] = stepped(*gpu, {.newton_schulz_steps = 3}, some);
    CHECK(distance(on_gpu.moved, wanted.moved) < (p == precision::float32 ? 1e-4 : 0.05));
  }
  unsetenv("EDL_CUDA_DOUBLE_WHIMS");
}

}  // namespace muon_test

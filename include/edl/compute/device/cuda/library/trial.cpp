// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "edl/compute/device/cuda/library/check.hpp"
#include "edl/compute/device/cuda/library/choose.hpp"

namespace edl::cuda_library {
namespace {

using cuda_kernels::sum_of;

constexpr std::size_t most_samples = 256, most_parts = 64;

// Of the results' size. Factors have few enough bits that products are exact but in float32. A border that is
// left out errs by a tenth and more.
double tolerance(precision p) { return p == precision::bfloat16 ? 0.02 : p == precision::tf32 ? 1e-3 : 1e-4; }

/// Null where there is no memory. In the stream's order: nobody waits for other streams, whose sums may wait
/// for other workers.
std::byte* allocate(cuda_kernels::queue const& q, std::size_t bytes) {
  void* memory = nullptr;
  cudaError_t const code = cudaMallocAsync(&memory, bytes, q.stream);
  if (code == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return nullptr;
  }
  check(code, "allocating memory for a trial");
  return static_cast<std::byte*>(memory);
}

}  // namespace

trial::trial(cuda_kernels::queue const& q, precision p, conv_geometry const& g, int batch, activation f,
             tensors const& real)
    : q_(q), precision_(p), g_(g), batch_(batch), relu_(f == activation::relu), of_(real) {
  found_ = allocate(q, most_samples * (most_parts * sizeof(double) + sizeof(float)));
  if (!found_) throw error("GPU: no memory for a few KiB more; a smaller --minibatch_size needs less");
  std::size_t const element = q.half ? 2 : sizeof(float), in = std::size_t(batch) * g.in.size(),
                    out = std::size_t(batch) * g.out.size(), filters = std::size_t(g.out.channels),
                    weights = g.patch() * filters;
  room r;
  // As far from aligned addresses as the layer's own numbers are.
  auto const as_far = [&](void const* from, std::size_t bytes) {
    std::size_t const beyond = reinterpret_cast<std::uintptr_t>(from) % 256;
    return from ? r.add(beyond + bytes) + beyond : 0;
  };
  std::array const at{as_far(real.x, in * element),
                      as_far(real.kernel, weights * sizeof(float)),
                      as_far(real.bias, filters * sizeof(float)),
                      as_far(real.dy, out * element),
                      as_far(real.y, out * element),
                      as_far(real.dx, in * element),
                      as_far(real.dkernel, weights * sizeof(float)),
                      as_far(real.dbias, filters * sizeof(float)),
                      as_far(real.rounded, weights * sizeof(std::uint16_t)),
                      as_far(real.more, in * element)};
  memory_ = allocate(q, r.floats() * sizeof(float));
  if (!memory_) return;
  bool const fine = p == precision::float32;
  float const least = relu_ ? -0.5f : -1.0f;  // so that a relu leaves enough of few results
  auto const draw = [&]<class T>(T const*& to, std::size_t part, std::size_t n, bool half) {
    if (!to) return;
    cuda_kernels::draw(q, n, part, least, fine, half, memory_ + at[part]);
    to = reinterpret_cast<T const*>(memory_ + at[part]);
  };
  draw(of_.x, 0, in, q.half);
  draw(of_.kernel, 1, weights, false);
  draw(of_.bias, 2, filters, false);
  draw(of_.dy, 3, out, q.half);
  draw(of_.more, 9, in, q.half);
  auto const place = [&]<class T>(T*& to, std::size_t part) {
    if (to) to = reinterpret_cast<T*>(memory_ + at[part]);
  };
  place(of_.y, 4), place(of_.dx, 5), place(of_.dkernel, 6), place(of_.dbias, 7);
  if (!of_.rounded) return;
  auto* const rounded = reinterpret_cast<std::uint16_t*>(memory_ + at[8]);
  cuda_kernels::round(q, of_.kernel, rounded, weights);
  of_.rounded = rounded;
}

trial::~trial() {
  for (std::byte* each : {memory_, found_})
    if (each) (void)cudaFreeAsync(each, q_.stream);
}

bool trial::agrees(sum_of what, std::string& why) const {
  std::size_t const terms = terms_of(what, g_, batch_),
                    samples = std::min(most_samples, results_of(what, g_, batch_)),
                    parts = std::clamp<std::size_t>(terms / 64, 1, most_parts);
  std::vector<double> sums(samples * parts);
  std::vector<float> values(samples);
  auto* const on_gpu = reinterpret_cast<double*>(found_);
  auto* const values_on_gpu = reinterpret_cast<float*>(on_gpu + sums.size());
  cuda_kernels::sums_by_definition(q_, what, g_, batch_, of_, samples, parts, on_gpu, values_on_gpu);
  auto const bring = [&]<class T>(std::vector<T>& to, T const* from) {
    check(cudaMemcpyAsync(to.data(), from, to.size() * sizeof(T), cudaMemcpyDeviceToHost, q_.stream),
          "comparing a trial");
  };
  bring(sums, on_gpu), bring(values, values_on_gpu);
  check(cudaStreamSynchronize(q_.stream), "comparing a trial");
  double errors = 0, all = 0;
  for (std::size_t s = 0; s < samples; ++s) {
    double expected = 0;
    for (std::size_t part = 0; part < parts; ++part) expected += sums[s * parts + part];
    if (relu_ && what == sum_of::response && expected < 0) expected = 0;
    errors += (double(values[s]) - expected) * (double(values[s]) - expected);
    all += expected * expected;
  }
  if (!memory_ && all == 0) {  // of the layer's own numbers
    why = "all its results are zeros now, which shows nothing";
    return false;
  }
  if (errors <= tolerance(precision_) * tolerance(precision_) * all) return true;
  why = std::isfinite(errors)
            ? fmt::format("its error is {:.2g} of the results' size", std::sqrt(errors / all))
            : "some of its results are no numbers";
  return false;
}

bool trial::accepts(std::function<void(tensors const&)> const& run, std::string& why) const try {
  auto const poison = [&](void* to, std::size_t bytes) {
    if (to) check(cudaMemsetAsync(to, 0xff, bytes, q_.stream), "preparing a trial");
  };
  std::size_t const element = q_.half ? 2 : sizeof(float);
  poison(of_.y, std::size_t(batch_) * g_.out.size() * element);
  poison(of_.dx, std::size_t(batch_) * g_.in.size() * element);
  poison(of_.dkernel, g_.patch() * std::size_t(g_.out.channels) * sizeof(float));
  poison(of_.dbias, std::size_t(g_.out.channels) * sizeof(float));
  run(of_);
  return (!of_.y || agrees(sum_of::response, why)) && (!of_.dx || agrees(sum_of::image_gradient, why)) &&
         (!of_.dkernel || agrees(sum_of::kernel_gradient, why)) &&
         (!of_.dbias || agrees(sum_of::bias_gradient, why));
} catch (error const& e) {
  why = e.what();
  return false;
}

}  // namespace edl::cuda_library

// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/kernels/geometry.cuh"

namespace edl::cuda_kernels {
namespace {

__device__ std::size_t first() { return std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ std::size_t step() { return std::size_t(gridDim.x) * blockDim.x; }

template <class T>
__global__ void draw_kernel(std::size_t n, random_stream random, float least, bool fine, T* to) {
  for (std::size_t i = first(); i < n; i += step()) {
    float const v = least + (1 - least) * random.uniform(i);
    store_one(&to[i], fine ? v : from_bfloat16(to_bfloat16(v)));
  }
}

/// The `t`-th product of the sum that the `i`-th result is; 0 where it is of the border.
template <class T>
__device__ double term(sum_of what, conv_geometry const& g, std::size_t i, std::size_t t, T const* x,
                       float const* kernel, T const* dy) {
  int const own = g.in.channels / g.groups, filters = g.out.channels / g.groups;
  auto const cut = [](std::size_t& from, int extent) {
    int const part = int(from % std::size_t(extent));
    from /= std::size_t(extent);
    return part;
  };
  auto const inside = [](shape s, int row, int column) {
    return row >= 0 && row < s.height && column >= 0 && column < s.width;
  };
  switch (what) {
    case sum_of::response: {
      int const out = cut(i, g.out.channels), q = cut(i, g.out.width), p = cut(i, g.out.height);
      int const c = cut(t, own), b = cut(t, g.kernel.width), a = int(t);
      int const row = p * g.stride.height - g.before.height + a,
                column = q * g.stride.width - g.before.width + b;
      if (!inside(g.in, row, column)) return 0;
      return double(load_one(&x[at(g.in, i, row, column, out / filters * own + c)])) *
             double(factor<T>(kernel[at(g, a, b, c, out)]));
    }
    case sum_of::image_gradient: {
      int const in = cut(i, g.in.channels), column = cut(i, g.in.width), row = cut(i, g.in.height);
      int const out = in / own * filters + cut(t, filters), b = cut(t, g.kernel.width), a = int(t);
      int const top = row + g.before.height - a, left = column + g.before.width - b;
      int const p = top / g.stride.height, q = left / g.stride.width;
      if (top < 0 || left < 0 || top % g.stride.height || left % g.stride.width || !inside(g.out, p, q))
        return 0;
      return double(load_one(&dy[at(g.out, i, p, q, out)])) *
             double(factor<T>(kernel[at(g, a, b, in % own, out)]));
    }
    case sum_of::kernel_gradient: {
      int const out = cut(i, g.out.channels), c = cut(i, own), b = cut(i, g.kernel.width), a = int(i);
      int const q = cut(t, g.out.width), p = cut(t, g.out.height);
      int const row = p * g.stride.height - g.before.height + a,
                column = q * g.stride.width - g.before.width + b;
      if (!inside(g.in, row, column)) return 0;
      return double(load_one(&x[at(g.in, t, row, column, out / filters * own + c)])) *
             double(load_one(&dy[at(g.out, t, p, q, out)]));
    }
    case sum_of::bias_gradient:
      return double(load_one(&dy[t * std::size_t(g.out.channels) + i]));
  }
  return 0;
}

/// Which of all results a sample is: any, or one of the first or last rows, columns or pictures, where
/// kernels err.
__device__ std::size_t pick(sum_of what, conv_geometry const& g, std::size_t results, std::size_t sample) {
  std::size_t const any = mix(3, sample) % results;
  if (sample == 0) return results - 1;
  if (what == sum_of::kernel_gradient || what == sum_of::bias_gradient || sample % 4 == 0) return any;
  shape const s = what == sum_of::response ? g.out : g.in;
  auto const channels = std::size_t(s.channels), height = std::size_t(s.height), width = std::size_t(s.width);
  std::size_t column = any / channels % width, row = any / channels / width % height,
              picture = any / channels / width / height;
  if (sample % 4 == 1) row = sample / 4 % 2 ? 0 : height - 1;
  if (sample % 4 == 2) column = sample / 4 % 2 ? 0 : width - 1;
  if (sample % 4 == 3) picture = results / (channels * width * height) - 1;
  return at(s, picture, int(row), int(column), int(any % channels));
}

/// A thread adds a part of the products of one result. It also looks for what is no number among some of
/// all results.
template <class T, class Result>
__global__ void sums_kernel(sum_of what, conv_geometry g, std::size_t results, std::size_t terms,
                            std::size_t samples, std::size_t parts, T const* x, float const* kernel,
                            float const* bias, T const* dy, T const* more, Result const* found, double* sums,
                            float* values) {
  std::size_t const thread = first();
  if (thread >= samples * parts) return;
  std::size_t const sample = thread / parts, part = thread % parts,
                    i = results <= samples ? sample : pick(what, g, results, sample);
  double sum = bias && part == 0 ? double(factor<T>(bias[i % std::size_t(g.out.channels)])) : 0;
  if (more && part == 0) sum += double(load_one(&more[i]));
  for (std::size_t t = part; t < terms; t += parts) sum += term(what, g, i, t, x, kernel, dy);
  if (more && x && !(load_one(&x[i]) > 0)) sum = 0;
  for (std::size_t r = thread; r < results; r += samples * parts) {
    float const v = load_one(&found[r]);
    sum += double(v - v);  // 0, or no number
  }
  sums[thread] = sum;
  if (part == 0) values[sample] = load_one(&found[i]);
}

}  // namespace

void draw(queue const& q, std::size_t n, std::uint64_t key, float least, bool fine, bool half, void* to) {
  dim3 const grid(
      unsigned(std::clamp<std::size_t>(ceil_of(n, element_threads), 1, std::size_t(q.processors) * 8)));
  by_type(half, [&](auto t) {
    launch(q, "a trial's numbers", draw_kernel<decltype(t)>, grid, element_threads, n, random_stream{key, 0},
           least, fine, static_cast<decltype(t)*>(to));
  });
}

void sums_by_definition(queue const& q, sum_of what, conv_geometry const& g, int batch,
                        conv_tensors const& of, std::size_t samples, std::size_t parts, double* sums,
                        float* values) {
  std::size_t const results = results_of(what, g, batch), terms = terms_of(what, g, batch);
  dim3 const grid(unsigned(ceil_of(samples * parts, element_threads)));
  float const* const bias = what == sum_of::response ? of.bias : nullptr;
  void const* const more = what == sum_of::image_gradient ? of.more : nullptr;
  by_type(q.half, [&](auto t) {
    using T = decltype(t);
    auto const with = [&]<class Result>(Result const* found) {
      launch(q, "a trial", sums_kernel<T, Result>, grid, element_threads, what, g, results, terms, samples,
             parts, static_cast<T const*>(of.x), of.kernel, bias, static_cast<T const*>(of.dy),
             static_cast<T const*>(more), found, sums, values);
    };
    if (what == sum_of::response) with(static_cast<T const*>(of.y));
    if (what == sum_of::image_gradient) with(static_cast<T const*>(of.dx));
    if (what == sum_of::kernel_gradient) with(static_cast<float const*>(of.dkernel));
    if (what == sum_of::bias_gradient) with(static_cast<float const*>(of.dbias));
  });
}

}  // namespace edl::cuda_kernels

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "edl/compute/device/cpu/onednn/onednn.hpp"
#include "edl/core/inline.hpp"

#ifdef EDL_ONEDNN
#include <dnnl.hpp>

#include "edl/compute/device/cpu/bfloat16.hpp"
#include "edl/compute/device/cpu/onednn/onednn_store.hpp"
#if DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int);
}
#endif
#endif

namespace edl::detail {

#if defined(EDL_ONEDNN) && DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP
EDL_INLINE onednn_alone::onednn_alone() : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}
EDL_INLINE onednn_alone::~onednn_alone() {
  if (before_ != 1) omp_set_num_threads(before_);
}
#else
EDL_INLINE onednn_alone::onednn_alone() = default;
EDL_INLINE onednn_alone::~onednn_alone() = default;
#endif

#ifdef EDL_ONEDNN
EDL_INLINE bool has_onednn() { return true; }

EDL_INLINE bool onednn_multiply(std::size_t m, std::size_t n, std::size_t k, matrix<float> a, matrix<float> b,
                                float* c, std::size_t c_stride, bool add) {
  onednn_alone const here;
  return dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', dnnl_dim_t(m), dnnl_dim_t(n),
                    dnnl_dim_t(k), 1, a.data, dnnl_dim_t(a.stride), b.data, dnnl_dim_t(b.stride), add, c,
                    dnnl_dim_t(c_stride)) == dnnl_success;
}

/// The product `all`, whose rows or columns the threads share. False: oneDNN has no kernel for a part.
template <class Factor, class Result>
bool onednn_share_product(basic_cpu<float>& cpu, bool by_columns, matmul_key const& all, Factor const* a,
                          Factor const* b, Result* c) {
  constexpr std::size_t scratch_room = 0;
  onednn_store& store = store_of(cpu);
  product_split const split = split_product(cpu, by_columns, all.m, all.n, all.k);
  store.of_parts.resize(std::size_t(cpu.threads()));
  for (int t = 0; t < split.parts; ++t) {
    matmul_key part = all;
    (by_columns ? part.n : part.m) = split.begin(t + 1) - split.begin(t);
    matmul_kernel* const kernel = store.of_parts[std::size_t(t)] = store.find(part, cpu.threads());
    if (!kernel) return false;
  }
  share_product(cpu, split, [&](std::size_t begin, std::size_t, int t) {
    matmul_kernel& kernel = *store.of_parts[std::size_t(t)];
    std::size_t const down = by_columns ? 0 : begin, across = by_columns ? begin : 0;
    kernel.run(t, a + down * (all.a_transposed ? 1 : all.a_stride),
               b + across * (all.b_transposed ? all.b_stride : 1), c + down * all.c_stride + across,
               cpu.room(t, scratch_room, kernel.scratch_size).data());
  });
  return true;
}

EDL_INLINE bool onednn_multiply_float32(basic_cpu<float>& cpu, bool by_columns, std::size_t m, std::size_t n,
                                        std::size_t k, matrix<float> a, matrix<float> b, float* c,
                                        std::size_t c_stride) {
  matmul_key const all{m,    n, k, a.stride, b.stride, c_stride, a.transposed, b.transposed, factors::float32,
                       false};
  return onednn_share_product(cpu, by_columns, all, a.data, b.data, c);
}

EDL_INLINE bool onednn_multiply_bfloat16(basic_cpu<float>& cpu, bool by_columns, std::size_t m, std::size_t n,
                                         std::size_t k, matrix<float> a, matrix<float> b, float* c,
                                         std::size_t c_stride, bool narrow) {
  auto const rounded = [&](std::size_t room, matrix<float>& x, std::size_t rows,
                           std::size_t columns) -> std::uint16_t const* {
    if (x.narrow) return reinterpret_cast<std::uint16_t const*>(x.data);
    if (x.transposed) std::swap(rows, columns);
    auto* const to = reinterpret_cast<std::uint16_t*>(cpu.room(0, room, (rows * columns + 1) / 2).data());
    round_matrix(cpu, rows, columns, x.data, x.stride, to);
    x.stride = columns;
    return to;
  };
  constexpr std::size_t a_room = 1, b_room = 2;
  auto const *const left = rounded(a_room, a, m, k), *const right = rounded(b_room, b, k, n);
  matmul_key const all{
      m, n, k, a.stride, b.stride, c_stride, a.transposed, b.transposed, factors::bfloat16, false, narrow};
  if (narrow)
    return onednn_share_product(cpu, by_columns, all, left, right, reinterpret_cast<std::uint16_t*>(c));
  return onednn_share_product(cpu, by_columns, all, left, right, c);
}

EDL_INLINE std::size_t packed_products::rows_at(std::size_t level) const {
  // Few kernels: what they compute beside the rows asked for is a quarter of all, and 7, at most.
  constexpr std::size_t unit = 8;
  std::size_t const step = (shape_.rows + levels_ * unit - 1) / (levels_ * unit) * unit;
  return std::min(shape_.rows, step * (level + 1));
}

EDL_INLINE matmul_kernel& packed_products::kernel(std::size_t level, int thread) const {
  return *kernels_[level * std::size_t(shape_.units.parts) + std::size_t(thread)];
}

EDL_INLINE packed_products::packed_products(basic_cpu<float>& cpu, packed_shape const& of)
    : shape_(of), levels_(of.whole ? 1 : 4) {
  onednn_store& store = store_of(cpu);
  auto const parts = std::size_t(of.units.parts);
  store.of_parts.resize(std::max(levels_ * parts, store.of_parts.size()));
  kernels_ = store.of_parts.data();
  for (std::size_t level = levels_; level-- > 0;)
    for (std::size_t t = 0; t < parts; ++t) {
      std::size_t const n = of.gates * (of.units.begin(int(t) + 1) - of.units.begin(int(t)));
      matmul_kernel*& one = store.of_parts[level * parts + t];
      one = store.find({rows_at(level), n, of.k, of.k, of.stride > 0 ? of.stride : n, n, false, of.transposed,
                        of.bfloat16 ? factors::bfloat16 : factors::float32, true},
                       cpu.threads());
      // One layout of a part serves the kernels of all levels.
      matmul_kernel* const all = store.of_parts[(levels_ - 1) * parts + t];
      if (!all) {
        levels_ = 0;
        return;
      }
      if (!one || one->packed != all->packed) one = all;
    }
}

EDL_INLINE std::size_t packed_products::room(int thread) const { return kernel(0, thread).packed_size; }

EDL_INLINE std::size_t packed_products::scratch(int thread) const {
  std::size_t most = 0;
  for (std::size_t level = 0; level < levels_; ++level)
    most = std::max(most, kernel(level, thread).scratch_size);
  return most;
}

EDL_INLINE void packed_products::lay_out(int thread, float const* part, float* room) const {
  kernel(0, thread).lay_out(thread, part, room);
}

EDL_INLINE void packed_products::multiply(int thread, std::size_t rows, void const* a, float const* part,
                                          float* c, float* scratch) const {
  std::size_t level = 0;
  while (rows_at(level) < rows) ++level;
  kernel(level, thread).run(thread, a, part, c, scratch);
}

#else
EDL_INLINE bool has_onednn() { return false; }
EDL_INLINE packed_products::packed_products(basic_cpu<float>&, packed_shape const&) {}
EDL_INLINE std::size_t packed_products::room(int) const { return 0; }
EDL_INLINE std::size_t packed_products::scratch(int) const { return 0; }
EDL_INLINE void packed_products::lay_out(int, float const*, float*) const {}
EDL_INLINE void packed_products::multiply(int, std::size_t, void const*, float const*, float*, float*) const {
}
EDL_INLINE bool onednn_multiply_float32(basic_cpu<float>&, bool, std::size_t, std::size_t, std::size_t,
                                        matrix<float>, matrix<float>, float*, std::size_t) {
  return false;
}
EDL_INLINE bool onednn_multiply_bfloat16(basic_cpu<float>&, bool, std::size_t, std::size_t, std::size_t,
                                         matrix<float>, matrix<float>, float*, std::size_t, bool) {
  return false;
}
EDL_INLINE bool onednn_multiply(std::size_t, std::size_t, std::size_t, matrix<float>, matrix<float>, float*,
                                std::size_t, bool) {
  return false;
}
#endif

}  // namespace edl::detail

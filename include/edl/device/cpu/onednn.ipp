// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "edl/core/inline.hpp"
#include "edl/device/cpu/onednn.hpp"

#ifdef EDL_ONEDNN
#include <dnnl.hpp>

#include "edl/device/cpu/bfloat16.hpp"
#include "edl/device/cpu/onednn_store.hpp"
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
template <class Factor>
bool onednn_share_product(basic_cpu<float>& cpu, bool by_columns, matmul_key const& all, Factor const* a,
                          Factor const* b, float* c) {
  constexpr std::size_t scratch_room = 0;
  onednn_store& store = store_of(cpu);
  product_cut const cut = cut_product(cpu, by_columns, all.m, all.n, all.k);
  store.of_parts.resize(std::size_t(cpu.threads()));
  for (int t = 0; t < cut.parts; ++t) {
    matmul_key part = all;
    (by_columns ? part.n : part.m) = cut.begin(t + 1) - cut.begin(t);
    matmul_kernel* const kernel = store.of_parts[std::size_t(t)] = store.find(part, cpu.threads());
    if (!kernel) return false;
  }
  share_product(cpu, cut, [&](std::size_t begin, std::size_t, int t) {
    matmul_kernel& kernel = *store.of_parts[std::size_t(t)];
    std::size_t const down = by_columns ? 0 : begin, across = by_columns ? begin : 0;
    kernel.run(t, a + down * (all.a_transposed ? 1 : all.a_stride),
               b + across * (all.b_transposed ? all.b_stride : 1), c + down * all.c_stride + across,
               cpu.room(t, scratch_room, kernel.scratch_size).data());
  });
  return true;
}

EDL_INLINE bool onednn_multiply_bfloat16(basic_cpu<float>& cpu, bool by_columns, std::size_t m, std::size_t n,
                                         std::size_t k, matrix<float> a, matrix<float> b, float* c,
                                         std::size_t c_stride) {
  auto const rounded = [&](std::size_t room, matrix<float>& x, std::size_t rows, std::size_t columns) {
    if (x.transposed) std::swap(rows, columns);
    auto* const to = reinterpret_cast<std::uint16_t*>(cpu.room(0, room, (rows * columns + 1) / 2).data());
    round_matrix(cpu, rows, columns, x.data, x.stride, to);
    x.stride = columns;
    return to;
  };
  constexpr std::size_t a_room = 1, b_room = 2;
  auto const *const left = rounded(a_room, a, m, k), *const right = rounded(b_room, b, k, n);
  matmul_key const all{m, n, k, a.stride, b.stride, c_stride, a.transposed, b.transposed, factors::bfloat16};
  return onednn_share_product(cpu, by_columns, all, left, right, c);
}

EDL_INLINE bool onednn_multiply_int8(basic_cpu<float>& cpu, std::size_t m, std::size_t n, std::size_t k,
                                     std::int8_t const* a, std::int8_t const* b, std::span<float> c) {
  return onednn_share_product(cpu, n > m, {m, n, k, k, n, n, false, false, factors::int8}, a, b, c.data());
}

#else
EDL_INLINE bool has_onednn() { return false; }
EDL_INLINE bool onednn_multiply_bfloat16(basic_cpu<float>&, bool, std::size_t, std::size_t, std::size_t,
                                         matrix<float>, matrix<float>, float*, std::size_t) {
  return false;
}
EDL_INLINE bool onednn_multiply_int8(basic_cpu<float>&, std::size_t, std::size_t, std::size_t,
                                     std::int8_t const*, std::int8_t const*, std::span<float>) {
  return false;
}
EDL_INLINE bool onednn_multiply(std::size_t, std::size_t, std::size_t, matrix<float>, matrix<float>, float*,
                                std::size_t, bool) {
  return false;
}
#endif

}  // namespace edl::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <algorithm>

#include "edl/device/cpu/gemm.hpp"

namespace edl {
namespace detail {

/// Sizes of the blocks that a product packs. Eigen's own would follow the caches of the machine at hand, and
/// with them the order of summation; these follow the extents alone, and the memory is the device's.
template <class T>
class packing : public Eigen::internal::level3_blocking<T, T> {
 public:
  packing(basic_cpu<T>& cpu, Eigen::Index m, Eigen::Index n, Eigen::Index k) {
    constexpr Eigen::Index deepest = 320, multiple = 8;
    Eigen::Index const parts = std::max<Eigen::Index>((k + deepest - 1) / deepest, 1);
    this->m_kc = std::min(k, ((k + parts - 1) / parts + multiple - 1) / multiple * multiple);
    this->m_mc = even(m, Eigen::Index(basic_cpu<T>::packed_left) / this->m_kc, 24);
    this->m_nc = even(n, Eigen::Index(basic_cpu<T>::packed_right) / this->m_kc, 4);
    this->m_blockA = cpu.left().data();
    this->m_blockB = cpu.right().data();
  }

 private:
  /// The extent in as few equal parts as fit, each a multiple of the kernel's.
  static Eigen::Index even(Eigen::Index extent, Eigen::Index most, Eigen::Index multiple) {
    if (extent <= most) return extent;
    Eigen::Index const parts = (extent + most - 1) / most, part = (extent + parts - 1) / parts;
    return std::min((part + multiple - 1) / multiple * multiple, most);
  }
};

/// Column-major result, as Eigen's kernel wants it.
template <int Left, int Right, class T>
void run_product(basic_cpu<T>& cpu, Eigen::Index m, Eigen::Index n, Eigen::Index k, matrix<T> a, matrix<T> b,
                 T* c, std::size_t c_stride) {
  packing<T> blocks(cpu, m, n, k);
  Eigen::internal::general_matrix_matrix_product<Eigen::Index, T, Left, false, T, Right, false,
                                                 Eigen::ColMajor, 1>::run(m, n, k, a.data,
                                                                          Eigen::Index(a.stride), b.data,
                                                                          Eigen::Index(b.stride), c, 1,
                                                                          Eigen::Index(c_stride), T(1),
                                                                          blocks, nullptr);
}

}  // namespace detail

template <class T>
void multiply_add(basic_cpu<T>& cpu, std::size_t m, std::size_t n, std::size_t k, matrix<T> a, matrix<T> b,
                  T* c, std::size_t c_stride) {
  if (m == 0 || n == 0 || k == 0) return;
  // By rows, c = a · b; by columns, the same memory is c' = b' · a'.
  constexpr int plain = Eigen::ColMajor, turned = Eigen::RowMajor;
  auto const call = [&](auto run) {
    run(cpu, Eigen::Index(n), Eigen::Index(m), Eigen::Index(k), b, a, c, c_stride);
  };
  if (b.transposed)
    a.transposed ? call(detail::run_product<turned, turned, T>) : call(detail::run_product<turned, plain, T>);
  else
    a.transposed ? call(detail::run_product<plain, turned, T>) : call(detail::run_product<plain, plain, T>);
}

#ifndef EDL_HEADER_ONLY
template void multiply_add(basic_cpu<float>&, std::size_t, std::size_t, std::size_t, matrix<float>,
                           matrix<float>, float*, std::size_t);
template void multiply_add(basic_cpu<double>&, std::size_t, std::size_t, std::size_t, matrix<double>,
                           matrix<double>, double*, std::size_t);
#endif

}  // namespace edl

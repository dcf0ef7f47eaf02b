// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/compute/device/cpu/bfloat16.hpp"
#include "edl/compute/device/cpu/gemm.hpp"
#include "edl/compute/device/cpu/kernel_trial.hpp"
#include "edl/compute/device/cpu/onednn/onednn.hpp"
#include "edl/compute/device/cpu/row_product.hpp"
#include "edl/compute/device/cpu/rows.hpp"
#include "edl/compute/device/cpu/tiled_gemm.hpp"

namespace edl {
namespace detail {

/// Sizes of the blocks that a product packs. Eigen's own would follow the caches of the machine at hand, and
/// with them the order of summation. These follow the extents alone, and the memory is the device's.
template <class T>
class packing : public Eigen::internal::level3_blocking<T, T> {
 public:
  packing(basic_cpu<T>& cpu, int thread, Eigen::Index m, Eigen::Index n, Eigen::Index k) {
    constexpr Eigen::Index deepest = 320, multiple = 8;
    Eigen::Index const parts = std::max<Eigen::Index>((k + deepest - 1) / deepest, 1);
    this->m_kc = std::min(k, ((k + parts - 1) / parts + multiple - 1) / multiple * multiple);
    this->m_mc = even(m, Eigen::Index(basic_cpu<T>::packed_left) / this->m_kc, 24);
    this->m_nc = even(n, Eigen::Index(basic_cpu<T>::packed_right) / this->m_kc, 4);
    this->m_blockA = cpu.left(thread).data();
    this->m_blockB = cpu.right(thread).data();
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
void run_product(basic_cpu<T>& cpu, int thread, Eigen::Index m, Eigen::Index n, Eigen::Index k, matrix<T> a,
                 matrix<T> b, T* c, std::size_t c_stride) {
  packing<T> blocks(cpu, thread, m, n, k);
  Eigen::internal::general_matrix_matrix_product<Eigen::Index, T, Left, false, T, Right, false,
                                                 Eigen::ColMajor, 1>::run(m, n, k, a.data,
                                                                          Eigen::Index(a.stride), b.data,
                                                                          Eigen::Index(b.stride), c, 1,
                                                                          Eigen::Index(c_stride), T(1),
                                                                          blocks, nullptr);
}

}  // namespace detail

template <class T>
void multiply_add(basic_cpu<T>& cpu, int thread, std::size_t m, std::size_t n, std::size_t k, matrix<T> a,
                  matrix<T> b, T* c, std::size_t c_stride) {
  if (m == 0 || n == 0 || k == 0) return;
  // By rows, c = a · b; by columns, the same memory is c' = b' · a'.
  constexpr int plain = Eigen::ColMajor, turned = Eigen::RowMajor;
  auto const call = [&](auto run) {
    run(cpu, thread, Eigen::Index(n), Eigen::Index(m), Eigen::Index(k), b, a, c, c_stride);
  };
  if (b.transposed)
    a.transposed ? call(detail::run_product<turned, turned, T>) : call(detail::run_product<turned, plain, T>);
  else
    a.transposed ? call(detail::run_product<plain, turned, T>) : call(detail::run_product<plain, plain, T>);
}

namespace detail {

/// Whose kernel computes a product, and which of its sides the threads share; or the matrix unit does.
constexpr int tiled_way = 4;
constexpr std::array<std::string_view, 5> product_ways{"own-rows", "own-columns", "library-rows",
                                                       "library-columns", "tiled"};

template <class T>
void multiply_alone(basic_cpu<T>& cpu, int thread, bool library, std::size_t m, std::size_t n, std::size_t k,
                    matrix<T> a, matrix<T> b, T* c, std::size_t c_stride, bool add = false) {
  if constexpr (std::same_as<T, float>)
    if (library && onednn_multiply(m, n, k, a, b, c, c_stride, add)) return;
  for (std::size_t i = 0; i < m && !add; ++i) std::fill_n(c + i * c_stride, n, T(0));
  multiply_add<T>(cpu, thread, m, n, k, a, b, c, c_stride);
}

/// Its factor rounded to bfloat16, in a room of the first thread.
inline matrix<float> rounded(basic_cpu<float>& cpu, std::size_t room, matrix<float> x, std::size_t rows,
                             std::size_t columns) {
  if (x.transposed) std::swap(rows, columns);
  float* const to = cpu.room(0, room, rows * columns).data();
  if (x.narrow)
    cpu.load_bfloat16({reinterpret_cast<std::byte const*>(x.data), 2 * rows * columns}, {to, rows * columns});
  else
    round_matrix(cpu, rows, columns, x.data, x.stride, to);
  return {to, columns, x.transposed};
}

template <class T>
void multiply_by(basic_cpu<T>& cpu, int way, std::size_t m, std::size_t n, std::size_t k, matrix<T> a,
                 matrix<T> b, T* c, std::size_t c_stride, bool narrow = false) {
  // dnnl_sgemm is slow where the second factor is turned, and dnnl::matmul where rows are few.
  constexpr std::size_t fewest_rows = 16;
  bool const library = way >= 2, by_columns = way % 2;
  if constexpr (std::same_as<T, float>) {
    if (cpu.rounds()) {
      if (way == tiled_way && tiled::multiply(cpu, m, n, k, a, b, c, c_stride, narrow)) return;
      if (library && onednn_multiply_bfloat16(cpu, by_columns, m, n, k, a, b, c, c_stride, narrow)) return;
      a = rounded(cpu, 1, a, m, k);
      b = rounded(cpu, 2, b, k, n);
    } else if (library && b.transposed && m >= fewest_rows) {
      if (onednn_multiply_float32(cpu, by_columns, m, n, k, a, b, c, c_stride)) return;
    }
  }
  constexpr std::size_t c_room = 3, places_room = 4;
  T* const result = narrow ? std::exchange(c, cpu.room(0, c_room, m * n).data()) : nullptr;
  share_product(cpu, split_product(cpu, by_columns, m, n, k), [&](std::size_t begin, std::size_t end, int t) {
    if constexpr (std::same_as<T, float>)
      if (library && by_columns && m == 1 && !a.transposed && !b.transposed) {
        auto* const places = reinterpret_cast<std::uint32_t*>(cpu.room(t, places_room, k).data());
        if (multiply_row_of_zeros(end - begin, k, a.data, {b.data + begin, b.stride}, c + begin, places))
          return;
      }
    if (by_columns)
      multiply_alone<T>(cpu, t, library, m, end - begin, k, a,
                        {b.data + begin * (b.transposed ? b.stride : 1), b.stride, b.transposed}, c + begin,
                        c_stride);
    else
      multiply_alone<T>(cpu, t, library, end - begin, n, k,
                        {a.data + begin * (a.transposed ? 1 : a.stride), a.stride, a.transposed}, b,
                        c + begin * c_stride, c_stride);
  });
  if (narrow) cpu.store_bfloat16({c, m * n}, {reinterpret_cast<std::byte*>(result), 2 * m * n});
}

/// Whether run(a, b, c, stride of c) multiplies random numbers rightly, which stand as those of a and b.
template <class T, class Run>
bool right_product(std::size_t m, std::size_t n, std::size_t k, matrix<T> a, matrix<T> b, bool narrow,
                   Run&& run) {
  if constexpr (std::same_as<T, float>) {
    trial_numbers const left((a.transposed ? k : m) * a.stride, 1, a.narrow),
        right((b.transposed ? n : k) * b.stride, 2, b.narrow);
    std::vector<float> c(scalars_of(m * n, narrow));
    poison(c);
    a.data = left.taken().data(), b.data = right.taken().data();
    run(a, b, c.data(), n);
    auto const at = [](matrix<T> const& x, std::size_t i, std::size_t j) {
      return x.transposed ? j * x.stride + i : i * x.stride + j;
    };
    return about_right(c.data(), narrow, m * n, k, [&](std::size_t i) {
      double sum = 0;
      for (std::size_t l = 0; l < k; ++l) sum += left[at(a, i / n, l)] * right[at(b, l, i % n)];
      return sum;
    });
  }
  return true;
}

template <class T>
int product_way(basic_cpu<T>& cpu, kernel_key const& key, std::size_t m, std::size_t n, std::size_t k,
                matrix<T> a, matrix<T> b, T* c, std::size_t c_stride, bool narrow = false) {
  // The call of a library alone costs more than a small product.
  bool const library = std::same_as<T, float> && has_onednn() && cpu.libraries() && m * n * k >= 32 * 1024;
  bool const tiles = library && cpu.rounds() && tiled::faster(m, n, k);
  // oneDNN's products use it, too. Ours gain where the first factor is turned, or the second one is long.
  bool const gains = a.transposed || (!b.transposed && k >= 512);
  int const rule = tiles && gains && cpu.kernels() != kernels::direct ? tiled_way : 2 * library + (n >= m);
  if (!library) return rule;
  auto const run = [&](int way, matrix<T> const& left, matrix<T> const& right, T* to, std::size_t stride) {
    if (way == tiled_way && !tiles) return false;
    multiply_by(cpu, way, m, n, k, left, right, to, stride, narrow);
    return true;
  };
  return cpu.pick(
      key, product_ways, rule, [&](int way) { return run(way, a, b, c, c_stride); },
      [&](int way) { return right_product(m, n, k, a, b, narrow, [&](auto... all) { run(way, all...); }); });
}

}  // namespace detail

template <class T>
void multiply_here(basic_cpu<T>& cpu, int thread, std::size_t m, std::size_t n, std::size_t k, matrix<T> a,
                   matrix<T> b, T* c, std::size_t c_stride, bool add) {
  detail::multiply_alone<T>(cpu, thread, cpu.libraries(), m, n, k, a, b, c, c_stride, add);
}

template <class T>
void multiply(basic_cpu<T>& cpu, detail::kernel_key const& key, std::size_t m, std::size_t n, std::size_t k,
              matrix<T> a, matrix<T> b, T* c, std::size_t c_stride, bool narrow) {
  int const way = detail::product_way(cpu, key, m, n, k, a, b, c, c_stride, narrow);
  detail::multiply_by(cpu, way, m, n, k, a, b, c, c_stride, narrow);
}

template <class T>
void multiply(basic_cpu<T>& cpu, detail::kernel_key const& key, std::size_t m, std::size_t n, std::size_t k,
              matrix<T> a, matrix<T> b, activation f, view<T> bias, T* c) {
  int const way = detail::product_way(cpu, key, m, n, k, a, b, c, n);
  if constexpr (std::same_as<T, float>)
    if (way == detail::tiled_way && detail::tiled::multiply(cpu, m, n, k, a, b, c, n, false, f, bias)) return;
  detail::multiply_by(cpu, way, m, n, k, a, b, c, n);
  if (!bias.empty() || f != activation::none) finish_rows(cpu, m, n, f, bias, std::span(c, m * n));
}

template <class T>
std::string describe_product(basic_cpu<T>& cpu, detail::kernel_key const& key, std::size_t m, std::size_t n,
                             std::size_t k, matrix<T> a, matrix<T> b, T* c, std::size_t c_stride) {
  int const way = detail::product_way(cpu, key, m, n, k, a, b, c, c_stride);
  if (way == detail::tiled_way) return "matrix unit, bfloat16";
  return std::string(way < 2 ? "Eigen" : "oneDNN") + ", product by " + (way % 2 ? "columns" : "rows") +
         (cpu.rounds() ? ", bfloat16" : "");
}

#ifndef EDL_HEADER_ONLY
template void multiply(basic_cpu<float>&, detail::kernel_key const&, std::size_t, std::size_t, std::size_t,
                       matrix<float>, matrix<float>, float*, std::size_t, bool);
template void multiply(basic_cpu<float>&, detail::kernel_key const&, std::size_t, std::size_t, std::size_t,
                       matrix<float>, matrix<float>, activation, view<float>, float*);
template std::string describe_product(basic_cpu<float>&, detail::kernel_key const&, std::size_t, std::size_t,
                                      std::size_t, matrix<float>, matrix<float>, float*, std::size_t);
template void multiply(basic_cpu<double>&, detail::kernel_key const&, std::size_t, std::size_t, std::size_t,
                       matrix<double>, matrix<double>, double*, std::size_t, bool);
template void multiply(basic_cpu<double>&, detail::kernel_key const&, std::size_t, std::size_t, std::size_t,
                       matrix<double>, matrix<double>, activation, view<double>, double*);
template std::string describe_product(basic_cpu<double>&, detail::kernel_key const&, std::size_t, std::size_t,
                                      std::size_t, matrix<double>, matrix<double>, double*, std::size_t);
template void multiply_here(basic_cpu<float>&, int, std::size_t, std::size_t, std::size_t, matrix<float>,
                            matrix<float>, float*, std::size_t, bool);
template void multiply_here(basic_cpu<double>&, int, std::size_t, std::size_t, std::size_t, matrix<double>,
                            matrix<double>, double*, std::size_t, bool);
template void multiply_add(basic_cpu<float>&, int, std::size_t, std::size_t, std::size_t, matrix<float>,
                           matrix<float>, float*, std::size_t);
template void multiply_add(basic_cpu<double>&, int, std::size_t, std::size_t, std::size_t, matrix<double>,
                           matrix<double>, double*, std::size_t);
#endif

}  // namespace edl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/bfloat16.hpp"
#include "edl/compute/device/cpu/gemm.hpp"
#include "edl/compute/device/cpu/onednn/onednn.hpp"

namespace edl::detail {

/// The products of a recurrent layer's turns. In each turn every thread multiplies the same few rows, of k
/// elements, by its own columns of one matrix. So the matrix is packed once for all turns. With bfloat16 both
/// factors are rounded, and sums are float32.
///
/// Construct it on the calling thread. Functions with a thread's number are called by that thread.
template <class T>
class recurrent_product {
 public:
  /// The first of a thread's rooms that the layer may use.
  static constexpr std::size_t free_room = 6;

  /// A thread has `gates` columns of the matrix for each of its units. `whole`: every turn has all rows.
  recurrent_product(basic_cpu<T>& cpu, std::size_t rows, std::size_t k, product_split const& units,
                    std::size_t gates, matrix<T> like, bool whole)
      : cpu_(cpu), rows_(rows), k_(k), units_(units), gates_(gates) {
    if constexpr (std::same_as<T, float>)
      if (cpu.libraries())
        packed_ = {cpu, {rows, k, units, gates, like.stride, like.transposed, cpu.rounds(), whole}};
    values_ = cpu.room(0, rows_room, 2 * rows * k).data();
    if (packed_ && cpu.rounds())
      rounded_ = reinterpret_cast<std::uint16_t*>(cpu.room(0, rounded_room, rows * k).data());
  }

  std::size_t columns(int thread) const { return gates_ * (units_.begin(thread + 1) - units_.begin(thread)); }

  /// Memory for a thread's part of the matrix, k × columns, if it is not contiguous anywhere else.
  T* part(int thread) { return cpu_.room(thread, part_room, k_ * columns(thread)).data(); }

  /// Sets the matrix by which the thread multiplies, until the next call.
  void take(int thread, matrix<T> b) {
    if constexpr (std::same_as<T, float>)
      if (packed_)
        return packed_.lay_out(thread, b.data, cpu_.room(thread, laid_out_room, packed_.room(thread)).data());
    T* const own = part(thread);
    std::size_t const n = columns(thread);
    if (b.transposed)
      for (std::size_t column = 0; column < n; ++column)
        for (std::size_t row = 0; row < k_; ++row) own[row * n + column] = b.data[column * b.stride + row];
    round(k_ * n, own);
  }

  /// Where the rows of a turn are written; valid until the turn after the next.
  T* rows_of(std::size_t turn) { return values_ + turn % 2 * rows_ * k_; }

  /// Announces that elements of a row of that turn are written. Threads announce disjoint elements.
  void written(std::size_t turn, std::size_t row, std::size_t first, std::size_t count) {
    std::size_t const at = row * k_ + first;
    if constexpr (std::same_as<T, float>)
      if (rounded_) return round_here(count, rows_of(turn) + at, rounded_ + turn % 2 * rows_ * k_ + at);
    round(count, rows_of(turn) + at);
  }

  /// Multiplies the first rows of a turn by the thread's part: contiguous rows of its columns.
  T* multiply(int thread, std::size_t turn, std::size_t rows) {
    std::size_t const n = columns(thread);
    T* const product = cpu_.room(thread, product_room, rows_ * n).data();
    if (rows == 0) return product;
    if constexpr (std::same_as<T, float>)
      if (packed_) {
        void const* const a =
            rounded_ ? static_cast<void const*>(rounded_ + turn % 2 * rows_ * k_) : rows_of(turn);
        packed_.multiply(thread, rows, a, cpu_.room(thread, laid_out_room, packed_.room(thread)).data(),
                         product, cpu_.room(thread, scratch_room, packed_.scratch(thread)).data());
        return product;
      }
    multiply_here<T>(cpu_, thread, rows, n, k_, {rows_of(turn), k_}, {part(thread), n}, product, n);
    return product;
  }

 private:
  void round(std::size_t n, T* values) {
    if constexpr (std::same_as<T, float>)
      if (cpu_.rounds()) round_here(n, values, values);
  }

  enum room : std::size_t {
    part_room,      // a thread's part of the matrix, as it is
    laid_out_room,  // and in the library's layout
    product_room,
    scratch_room,
    rows_room,     // of the first thread: the rows to multiply, which all threads read
    rounded_room,  // the same in bfloat16
  };
  static_assert(rounded_room + 1 == free_room);

  basic_cpu<T>& cpu_;
  std::size_t rows_, k_;
  product_split units_;
  std::size_t gates_;
  packed_products packed_;
  T* values_;
  std::uint16_t* rounded_ = nullptr;
};

}  // namespace edl::detail

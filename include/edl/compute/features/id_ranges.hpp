// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace edl::features {

/// A conversion that gives ids from 0 to `size()` − 1.
template <class C>
concept id_column = requires(C const& c) {
  { c.size() } -> std::convertible_to<std::int64_t>;
};

/// Ids of several columns in one embedding table: those of each column follow those of the columns before it.
/// `id_ranges{education, occupation}` knows their sizes, `ids(1, occupation(text))` is the id of the second
/// column's value, and `size()` is the vocabulary of the table.
template <std::size_t N>
class id_ranges {
 public:
  template <id_column... Column>
    requires(sizeof...(Column) == N)
  constexpr explicit id_ranges(Column const&... columns) {
    std::size_t i = 0;
    ((ends_[i] = (i == 0 ? 0 : ends_[i - 1]) + columns.size(), ++i), ...);
  }

  /// All columns are like this one.
  template <id_column Column>
    requires(N > 1)
  constexpr explicit id_ranges(Column const& each) {
    for (std::size_t i = 0; i < N; ++i) ends_[i] = std::int64_t(i + 1) * each.size();
  }

  /// −1, which means none, stays −1. Throws data_error for an id outside its column's range.
  constexpr std::int64_t operator()(std::size_t column, std::int64_t id) const {
    if (id == -1) return -1;
    std::int64_t const first = column == 0 ? 0 : ends_[column - 1];
    if (id < 0 || id >= ends_[column] - first) refuse(column, id);
    return first + id;
  }

  constexpr int size() const { return int(ends_[N - 1]); }

 private:
  [[noreturn]] void refuse(std::size_t column, std::int64_t id) const;

  std::array<std::int64_t, N> ends_{};
};

template <id_column... Column>
id_ranges(Column const&...) -> id_ranges<sizeof...(Column)>;

namespace detail {

[[noreturn]] void refuse_id(std::size_t column, std::int64_t id, std::int64_t size);

}  // namespace detail

template <std::size_t N>
void id_ranges<N>::refuse(std::size_t column, std::int64_t id) const {
  detail::refuse_id(column, id, ends_[column] - (column == 0 ? 0 : ends_[column - 1]));
}

}  // namespace edl::features

#ifdef EDL_HEADER_ONLY
#include "edl/compute/features/id_ranges.ipp"
#endif

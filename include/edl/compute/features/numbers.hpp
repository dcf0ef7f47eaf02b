// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "edl/core/span.hpp"

/// Convert columns of a table to numbers and ids of a network, for a model's `feed`. Each is a value that is
/// called with the record's value. Ids are from 0 to `size()` − 1, which gives the vocabulary of an embedding
/// table (`id_ranges`). The results are the same as those of ElasticDL's preprocessing layers. Thread safety:
/// const, safe.
namespace edl::features {

/// (x − subtract) / divide: by the least value and the extent, or by the mean and the standard deviation. A
/// column that never changes has an extent of 0, which counts as 1.
struct normalization {
  float subtract = 0, divide = 1;

  constexpr float operator()(float x) const { return (x - subtract) / (divide == 0 ? 1 : divide); }
};

/// The number of sorted boundaries that are at most x, so each bucket includes its lower boundary. NaN
/// belongs to the last bucket.
constexpr std::int64_t bucket_of(float x, view<float> boundaries) {
  return std::int64_t(std::ranges::upper_bound(boundaries, x) - boundaries.begin());
}

/// The bucket of a number: `discretization{{20, 30, 40, 50}}` gives 0 below 20, and 4 from 50.
template <std::size_t N>
class discretization {
 public:
  /// Unsorted boundaries do not compile in a constant, and throw usage_error at run time.
  constexpr discretization(float const (&boundaries)[N]);

  constexpr std::int64_t operator()(float x) const { return bucket_of(x, boundaries_); }
  constexpr std::int64_t size() const { return std::int64_t(N) + 1; }

 private:
  std::array<float, N> boundaries_;
};

/// The same with boundaries that are only known at run time (`statistics::boundaries`).
class loaded_discretization {
 public:
  /// Throws usage_error for unsorted boundaries.
  explicit loaded_discretization(std::vector<float> boundaries);

  std::int64_t operator()(float x) const { return bucket_of(x, boundaries_); }
  std::int64_t size() const { return std::int64_t(boundaries_.size()) + 1; }

 private:
  std::vector<float> boundaries_;
};

/// The logarithm of a number, rounded to the nearest id (halves to even). If that is not an id below
/// `buckets`, because the number is large or has no logarithm, the result is `otherwise`. The base must be
/// above 1. `otherwise` is an id below `buckets`, or −1 for none.
struct log_round {
  int buckets = 0;
  double base = 2.718281828459045;
  std::int64_t otherwise = 0;

  std::int64_t operator()(double x) const;
  constexpr std::int64_t size() const { return buckets; }
};

/// A number, rounded to the nearest id (halves to even). Outside 0 to `most` the result is `otherwise`, which
/// is one of these ids, or −1 for none. `most` is below 2^63 − 1.
struct round_identity {
  std::int64_t most = 0;
  std::int64_t otherwise = 0;

  std::int64_t operator()(double x) const;
  constexpr std::int64_t size() const { return most + 1; }
};

/// The number in a text, or `otherwise` for an empty one. Ignores surrounding blanks. Throws data_error,
/// which shows the text, for any other.
template <class T>
  requires std::same_as<T, float> || std::same_as<T, std::int64_t>
T to_number(std::string_view text, T otherwise);

namespace detail {

void refuse_boundaries();

}  // namespace detail

template <std::size_t N>
constexpr discretization<N>::discretization(float const (&boundaries)[N]) {
  std::ranges::copy(boundaries, boundaries_.begin());
  if (!std::ranges::is_sorted(boundaries_)) detail::refuse_boundaries();
}

}  // namespace edl::features

#ifdef EDL_HEADER_ONLY
#include "edl/compute/features/numbers.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <xtensor/xexpression.hpp>
#include <xtensor/xfixed.hpp>

#include "edl/author/checked_view.hpp"

namespace edl::detail {

/// Throws data_error: `feed` set the wrong number of labels.
[[noreturn]] void refuse_labels(std::size_t got, std::size_t wanted);

/// A class as the label of a sample: a whole number; nothing else can be assigned.
class class_label {
 public:
  template <class Label>
  constexpr class_label& operator=(Label const& label) {
    constexpr bool whole = std::is_convertible_v<Label, std::int64_t> && !std::is_floating_point_v<Label>;
    static_assert(whole,
                  "edl: a label of the model's `loss` is the number of a class, and of an integer type");
    if constexpr (whole) number_ = label;
    return *this;
  }
  constexpr operator std::int64_t() const { return number_; }
  constexpr bool set() const { return number_ != none; }

 private:
  static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min();
  std::int64_t number_ = none;
};

/// The number of labels in a value if the compiler knows it; otherwise 0.
template <class T>
inline constexpr std::size_t known_size = 0;
template <class T, std::size_t N>
inline constexpr std::size_t known_size<std::array<T, N>> = N;
template <class T, std::size_t N>
inline constexpr std::size_t known_size<xt::xtensor_fixed<T, xt::xshape<N>>> = N;

/// Several numbers as the labels of a sample: an xtensor view of one dimension. An assigned value must have
/// the same number, which the compiler checks if it can. Throws data_error otherwise.
template <std::size_t N>
class label_row : public checked_view<1> {
 public:
  explicit label_row(float* at) : checked_view<1>(at, {N}, "label") {}

  template <class Labels>
  label_row& operator=(Labels const& labels) {
    constexpr bool as_many = known_size<Labels> == N || known_size<Labels> == 0;
    constexpr bool several = !std::is_arithmetic_v<Labels> && requires { labels.size(); };
    static_assert(as_many, "edl: these labels are not as many as the model's `loss` takes of a sample");
    static_assert(several, "edl: the model's `loss` takes several labels of a sample, and this is one");
    if constexpr (as_many && several) {
      if (labels.size() != N) refuse_labels(labels.size(), N);
      if constexpr (xt::is_xexpression<Labels>::value)
        checked_view<1>::operator=(labels);
      else
        for (std::size_t i = 0; i < N; ++i) (*this)(i) = float(labels[i]);
    }
    return *this;
  }
  /// `{0, 1, 0}`
  template <std::size_t M>
  label_row& operator=(float const (&labels)[M]) {
    return *this = std::to_array(labels);
  }
};

}  // namespace edl::detail

#ifdef EDL_HEADER_ONLY
#include "edl/author/label.ipp"
#endif

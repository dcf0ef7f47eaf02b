// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <xtensor/xadapt.hpp>

#include "edl/author/model_traits.hpp"
#include "edl/core/shape.hpp"

namespace edl {
namespace detail {

template <std::size_t Rank>
auto writable_view(float* at, std::array<std::size_t, Rank> const& extents) {
  std::size_t n = 1;
  for (std::size_t e : extents) n *= e;
  return xt::adapt(at, n, xt::no_ownership(), extents);
}

template <shape S>
auto features_view(float* at) {
  if constexpr (S.flat())
    return writable_view<1>(at, {S.size()});
  else
    return writable_view<3>(at, {std::size_t(S.height), std::size_t(S.width), std::size_t(S.channels)});
}

/// One number per record, a class or the only output, or a view of one per output.
template <class Label, bool One>
auto label_of() {
  if constexpr (std::is_integral_v<Label>)
    return std::int64_t{};
  else if constexpr (One)
    return Label{};
  else
    return writable_view<1>(nullptr, {1});
}

}  // namespace detail

/// What a model's `feed` makes of one record.
///
/// `features` is an xtensor view of the network's input: (height, width, channels), or (count) for
/// `nn::features`. `label` is an integer for class labels, a float for a single output, otherwise an xtensor
/// view of as many floats as the network has outputs; in prediction it may be left alone.
template <class Model>
struct sample {
  static constexpr shape input = Model::network.input;
  static constexpr shape output = Model::network.body.output(Model::network.input);
  static constexpr std::size_t labels = model_traits<Model>::loss_type::labels(output);
  using label_type = decltype(detail::label_of<typename model_traits<Model>::label, labels == 1>());

  /// The sample in these rows of a batch, `input.size()` and `labels` elements; no targets where labels are
  /// classes.
  sample(std::span<float> row, std::span<float> targets)
      : features(detail::features_view<input>(row.data())), label(make_label(targets)) {}

  decltype(detail::features_view<input>(nullptr)) features;
  label_type label;

 private:
  static label_type make_label([[maybe_unused]] std::span<float> targets) {
    if constexpr (std::is_arithmetic_v<label_type>)
      return {};
    else
      return detail::writable_view<1>(targets.data(), {labels});
  }
};

}  // namespace edl

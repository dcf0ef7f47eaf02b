// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <tuple>
#include <type_traits>
#include <xtensor/xadapt.hpp>

#include "edl/author/id_list.hpp"
#include "edl/author/model_traits.hpp"
#include "edl/author/served_id_list.hpp"
#include "edl/author/served_ids.hpp"
#include "edl/core/shape.hpp"
#include "edl/nn/inputs.hpp"

namespace edl {
namespace detail {

template <std::size_t Rank, class T>
auto writable_view(T* at, std::array<std::size_t, Rank> const& extents) {
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

/// One number per record, a class or the only output, or a view of one per place or output.
template <class Label, bool One>
auto label_of() {
  if constexpr (!One)
    return writable_view<1>(static_cast<Label*>(nullptr), {1});
  else if constexpr (std::is_integral_v<Label>)
    return std::int64_t{};
  else
    return Label{};
}

}  // namespace detail

/// What a model's `feed` makes of one record.
///
/// `features` is an xtensor view of the network's input: (height, width, channels), or (count) for
/// `nn::features`. Where the network has named inputs, `input<"name">()` is the view of one of them, or an
/// `edl::id_list` for `nn::weighted_ids`. For `nn::served_embedding` it is an `edl::served_ids`, and for
/// `nn::served_embedding_bag` an `edl::served_id_list`. `label` is an integer for class labels and a float
/// for a single output. Otherwise it is an xtensor view of as many floats as the network has outputs. With a
/// class for each place it is one of as many integers, which begin as −1. Where the loss has `nn::heads`,
/// `head<"name">()` is the label of one of them. In prediction labels may be left alone.
template <class Model>
struct sample {
  static constexpr shape input_shape = Model::network.input;
  static constexpr shape output = Model::network.body.output(Model::network.input);
  static constexpr std::size_t table_ids = std::size_t(nn::table_ids(Model::network.start));
  static constexpr std::size_t labels = model_traits<Model>::loss_type::labels(output);
  using label_type = decltype(detail::label_of<typename model_traits<Model>::label, labels == 1>());

  /// The sample in these rows of a batch, `input.size()` and `labels` elements; no targets where labels are
  /// classes. Where there are several, they are `classes`. `ids`, `weights`: `table_ids` of them.
  sample(std::span<float> row, std::span<float> targets, std::span<std::uint64_t> ids = {},
         std::span<float> weights = {}, std::span<std::int32_t> classes = {})
      : features(detail::features_view<input_shape>(row.data())),
        label(make_label(targets, classes)),
        row_(row),
        targets_(targets),
        ids_(ids),
        weights_(weights) {
    clear_lists(Model::network.start);
    std::ranges::fill(ids_, 0);
    std::ranges::fill(weights_, 0.0f);
  }

  /// The network's input of that name.
  template <nn::literal Name>
  auto input() {
    constexpr auto all = Model::network.start;
    constexpr auto kind = all.template kind_of<Name>();
    constexpr auto first = std::size_t(all.template first_of<Name>());
    if constexpr (std::same_as<decltype(kind), nn::weighted_ids const>)
      return id_list(row_.subspan(first, kind.input().size()), Name.view());
    else if constexpr (std::same_as<decltype(kind), nn::served_embedding const>)
      return served_ids(ids_.subspan(std::size_t(all.template first_id_of<Name>()), std::size_t(kind.count)),
                        Name.view());
    else if constexpr (std::same_as<decltype(kind), nn::served_embedding_bag const>)
      return served_id_list(
          ids_.subspan(std::size_t(all.template first_id_of<Name>()), std::size_t(kind.most)),
          weights_.subspan(std::size_t(all.template first_id_of<Name>()), std::size_t(kind.most)),
          Name.view());
    else
      return detail::features_view<kind.input()>(row_.data() + first);
  }

  /// The label of the head of that name (`nn::heads`), or a view of them where its loss takes several.
  template <nn::literal Name>
  decltype(auto) head() {
    using heads = typename model_traits<Model>::loss_type;
    constexpr std::size_t first = heads::template first_of<Name>()[1];
    constexpr std::size_t count =
        std::tuple_element_t<heads::template index_of<Name>(), decltype(heads::all)>::labels;
    if constexpr (count == 1)
      return (targets_[first]);
    else
      return detail::writable_view<1>(targets_.data() + first, {count});
  }

  decltype(detail::features_view<input_shape>(nullptr)) features;
  label_type label;

 private:
  template <class... Named>
  void clear_lists(nn::input_list<Named...> const& all) {
    std::size_t first = 0;
    std::apply(
        [&](auto const&... n) {
          (..., [&] {
            std::size_t const size = n.of.input().size();
            if constexpr (std::same_as<std::remove_cvref_t<decltype(n.of)>, nn::weighted_ids>)
              id_list(row_.subspan(first, size), n.name).clear();
            first += size;
          }());
        },
        all.all);
  }
  void clear_lists(nn::weighted_ids) { id_list(row_, "").clear(); }
  template <class Kind>
  void clear_lists(Kind const&) {}

  static label_type make_label([[maybe_unused]] std::span<float> targets,
                               [[maybe_unused]] std::span<std::int32_t> classes) {
    if constexpr (std::is_arithmetic_v<label_type>) {
      return {};
    } else if constexpr (std::is_integral_v<typename model_traits<Model>::label>) {
      std::ranges::fill(classes, -1);
      return detail::writable_view<1>(classes.data(), {labels});
    } else {
      return detail::writable_view<1>(targets.data(), {labels});
    }
  }

  std::span<float> row_, targets_;
  std::span<std::uint64_t> ids_;
  std::span<float> weights_;
};

}  // namespace edl
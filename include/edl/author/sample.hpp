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

#include "edl/author/checked_view.hpp"
#include "edl/author/class_list.hpp"
#include "edl/author/fed.hpp"
#include "edl/author/id_list.hpp"
#include "edl/author/label.hpp"
#include "edl/author/model_traits.hpp"
#include "edl/author/served_id_list.hpp"
#include "edl/author/served_ids.hpp"
#include "edl/compute/nn/input_place.hpp"
#include "edl/compute/nn/inputs.hpp"
#include "edl/compute/nn/loss/loss.hpp"
#include "edl/compute/nn/takes_ids.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/unpack.hpp"

namespace edl {
namespace detail {

template <shape S>
auto features_view(float* at, std::string_view name = {}) {
  if constexpr (S.flat())
    return checked_view<1>(at, {S.size()}, name);
  else
    return checked_view<3>(at, {std::size_t(S.height), std::size_t(S.width), std::size_t(S.channels)}, name);
}

/// The inputs that a model's `feed` names in its code, known before `main`.
template <class Model>
inline bool names_input[nn::input_places(Model::network.start).size()]{};
template <class Model, nn::literal Name>
inline bool const names_this_input =
    (names_input<Model>[std::remove_cvref_t<decltype(Model::network.start)>::template index_of<Name>] = true);

/// Target of `feed`'s writes if the model is wrong.
struct takes_anything {
  template <class T>
  takes_anything const& operator=(T const&) const {
    return *this;
  }
  takes_anything operator()(auto&&...) const { return {}; }
  takes_anything operator[](auto&&) const { return {}; }
  void add(auto&&...) const {}
  float* begin() const { return nullptr; }
  float* end() const { return nullptr; }
  std::size_t size() const { return 0; }
};

/// Target of a weight if the loss takes none.
template <class Model>
struct takes_no_weight {
  template <class Weight>
  void operator=(Weight const&) const {
    constexpr bool weighted = !std::is_same_v<Weight, Weight>;
    static_assert(weighted,
                  "edl: the model's `loss` takes no weight of a sample: "
                  "`static constexpr nn::sample_weighted loss{nn::softmax_cross_entropy{}}`");
  }
};

/// One number per record, a class or the only output, or a view of one per output or place.
template <class Label, std::size_t Labels>
using label_of =
    std::conditional_t<std::is_integral_v<Label>, std::conditional_t<Labels == 1, class_label, class_list>,
                       std::conditional_t<Labels == 1, float, label_row<Labels>>>;

}  // namespace detail

/// The sample that a model's `feed` makes from one record. It is written in place, and cannot be copied.
///
/// `features` is an xtensor view of the network's input: (height, width, channels), or (count) for
/// `nn::features`. If the network has named inputs, `input<"name">()` is the view of one of them, or an
/// `edl::id_list` for `nn::weighted_ids`. For `nn::served_embedding` it is an `edl::served_ids`, and for
/// `nn::served_embedding_bag` an `edl::served_id_list`. `label` is an integer for class labels and a float
/// for a single output. Otherwise it is an xtensor view of one float per output of the network. For
/// `nn::sequence_cross_entropy` it is an `edl::class_list`. If the loss has `nn::heads`, `head<"name">()` is
/// the label of one of them. Ids that `nn::masked` reads start as padding. If the loss is
/// `nn::sample_weighted`, `weight` is the weight of the sample, at least 0, by default 1. In prediction,
/// labels and weight are optional. Everything else must be written: a missing value makes the record a
/// damaged one, before it is used. Views are checked: nothing is written past their end.
template <class Model>
struct sample {
  static constexpr shape input_shape = Model::network.input;
  static constexpr shape output = Model::network.body.output(Model::network.input);
  static constexpr std::size_t table_ids = std::size_t(nn::table_ids(Model::network.start));
  static constexpr std::size_t labels = model_traits<Model>::unweighted_loss::labels(output);
  static constexpr bool weighted = nn::weighs_samples<typename model_traits<Model>::loss_type>;
  using label_type = detail::label_of<typename model_traits<Model>::label, labels>;

  /// The sample in these rows of a batch, `input.size()` and `labels` elements. There are no targets if
  /// labels are classes. `ids`, `weights`: `table_ids` of them. `classes`: only with several labels.
  /// `poison`: the value of ids that are not yet set.
  sample(std::span<float> row, std::span<float> targets, std::span<std::uint64_t> ids = {},
         std::span<float> weights = {}, std::span<std::int32_t> classes = {},
         std::uint64_t poison = author::unfed_id)
      : features(detail::features_view<input_shape>(row.data())),
        label(make_label(targets, classes)),
        row_(row),
        targets_(targets),
        ids_(ids),
        weights_(weights) {
    std::ranges::fill(ids_, 0);
    for (nn::input_place const& in : nn::input_places(Model::network.start)) {
      std::ranges::fill(row_.subspan(in.first, in.count), author::unfed);
      std::ranges::fill(ids_.subspan(in.first_id, in.ids), poison);
    }
    std::ranges::fill(targets_, author::unfed);
    std::ranges::fill(weights_, 0.0f);
    clear_lists(Model::network.start);
    clear_padding();
  }

  sample(sample const&) = delete;
  sample& operator=(sample const&) = delete;

  /// The network's input with this name.
  template <nn::literal Name>
  auto input() {
    static_cast<void>(&detail::names_this_input<Model, Name>);
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
      return detail::features_view<kind.input()>(row_.data() + first, Name.view());
  }

  /// The label of the head with this name (`nn::heads`), or a view of its labels if its loss takes several.
  template <nn::literal Name>
  decltype(auto) head() {
    using heads = typename model_traits<Model>::loss_type;
    constexpr std::size_t first = heads::template first_of<Name>()[1];
    constexpr std::size_t count =
        std::tuple_element_t<heads::template index_of<Name>(), decltype(heads::all)>::labels;
    if constexpr (count == 1)
      return (targets_[first]);
    else
      return detail::label_row<count>(targets_.data() + first);
  }

  decltype(detail::features_view<input_shape>(nullptr)) features;
  label_type label;
  std::conditional_t<weighted, float, detail::takes_no_weight<Model>> weight = make_weight();

 private:
  /// Removes the ids of the previous record, so that a `feed` may set fewer.
  void clear_padding() {
    nn::for_each_padding(
        Model::network.body, input_shape, Model::network.of_ids ? nn::ids_of(input_shape) : nn::id_range{},
        [&](nn::id_range of, int id) {
          std::ranges::fill(row_.subspan(std::size_t(of.first), std::size_t(of.count)), float(id));
        });
  }
  template <class... Named>
  void clear_lists(nn::input_list<Named...> const& all) {
    std::size_t first = 0;
    edl::unpack(
        [&](auto const&... n) {
          (..., [&] {
            std::size_t const size = n.spec.input().size();
            if constexpr (std::same_as<std::remove_cvref_t<decltype(n.spec)>, nn::weighted_ids>)
              id_list(row_.subspan(first, size), n.name).clear();
            first += size;
          }());
        },
        all.all);
  }
  void clear_lists(nn::weighted_ids) { id_list(row_, "").clear(); }
  template <class Kind>
  void clear_lists(Kind const&) {}

  static auto make_weight() {
    if constexpr (weighted)
      return 1.0f;
    else
      return detail::takes_no_weight<Model>{};
  }

  static label_type make_label([[maybe_unused]] std::span<float> targets,
                               [[maybe_unused]] std::span<std::int32_t> classes) {
    if constexpr (std::same_as<label_type, class_list>)
      return class_list(classes);
    else if constexpr (std::is_constructible_v<label_type, float*>)
      return label_type(targets.data());
    else if constexpr (std::same_as<label_type, float>)
      return author::unfed;
    else
      return {};
  }

  std::span<float> row_, targets_;
  std::span<std::uint64_t> ids_;
  std::span<float> weights_;
};

/// The sample of a wrong model, which the compiler has already reported: it accepts every line of `feed`.
template <class Model>
  requires(!model_traits<Model>::whole)
struct sample<Model> {
  sample(sample const&) = delete;

  template <nn::literal>
  detail::takes_anything input() {
    return {};
  }
  template <nn::literal>
  detail::takes_anything head() {
    return {};
  }

  detail::takes_anything features, label, weight;
};

}  // namespace edl

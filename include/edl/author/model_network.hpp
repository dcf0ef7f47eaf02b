// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "edl/compute/data/augment.hpp"
#include "edl/compute/device/backend.hpp"
#include "edl/compute/nn/inputs.hpp"
#include "edl/compute/nn/layer/lengths.hpp"
#include "edl/compute/nn/layer/sequential.hpp"
#include "edl/compute/nn/loss/loss.hpp"
#include "edl/compute/nn/plan.hpp"
#include "edl/core/shape.hpp"

namespace edl::detail {

template <class>
inline constexpr bool is_network = false;
template <class First, class... Layers>
inline constexpr bool is_network<nn::network<First, Layers...>> = true;

/// Layers without an input.
template <class>
inline constexpr bool is_chain = false;
template <class... Layers>
inline constexpr bool is_chain<nn::chain<Layers...>> = true;

template <class>
inline constexpr bool begins_with_picture = false;
template <class... Layers>
inline constexpr bool begins_with_picture<nn::network<nn::image, Layers...>> = true;

/// The compiler can follow the shapes through all layers.
template <auto const& Net>
concept known_shapes =
    requires { typename std::bool_constant<(nn::find_misfit(Net.body, Net.input, Net.of_ids), true)>; };

template <auto const& Net>
using start_of = std::remove_cvref_t<decltype(Net.start)>;

/// Whether a model's network can be computed.
template <auto const& Net>
inline constexpr bool whole_network = false;
template <auto const& Net>
  requires(known_shapes<Net>)
inline constexpr bool whole_network<Net> =
    !nn::holds_rows<start_of<Net>> && nn::sizes_fit(Net.start) && nn::table_options_fit(Net.start) &&
    nn::tables_agree(Net.start) && nn::misfit_of<Net>.none() && !nn::holds_no_layer(Net.body, Net.input) &&
    nn::can_compute<Net, basic_backend<float>> && nn::fault_of_lengths(Net) == nn::lengths_fault::none;

/// Instantiated for one that cannot. If an argument is not a layer, `sequential` has already reported it.
template <auto const& Net>
struct checked_network {
  static constexpr bool named = !nn::holds_rows<start_of<Net>>, sized = nn::sizes_fit(Net.start),
                        in_range = nn::table_options_fit(Net.start), agree = nn::tables_agree(Net.start),
                        known = !sized || known_shapes<Net>;
  static constexpr bool value = named && sized && in_range && agree && known;
  static_assert(sized,
                "edl: an input of the network has no size: `height`, `width`, `channels`, `count` and `most` "
                "are 1 or more");
  static_assert(named,
                "edl: a served embedding is a named input of the network: "
                "`edl::nn::inputs(edl::nn::input<\"words\">(...))`");
  static_assert(
      in_range || !named,
      "edl: a served embedding of the network lacks `count` (`most` of a bag) or `width`, or has an "
      "`admission` below 1");
  static_assert(agree, "edl: inputs of the network share a table of rows, and differ in `width` or `rows`");
  static_assert(known, "edl: `check` or `output` of a layer of the network is not constexpr");
};

/// Instantiated for a network whose layers are right, and whose input has planned lengths.
template <auto const& Net>
struct checked_lengths {
  static constexpr auto fault = nn::fault_of_lengths(Net);
  static_assert(fault != nn::lengths_fault::out_of_range,
                "edl: the `lengths` of the network's `nn::ids` are from 1 to `count` - 1");
  static_assert(
      fault != nn::lengths_fault::not_masked,
      "edl: the network's `nn::ids` has `lengths`, so its first layer should be `nn::masked(...)`; in a "
      "function, all `nn::masked` should have one id");
  static_assert(fault != nn::lengths_fault::sees_padding,
                "edl: the network's `nn::ids` has `lengths`, and a layer behind `nn::masked` sees padding");
  static_assert(fault != nn::lengths_fault::other_variables,
                "edl: the network's `nn::ids` has `lengths`, and a layer has other variables at another "
                "length: `nn::positions{.most = 128}` has the same");
};

/// Whether a loss can be computed for outputs with fewer places than the network's: it ignores places without
/// a label.
template <class Loss, auto const& Net>
constexpr bool loss_takes_lengths() {
  bool same = true;
  if constexpr (nn::plans_lengths(Net.start))
    for (int const l : Net.start.lengths)
      same = same && (l == 0 || Net.body.output({1, 1, l}) == Net.body.output(Net.input));
  return same || requires { Loss::ignored; };
}

/// Instantiated for a model's loss and the outputs of its network.
template <class Loss, shape Output>
struct loss_takes {
  static constexpr bool value = nn::loss_fits<Loss>(Output);
  static_assert(value,
                "edl: the model's `loss` cannot be computed from as many outputs as its `network` has: "
                "losses of classes take two or more, `heads` the sum of those of its heads");
};

/// Instantiated for a model's loss and a network whose outputs it takes.
template <class Loss, auto const& Net>
struct loss_takes_shorter {
  static constexpr bool value = loss_takes_lengths<Loss, Net>();
  static_assert(
      value,
      "edl: the network's `nn::ids` has `lengths`, and an output for each place: the model's `loss` "
      "should be `nn::sequence_cross_entropy`, which passes over padding");
};

}  // namespace edl::detail

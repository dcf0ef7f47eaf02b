// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "edl/compute/nn/expression/mistake.hpp"
#include "edl/compute/nn/layer.hpp"
#include "edl/compute/nn/layer_parts.hpp"
#include "edl/compute/nn/naming.hpp"
#include "edl/compute/nn/takes_ids.hpp"
#include "edl/core/layout.hpp"

namespace edl::nn {

/// Indices of the containers around a layer, from the outermost.
template <int... Index>
struct inside {};

/// What a layer lacks: an option without a default, or a required part of a custom layer. `recomputation`: it
/// declares that it can be recomputed, but has state that would then differ.
enum class missing_part { nothing, units, filters, vocabulary, width, forward, backward, recomputation };

/// The missing option of a layer whose options are out of range.
template <layer L>
constexpr missing_part missing_option(L const& l) {
  if constexpr (requires { l.units == 0; })
    if (l.units == 0) return missing_part::units;
  if constexpr (requires { l.filters == 0; })
    if (l.filters == 0) return missing_part::filters;
  if constexpr (requires { l.vocabulary == 0; })
    if (l.vocabulary == 0) return missing_part::vocabulary;
  if constexpr (requires { l.width == 0; })
    if (l.width == 0) return missing_part::width;
  return missing_part::nothing;
}

/// Whether `layer_receives` has a sentence for exactly this reason.
constexpr bool has_a_sentence(fit why) {
  switch (why) {
    case fit::kernel_exceeds_input:
    case fit::window_exceeds_input:
    case fit::groups_do_not_divide_channels:
    case fit::branches_differ_in_shape:
    case fit::option_out_of_range:
    case fit::takes_only_ids:
    case fit::takes_no_ids:
    case fit::takes_no_weights:
    case fit::not_at_the_start:
    case fit::sees_padding:
      return true;
    default:
      return false;
  }
}

/// Layer number `Index` of a container, a `Layer` with the input `Input`. Instantiated for a layer that does
/// not fit, so that the compiler's message shows the layer, its place, its input and the reason. `Where` is
/// omitted for the outermost container.
template <int Index, class Layer, shape Input, fit Why, class... Where>
struct layer_receives {
  static_assert(Why != fit::kernel_exceeds_input,
                "edl: this layer cannot follow the one before it: its `kernel` is larger than its input; "
                "take a smaller one, or `.padding = nn::padding::same`");
  static_assert(Why != fit::window_exceeds_input,
                "edl: this layer cannot follow the one before it: its `window` is larger than its input; "
                "take a smaller one, or `.padding = nn::padding::same`");
  static_assert(Why != fit::groups_do_not_divide_channels,
                "edl: this layer cannot follow the one before it: its `groups` must divide the channels of "
                "its input and its `filters`");
  static_assert(Why != fit::branches_differ_in_shape,
                "edl: this layer cannot follow the one before it: the shapes of its branches do not fit "
                "together; `residual` takes a projection as its second argument");
  static_assert(Why != fit::option_out_of_range, "edl: an option of this layer is out of range");
  static_assert(Why != fit::takes_only_ids,
                "edl: this layer cannot follow the one before it: it takes ids, and stands at the start of a "
                "network or branch of `nn::ids` or `nn::weighted_ids`");
  static_assert(Why != fit::takes_no_ids,
                "edl: this layer cannot follow the one before it: ids are for an `nn::embedding` or an "
                "`nn::embedding_bag`, which stands between");
  static_assert(Why != fit::takes_no_weights,
                "edl: this layer cannot follow the one before it: ids with weights are for an "
                "`nn::embedding_bag`");
  static_assert(
      Why != fit::not_at_the_start,
      "edl: this layer cannot follow the one before it: a branch that begins with a named input, or "
      "`nn::masked` by one, stands at the start of the network, or in its function, and not within "
      "a container");
  static_assert(Why != fit::sees_padding,
                "edl: this layer cannot follow the one before it: within `nn::masked` it would see padding; "
                "it stands behind, or after an `nn::lstm{.last = true}` or a global pool, or takes "
                "`.each_place = true`, which `nn::cross_attention` and `nn::matmul` do not have");
  static constexpr bool said = Why == fit::fits || has_a_sentence(Why);
  static_assert(said, "edl: this layer cannot follow the one before it");
};

/// The same for a layer that lacks something.
template <int Index, class Layer, shape Input, missing_part What, class... Where>
struct layer_misses {
  static_assert(What != missing_part::units,
                "edl: this layer lacks `units`, which have no default: `.units = 10`");
  static_assert(What != missing_part::filters,
                "edl: this layer lacks `filters`, which have no default: `.filters = 32`");
  static_assert(What != missing_part::vocabulary,
                "edl: this layer lacks `vocabulary`, which has no default: `.vocabulary = 1'000`");
  static_assert(What != missing_part::width,
                "edl: this layer lacks `width`, which has no default: `.width = 16`");
  static_assert(What != missing_part::forward,
                "edl: this layer has no `template <class D> void forward(edl::nn::pass<D>&, "
                "edl::nn::forward_args<typename D::scalar> const&) const`");
  static_assert(What != missing_part::backward,
                "edl: this layer has no `template <class D> void backward(edl::nn::pass<D>&, "
                "edl::nn::backward_args<typename D::scalar> const&) const`");
  static_assert(What != missing_part::recomputation,
                "edl: this layer declares `recomputes`, and has `scratch` or variables that are not trained; "
                "a recomputed layer may have neither");
};

/// The first layer that does not fit, with the path to it.
struct misfit {
  static constexpr std::size_t deepest = 16;

  fit why = fit::fits;
  shape input;
  std::size_t depth = 0;
  std::array<int, deepest> path{};
  missing_part missing = missing_part::nothing;
  expression::mistake wrong{};  ///< for a layer whose tensors do not fit

  constexpr bool none() const { return why == fit::fits && missing == missing_part::nothing; }
  /// The same, seen from the container whose child number `index` contains it.
  constexpr misfit within(int index) const {
    misfit outer{why, input, depth + 1, {}, missing, wrong};
    outer.path[0] = index;
    for (std::size_t i = 0; i < depth; ++i) outer.path[i + 1] = path[i];
    return outer;
  }
};

/// The index of the type of a container's child number `index`, as in `child`.
template <container L>
constexpr int child_code(L const& l, int index) {
  if constexpr (requires { l.child_code(std::size_t(index)); })
    return l.child_code(std::size_t(index));
  else
    return index;
}

/// `ids`: its input is the network's, which is ids. `padded`: the number of places if some are padding, and
/// `masked`: `masked` is around it.
template <layer L>
constexpr misfit find_misfit(L const& l, shape in, bool ids = false, int padded = 0, bool masked = false) {
  misfit found{l.check(in), in, 0, {}};
  if (found.why == fit::option_out_of_range) found.missing = missing_option(l);
  if constexpr (requires { l.wrong(in); }) {
    if (found.why == fit::tensors_do_not_fit) found.wrong = l.wrong(in);
    if (!found.wrong.none()) {
      if constexpr (requires { l.wrong_child(in); })
        if (int const child = l.wrong_child(in); child >= 0) return found.within(child);
      return found;
    }
  }
  if (found.why == fit::fits) found.why = check_ids<L>(ids, in);
  if constexpr (requires { l.joins_input(); })
    if (found.why == fit::fits && ids && l.joins_input()) found.why = fit::takes_no_ids;
  if constexpr (requires { l.masks_ids(); })
    if (found.why == fit::fits && !ids && l.masks_ids()) found.why = fit::takes_only_ids;
  if constexpr (requires { l.mixes_places(in, padded); })
    if (found.why == fit::fits && padded > 1 && l.mixes_places(in, padded)) found.why = fit::sees_padding;
  if (found.why == fit::fits && padded > 1 && in.height * in.width == padded && !takes_padding(l, masked))
    found.why = fit::sees_padding;
  if constexpr (masks_places<L>) {
    padded = l.places(in), masked = true;
    if (found.why == fit::fits && l.mask.row == 0 && !ids) found.why = fit::takes_only_ids;
  }
  if constexpr (container<L>) {
    if (found.why == fit::fits && !ids && padded == 0 && !knows_ids(l, in)) return found;
    int index = 0;
    bool given = ids;
    l.children(in, [&](auto const& child, shape s, std::string_view) {
      misfit const below = find_misfit(child, s, given && sees_input(l, index), padded, masked);
      if (is_serial<L>) given = gives_ids<std::remove_cvref_t<decltype(child)>>;
      if (below.why != fit::fits && below.depth < misfit::deepest) found = below.within(child_code(l, index));
      ++index;
      return below.why == fit::fits;
    });
  }
  return found;
}

/// The first layer that lacks `forward` or `backward` for this device, or declares `recomputes` but cannot be
/// recomputed.
template <class Device, layer L>
constexpr misfit find_unfinished(L const& l, shape in) {
  misfit found{fit::fits, in, 0, {}};
  if constexpr (container<L>) {
    int index = 0;
    l.children(in, [&](auto const& child, shape s, std::string_view) {
      misfit const below = find_unfinished<Device>(child, s);
      if (!below.none() && below.depth < misfit::deepest) found = below.within(child_code(l, index));
      ++index;
      return below.none();
    });
  } else if constexpr (requires { l.inner(); }) {  // which needs no scratch in a forward pass, as its own may
    return find_unfinished<Device>(l.inner(), in);
  } else if constexpr (!has_forward<Device, L>) {
    found.missing = missing_part::forward;
  } else if constexpr (!has_backward<Device, L>) {
    found.missing = missing_part::backward;
  } else if constexpr (recomputes<L>) {
    if (scratch_of(l, in, 1) > 0 || count(l, in).state > 0) found.missing = missing_part::recomputation;
  }
  return found;
}

namespace detail {

/// Instantiates the sentence about a layer that does not fit. Returns true. `Level` is the depth of the
/// container `L`, and `Outer` the path to it.
template <class L, misfit const& Found, std::size_t Level, int... Outer>
constexpr bool explain() {
  constexpr int index = Found.path[Level];
  using child = typename L::template child<std::size_t(index)>;
  if constexpr (Level + 1 < Found.depth)
    return explain<child, Found, Level + 1, Outer..., index>();
  else if constexpr (Found.why == fit::tensors_do_not_fit)
    return sizeof(expression::forward_pass_of<child, Found.wrong>) > 0;
  else if constexpr (Found.missing != missing_part::nothing && sizeof...(Outer) == 0)
    return sizeof(layer_misses<index, child, Found.input, Found.missing>) > 0;
  else if constexpr (Found.missing != missing_part::nothing)
    return sizeof(layer_misses<index, child, Found.input, Found.missing, inside<Outer...>>) > 0;
  else if constexpr (sizeof...(Outer) == 0)
    return sizeof(layer_receives<index, child, Found.input, Found.why>) > 0;
  else
    return sizeof(layer_receives<index, child, Found.input, Found.why, inside<Outer...>>) > 0;
}

template <layer L>
void name_variables(L const& l, shape in, naming& names) {
  auto const add = [&](variable_spec const& v) { names.add(v); };
  if constexpr (container<L>)
    for_each_owner(l, in, [&](auto const& child, shape s, std::string_view role) {
      constexpr bool named = !is_spliced<std::remove_cvref_t<decltype(child)>>;
      if (named) names.enter(child_name(child, role));
      name_variables(child, s, names);
      if (named) names.leave();
      return true;
    });
  else if constexpr (requires { l.variables(in, variable_visitor{add}); })
    l.variables(in, variable_visitor{add});
}

}  // namespace detail

/// The first layer of a network that does not fit.
template <auto const& Net>
inline constexpr misfit misfit_of = find_misfit(Net.body, Net.input, Net.of_ids);

/// The first layer of a network that has no code for a device. Not computed for a network whose layers do not
/// fit, because it has no shapes.
template <auto const& Net, class Device>
inline constexpr misfit unfinished_of =
    misfit_of<Net>.none() ? find_unfinished<Device>(Net.body, Net.input) : misfit{};

/// Whether a network (a constexpr object with static storage) can be computed on this device.
template <auto const& Net, class Device>
inline constexpr bool can_compute = misfit_of<Net>.none() && unfinished_of<Net, Device>.none();

/// If it cannot, the compiler reports why. Returns true.
template <auto const& Net, class Device>
constexpr bool explain_network() {
  using body = std::remove_cvref_t<decltype(Net.body)>;
  if constexpr (!misfit_of<Net>.none())
    return detail::explain<body, misfit_of<Net>, 0>();
  else if constexpr (!unfinished_of<Net, Device>.none())
    return detail::explain<body, unfinished_of<Net, Device>, 0>();
  else
    return true;
}

/// The positions and names of a layer's variables.
template <layer L>
parameter_layout layout_of(L const& l, shape in) {
  naming names;
  detail::name_variables(l, in, names);
  return names.lay_out();
}

/// Those of its frozen variables.
template <layer L>
parameter_layout frozen_layout_of(L const& l, shape in) {
  naming names;
  detail::name_variables(l, in, names);
  return names.lay_out_frozen();
}

/// Draws the elements [first, first + to.size()) of a layer's variables, in the order of the arena, or of its
/// frozen ones.
template <layer L, class T>
void draw(L const& l, shape in, random_stream const& random, std::size_t first, std::span<T> to,
          bool frozen = false) {
  std::size_t offset[2] = {0, frozen ? 0 : count(l, in).parameters};  // of the next one: a parameter, a state
  std::uint64_t index = 0;
  std::size_t const last = first + to.size();
  for_each_variable(l, in, [&](variable_spec const& v) {
    auto const own = random.child(index++);
    if (v.frozen != frozen) return;
    bool const carried = !v.trained && !v.frozen;
    std::size_t const begin = offset[carried], end = begin + v.dims.size();
    offset[carried] = end;
    std::size_t const from = begin > first ? begin : first, until = end < last ? end : last;
    if (from < until) fill(v.initial, v.dims, own, from - begin, to.subspan(from - first, until - from));
  });
}

}  // namespace edl::nn

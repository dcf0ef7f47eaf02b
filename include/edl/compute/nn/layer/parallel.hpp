// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <tuple>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/nn/child.hpp"
#include "edl/compute/nn/expression/layer.hpp"
#include "edl/compute/nn/layer_parts.hpp"
#include "edl/core/unpack.hpp"

namespace edl::nn {

/// How the results of branches are joined.
enum class merge { concat, sum, product };

constexpr std::string_view name_of(merge how) {
  return how == merge::concat ? "concat" : how == merge::sum ? "sum" : "product";
}

/// Layers side by side on one input. Write it as `concat(…)`, `sum(…)` or `product(…)`.
template <merge How, layer... Branches>
struct parallel {
  std::tuple<Branches...> branches;

  static constexpr std::string_view name = name_of(How);
  static constexpr bool portable = How != merge::product;
  template <std::size_t I>
  using child = std::tuple_element_t<I, std::tuple<Branches...>>;

  constexpr fit check(shape in) const {
    fit const why = check_children(*this, in);
    if (why != fit::fits) return why;
    shape const first = std::get<0>(branches).output(in);
    bool same = true;
    each_output(in, [&](shape s) {
      if (How == merge::concat) s.channels = first.channels;
      same = same && s == first;
    });
    return same ? fit::fits : fit::branches_differ_in_shape;
  }
  constexpr shape output(shape in) const {
    shape all = std::get<0>(branches).output(in);
    if (How != merge::concat) return all;
    all.channels = 0;
    each_output(in, [&](shape s) { all.channels += s.channels; });
    return all;
  }
  template <class Visit>
  constexpr void children(shape in, Visit&& visit) const {
    edl::unpack([&](auto const&... b) { (void)(visit(b, in, std::string_view{}) && ...); }, branches);
  }
  constexpr std::size_t saved(shape in, pass_size batch) const {
    std::size_t n = saved_by_children(*this, in, batch);
    each_output(in, [&](shape s) { n += rounded(std::size_t(batch) * s.size()); });
    return n;
  }
  constexpr std::size_t scratch(shape in, pass_size batch) const {
    return rounded(std::size_t(batch) * in.size()) + rounded(std::size_t(batch) * output(in).size()) +
           scratch_of_children(*this, in, batch);
  }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    forward_shares shares(a);
    std::size_t index = 0, channel = 0;
    auto const one = [&](auto const& b) {
      shape const out = b.output(a.in);
      auto const y = shares.keep(out);
      forward_child(p, child_of{*this, a.in, index}, b, shares.next(b, a.in, a.x, y));
      if constexpr (How == merge::concat) {
        auto const c = std::size_t(out.channels);
        p.device.copy_columns(y.size() / c, c, y, 0, c, a.y, channel, std::size_t(a.out.channels));
        channel += c;
      } else if (index == 0) {
        p.device.copy(y, a.y);
      } else if constexpr (How == merge::product) {
        p.device.multiply_elements(a.y, y, a.y);
      } else {
        p.device.add(activation::none, a.y, y, a.y);
      }
      ++index;
    };
    edl::unpack([&](auto const&... b) { (one(b), ...); }, branches);
  }

  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    carver scratch(p.scratch);
    auto const other = scratch.aligned(a.x.size()), slice = scratch.aligned(a.dy.size());
    backward_shares shares(a);
    pass<D> const own = p.child(p.random, {});  // from the first to the last: without a watch
    std::size_t index = 0, channel = 0;
    auto const one = [&](auto const& b) {
      shape const out = b.output(a.in);
      auto const y = shares.kept(out);
      auto call = shares.next(b, a.in, a.x, y);
      call.dy = a.dy;
      if constexpr (How == merge::concat) {
        auto const c = std::size_t(out.channels);
        p.device.copy_columns(y.size() / c, c, a.dy, channel, std::size_t(a.out.channels), slice, 0, c);
        call.dy = slice.first(y.size());
        channel += c;
      } else if constexpr (How == merge::product) {
        p.device.copy(a.dy, slice);
        times_others(p, a, index, slice);
        call.dy = slice;
      } else if (nn::overwrites_dy<std::remove_cvref_t<decltype(b)>>) {
        call.dy = slice;
        p.device.copy(a.dy, slice);
      }
      call.dx = index == 0 ? a.dx : other.first(a.dx.size());
      backward_child(own, child_of{*this, a.in, index}, b, call, scratch.rest());
      if (index > 0 && !a.dx.empty()) p.device.add(activation::none, a.dx, other, a.dx);
      ++index;
    };
    edl::unpack([&](auto const&... b) { (one(b), ...); }, branches);
  }

  /// Multiplies `to` by the outputs of all branches but one.
  template <class D, class T>
  void times_others(pass<D>& p, backward_args<T> const& a, std::size_t left_out, std::span<T> to) const {
    backward_shares shares(a);
    std::size_t index = 0;
    auto const one = [&](auto const& b) {
      auto const y = shares.kept(b.output(a.in));
      (void)shares.next(b, a.in, a.x, y);
      if (index++ != left_out) p.device.multiply_elements(to, y, to);
    };
    edl::unpack([&](auto const&... b) { (one(b), ...); }, branches);
  }

  template <class Visit>
  constexpr void each_output(shape in, Visit&& visit) const {
    edl::unpack([&](auto const&... b) { (visit(b.output(in)), ...); }, branches);
  }
};

namespace detail {

/// Whether it is a result within the function of a graph. Those have `join_results`.
template <class T>
concept is_result = requires { requires T::is_result_of_graph; };

/// Whether the compiler has said what is wrong with a call of a function of these results: it does so once,
/// in the first call.
template <class... Things>
inline constexpr bool is_said = (false || ... || [] {
  if constexpr (is_result<Things>)
    return Things::scope::records;
  else
    return false;
}());

/// The first result among some things.
template <class First, class... Others>
constexpr auto result_of(First const& first, Others const&... others) {
  if constexpr (is_result<First>)
    return first;
  else
    return result_of(others...);
}

template <merge How, class... Branches>
constexpr auto side_by_side(Branches... branches) {
  static_assert(sizeof...(Branches) > 0, "edl: give at least one branch");
  if constexpr (sizeof...(Branches) > 0 && (is_result<Branches> && ...)) {
    return join_results<How>(branches...);  // within the function of a graph
  } else if constexpr ((is_result<Branches> || ...)) {
    static_assert(
        is_said<Branches...>,
        "edl: `nn::concat`, `nn::sum` and `nn::product` join results of one `nn::graph`, or layers, and "
        "not one with the other");
    return result_of(branches...);
  } else if constexpr ((is_expression<Branches> || ...)) {
    return side_by_side<How>(as_layer(branches)...);
  } else if constexpr (sizeof...(Branches) > 0 && (layer<Branches> && ...)) {
    return parallel<How, Branches...>{{branches...}};
  } else {
    explain_layers<Branches...>();
    return no_layer{};
  }
}

}  // namespace detail

/// Branches with concatenated channels. Heights and widths must be equal.
template <class... Branches>
constexpr auto concat(Branches... branches) {
  return detail::side_by_side<merge::concat>(branches...);
}

/// The sum of branches. Shapes must be equal.
template <class... Branches>
  requires(!std::convertible_to<Branches, axes> && ...)
constexpr auto sum(Branches... branches) {
  return detail::side_by_side<merge::sum>(branches...);
}

/// The element-wise product of branches. Shapes must be equal. It runs on the processor.
template <class... Branches>
constexpr auto product(Branches... branches) {
  return detail::side_by_side<merge::product>(branches...);
}

}  // namespace edl::nn

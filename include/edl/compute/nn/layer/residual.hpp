// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/nn/child.hpp"
#include "edl/compute/nn/expression/layer.hpp"
#include "edl/compute/nn/fuse.hpp"
#include "edl/compute/nn/layer/reshape.hpp"
#include "edl/compute/nn/layer_parts.hpp"

namespace edl::nn {

/// y = body(x) + projection(x) (He et al., 2016). Write it as `residual(body)` or `residual(body,
/// projection)`.
template <layer Body, layer Projection = identity>
struct shortcut {
  Body body;
  Projection projection;

  static constexpr std::string_view name = "residual";
  static constexpr bool projects = !std::same_as<Projection, identity>;
  static constexpr bool reads_x = !projects;
  template <std::size_t I>
  using child = std::conditional_t<I == 0, Body, Projection>;

  constexpr fit check(shape in) const {
    fit const why = check_children(*this, in);
    if (why != fit::fits) return why;
    return body.output(in) == projection.output(in) ? fit::fits : fit::branches_differ_in_shape;
  }
  constexpr shape output(shape in) const { return body.output(in); }
  template <class Visit>
  constexpr void children(shape in, Visit&& visit) const {
    if (!visit(body, in, std::string_view("body"))) return;
    if constexpr (projects) visit(projection, in, std::string_view("projection"));
  }
  /// The body can add its result in place, so that only the sum is stored.
  static constexpr bool joins = [] {
    if constexpr (requires { Body::adds; })
      return bool(Body::adds);
    else
      return false;
  }();
  static constexpr bool activates = true, masks_input = true;
  /// The last branch adds the other's gradient to its own.
  static constexpr bool joins_gradients = nn::adds_gradient<std::conditional_t<projects, Projection, Body>>;
  static constexpr bool overwrites_dy = nn::overwrites_dy<Projection>;

  /// The body's result is stored in the place of the sum: the backward pass does not read it.
  static constexpr bool in_place = joins || !nn::reads_y<Body>;
  /// The backward pass does not read the projection's result.
  static constexpr bool forgets = projects && in_place && !nn::reads_y<Projection>;
  static constexpr bool reads_y = false;

  /// Values that are only copied and added may be narrow.
  constexpr bfloat16_io narrows(shape in) const {
    auto const of_body = nn::narrows(body, in), other = nn::narrows(projection, in);
    return projects ? bfloat16_io{of_body.in && other.in, of_body.out && other.out} : of_body;
  }

  /// The branches' results, if a layer needs its own in the backward pass, which the sum would overwrite.
  constexpr std::size_t saved(shape in, pass_size batch) const {
    std::size_t const one = rounded(scalars_of(std::size_t(batch) * output(in).size(), batch.sides.out));
    return (projects && !forgets ? one : 0) + (in_place ? 0 : one) + saved_by_children(*this, in, batch);
  }
  constexpr std::size_t scratch(shape in, pass_size batch) const {
    auto const all = std::size_t(batch);
    std::size_t const result = rounded(scalars_of(all * output(in).size(), batch.sides.out)),
                      forward = forgets ? result : 0,
                      backward = (projects ? rounded(scalars_of(all * in.size(), batch.sides.in)) : 0) +
                                 (nn::overwrites_dy<Body> ? result : 0);
    return (forward > backward ? forward : backward) + scratch_of_children(*this, in, batch);
  }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a, activation f = activation::none) const {
    forward_shares shares(a);
    carver scratch(p.scratch);
    auto const left = in_place ? a.y : shares.keep(a.out, a.narrow.out);
    auto body_call = shares.next(body, a.in, a.x, left);
    body_call.narrow = a.narrow;
    view<typename D::scalar> other = a.x;
    std::span<typename D::scalar> right;
    if constexpr (forgets)
      right = scratch.aligned(a.y.size());
    else if constexpr (projects)
      right = shares.keep(a.out, a.narrow.out);
    pass<D> own = p.child(p.random, scratch.rest());
    if constexpr (projects) {
      auto call = shares.next(projection, a.in, a.x, right);
      call.narrow = a.narrow;
      forward_child(own, child_of{*this, a.in, 1}, projection, call);
      other = right;
    }
    if constexpr (joins) {
      forward_child(own, child_of{*this, a.in, 0}, body, body_call, other, f,
                    projects ? a.narrow.out : a.narrow.in);
    } else {
      forward_child(own, child_of{*this, a.in, 0}, body, body_call);
      p.device.add(f, left, other, a.y, {projects ? a.narrow.out : a.narrow.in, a.narrow.out});
    }
  }

  /// `after_relu`: the input is the result of a relu, whose gradient is applied here.
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a, bool after_relu = false) const {
    using T = typename D::scalar;
    carver scratch(p.scratch);
    auto const other = scratch.aligned(projects ? a.x.size() : 0);
    backward_shares shares(a);
    auto left =
        shares.next(body, a.in, a.x, in_place ? view<T>{} : view<T>(shares.kept(a.out, a.narrow.out)));
    left.dy = a.dy;
    left.narrow = a.narrow;
    if constexpr (nn::overwrites_dy<Body>) {  // it is needed again
      left.dy = scratch.aligned(a.dy.size());
      p.device.copy(a.dy, left.dy);
    }
    left.dx = projects && joins_gradients ? other.first(a.dx.size()) : a.dx;
    pass<D> own = p.child(p.random, {});
    own.watch = p.watch;
    if (projects) own.watch = nullptr;  // the projection's gradients follow, and are final later
    auto const join = [&](pass<D> const& with, std::size_t index, auto const& branch,
                          backward_args<T> const& call, view<T> with_what, bool narrow) {
      backward_child(with, child_of{*this, a.in, index}, branch, call, scratch.rest(), with_what, after_relu,
                     narrow);
    };
    if constexpr (!projects && joins_gradients)
      if (!a.dx.empty()) return join(own, 0, body, left, a.dy, a.narrow.out);
    backward_child(own, child_of{*this, a.in, 0}, body, left, scratch.rest());
    view<T> more = a.dy;
    if constexpr (projects) {
      auto right =
          shares.next(projection, a.in, a.x, forgets ? view<T>{} : view<T>(shares.kept(a.out, a.narrow.out)));
      right.dy = a.dy;
      right.narrow = a.narrow;
      if constexpr (joins_gradients) {
        right.dx = a.dx;
        if (!a.dx.empty()) return join(p, 1, projection, right, left.dx, a.narrow.in);
      }
      right.dx = other.first(a.dx.size());
      backward_child(p, child_of{*this, a.in, 1}, projection, right, scratch.rest());
      more = right.dx;
    }
    if (a.dx.empty()) return;
    bfloat16_io const sides{projects ? a.narrow.in : a.narrow.out, a.narrow.in};
    if (after_relu)
      p.device.add_masked(a.dx, more, a.x, a.dx, sides);
    else
      p.device.add(activation::none, a.dx, more, a.dx, sides);
  }
};

/// Adds the body's input to its result. Their shapes must be equal.
template <class Body>
constexpr auto residual(Body body) {
  if constexpr (is_expression<Body>) {
    return residual(as_layer(body));
  } else if constexpr (layer<Body>) {
    return shortcut<Body>{body, {}};
  } else {
    detail::explain_layers<Body>();
    return no_layer{};
  }
}

/// The same if they differ: the projection maps the input to the body's shape, e.g. `residual(sequential(…),
/// conv2d{.filters = 32, .stride = 2})`.
template <class Body, class Projection>
constexpr auto residual(Body body, Projection projection) {
  if constexpr (is_expression<Body> || is_expression<Projection>) {
    return residual(as_layer(body), as_layer(projection));
  } else if constexpr (layer<Body> && layer<Projection>) {
    return shortcut<Body, Projection>{body, projection};
  } else {
    detail::explain_layers<Body, Projection>();
    return no_layer{};
  }
}

}  // namespace edl::nn

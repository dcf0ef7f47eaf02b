// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "edl/compute/nn/expression/graph.hpp"

namespace edl::nn {

namespace expression {
class scope;
}

/// An axis of a tensor and how long it is.
struct axis_length {
  axes axis{};
  int length = 1;

  constexpr operator int() const { return length; }  // NOLINT(google-explicit-constructor)
};

/// A value within the forward pass of a layer, as its `forward` is given one and returns one. Copies are
/// free: it is a number of an operation.
struct tensor {
  expression::scope* within = nullptr;
  int id = -1;

  constexpr axis_length channels() const;
  constexpr axis_length places() const;
};

namespace expression {

template <class T>
concept tensor_like = std::derived_from<T, tensor>;
template <class T>
concept number = std::integral<T> || std::floating_point<T>;
/// What an operation with two operands may have: at least one is a tensor.
template <class A, class B>
concept operands = (tensor_like<A> && (tensor_like<B> || number<B>)) || (number<A> && tensor_like<B>);

/// What the `forward` of a layer calls `layer`: it takes down the operations, and has the variables.
class scope {
 public:
  /// Of a layer that is given `in`. Without `sizes`, the form alone is of interest, and no extent is compared.
  constexpr explicit scope(shape in, bool sizes = true) : in_(in), sizes_(sizes) {
    form_.nodes.add({.what = operation::input, .over = all_axes, .index = 0});
  }

  constexpr tensor input() { return {this, 0}; }

  /// A trained variable with one number for each channel of the input, or for each of its places.
  constexpr tensor variable(std::string_view name, axis_length of, initializer const& initial) {
    return declare({name, of.axis, extents(of.length), initial}, of.length);
  }
  /// A trained variable that is one number.
  constexpr tensor variable(std::string_view name, initializer const& initial) {
    return declare({name, axes{}, extents(1), initial}, 1);
  }

  // ---- For operations ----

  constexpr tensor add(operation o, tensor a, tensor b = {}, tensor c = {}) {
    if (a.within != this || (b.id >= 0 && b.within != this) || (c.id >= 0 && c.within != this))
      throw error("edl: an operation joins tensors of two layers");
    axes over = over_of(a);
    if (b.id >= 0) over = over | over_of(b);
    if (c.id >= 0) over = over | over_of(c);
    return {this, form_.nodes.add({.what = o,
                                   .over = over,
                                   .a = std::int16_t(a.id),
                                   .b = std::int16_t(b.id),
                                   .c = std::int16_t(c.id)})};
  }
  constexpr tensor number(double value) {
    return {this, form_.nodes.add({.index = std::int16_t(form_.constants++), .value = value})};
  }
  constexpr tensor number_of_elements(axes along) {
    return {this, form_.nodes.add({.what = operation::extent, .along = along})};
  }
  constexpr tensor reduce(operation o, tensor a, axes along) {
    if (along.none() || !over_of(a).has(along))
      throw error("edl: a reduction (nn::sum, nn::mean, nn::max …) over an axis that its tensor does not have");
    return {this,
            form_.nodes.add(
                {.what = o, .over = over_of(a).without(along), .along = along, .a = std::int16_t(a.id)})};
  }
  constexpr axes over_of(tensor t) const { return form_.nodes[t.id].over; }
  constexpr shape in() const { return in_; }

  /// The whole, when `forward` has returned. Compilers evaluate operands in any order, so the nodes, constants
  /// and variables are put into the order in which the result needs them.
  constexpr form finish(tensor result) {
    if (result.within != this) throw error("edl: `forward` returns no tensor of its layer");
    if (!over_of(result).has(samples))
      throw error("edl: what `forward` returns does not depend on the input");
    // The result is an operation of its own, so that it has memory of its own.
    operation const last = form_.nodes[result.id].what;
    if (is_leaf(last) || is_reduction(last)) result = add(operation::same, result);
    form ordered;
    std::array<int, 96> moved{};
    moved.fill(-1);
    moved[0] = ordered.nodes.add(form_.nodes[0]);
    ordered.result = move(result.id, ordered, moved);
    for (int i = 0; i < form_.nodes.size; ++i) {
      if (moved[std::size_t(i)] >= 0) continue;
      if (form_.nodes[i].what == operation::variable)
        throw error("edl: a variable of `forward` is never used");
      if (!is_leaf(form_.nodes[i].what))
        throw error("edl: a tensor within `forward` is computed and never used");
    }
    return ordered;
  }

 private:
  constexpr tensor declare(declared const& v, int length) {
    for (int i = 0; i < form_.variable_count; ++i)
      if (form_.variables[std::size_t(i)].name == v.name)
        throw error("edl: a layer has two variables of one name");
    if (std::size_t(form_.variable_count) == form::most_variables)
      throw error("edl: a layer has too many variables");
    if (sizes_ && std::size_t(length) != elements_of(v.over, in_))
      throw error("edl: a variable has another length than the axis of the input that it lies along");
    form_.variables[std::size_t(form_.variable_count)] = v;
    return {this, form_.nodes.add({.what = operation::variable,
                                   .over = v.over,
                                   .index = std::int16_t(form_.variable_count++)})};
  }

  constexpr int move(int from, form& to, std::array<int, 96>& moved) {
    int& at = moved[std::size_t(from)];
    if (at >= 0) return at;
    node n = form_.nodes[from];
    for (std::int16_t* of : {&n.a, &n.b, &n.c})
      if (*of >= 0) *of = std::int16_t(move(*of, to, moved));
    if (n.what == operation::constant) n.index = std::int16_t(to.constants++);
    if (n.what == operation::variable) {
      to.variables[std::size_t(to.variable_count)] = form_.variables[std::size_t(n.index)];
      n.index = std::int16_t(to.variable_count++);
    }
    return at = to.nodes.add(n);
  }

  form form_{};
  shape in_;
  bool sizes_;
};

constexpr tensor as_tensor(scope&, tensor t) { return t; }
template <number N>
constexpr tensor as_tensor(scope& s, N n) {
  return s.number(double(n));
}

template <class A, class B>
constexpr tensor binary(operation o, A const& a, B const& b) {
  scope* of = nullptr;
  if constexpr (tensor_like<A>)
    of = a.within;
  else
    of = b.within;
  tensor const first = as_tensor(*of, a);
  return of->add(o, first, as_tensor(*of, b));
}

/// a / b. A division of each element of a row by one number is one division.
template <class A, class B>
constexpr tensor quotient(A const& a, B const& b) {
  if constexpr (tensor_like<A> && tensor_like<B>) {
    scope& of = *a.within;
    if (of.over_of(a).has(channels) && !of.over_of(b).has(channels))
      return of.add(operation::multiply, a, of.add(operation::divide, of.number(1), b));
  }
  return binary(operation::divide, a, b);
}

}  // namespace expression

constexpr axis_length tensor::channels() const {
  return {nn::channels, within->over_of(*this).has(nn::channels) ? within->in().channels : 1};
}
constexpr axis_length tensor::places() const {
  return {nn::places, within->over_of(*this).has(nn::places) ? within->in().height * within->in().width : 1};
}

}  // namespace edl::nn

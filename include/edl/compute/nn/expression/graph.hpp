// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "edl/compute/nn/expression/mistake.hpp"
#include "edl/compute/nn/initializer.hpp"
#include "edl/core/error.hpp"
#include "edl/core/shape.hpp"

namespace edl::nn {

/// Axes of a tensor in an expression. A tensor has some of them, and counts as constant along the others.
enum class axes : std::uint8_t {
  channels = 1,  ///< the last axis of a sample
  places = 2,    ///< its height and width as one
  last_axis = channels
};
using enum axes;  // enumerators, which local names may hide without a warning

constexpr axes operator|(axes a, axes b) { return axes(unsigned(a) | unsigned(b)); }
constexpr axes operator&(axes a, axes b) { return axes(unsigned(a) & unsigned(b)); }
constexpr bool has(axes all, axes some) { return (all & some) == some; }
constexpr axes without(axes all, axes some) { return axes(unsigned(all) & ~unsigned(some)); }

namespace expression {

inline constexpr axes samples{std::uint8_t(4)};
inline constexpr axes all_axes = channels | places | samples;

/// The operation of a node of an expression.
enum class operation : std::uint8_t {
  input,      ///< number `index` of the layer's inputs
  label,      ///< of a loss; 0: its labels, 1: the weights of samples; of a list: its number `index`
  slope,      ///< the gradient that the backward pass receives
  variable,   ///< number `index`
  statistic,  ///< number `index`: its running value before this pass
  constant,   ///< number `index` of the author's constants, or `value` if that is −1
  extent,     ///< number of elements of `along`
  training,   ///< 1 in training, 0 otherwise
  uniform,    ///< random numbers of stream `index`
  normal,     ///< the same, of the standard normal distribution
  position,   ///< of an element along its only axis: 0, 1, …
  same,
  add,
  subtract,
  multiply,
  divide,
  power,
  least,
  greatest,
  less,        ///< 1 or 0
  less_equal,  ///< 1 or 0
  equal,       ///< 1 or 0
  choose,      ///< b where a is not 0, otherwise c
  negate,
  exp,
  expm1,
  log,
  tanh,
  sigmoid,
  softplus,
  normal_cdf,
  normal_bell,  ///< exp(−x² / 2)
  square_root,
  absolute,
  stop,            ///< its operand, without a gradient
  cumsum,          ///< the sum of the elements up to each along `along`, which is one axis
  cumsum_back,     ///< the same from the last element
  sum,             ///< over `along`
  peak,            ///< the greatest over `along`; a NaN where one is
  peak_of_numbers  ///< the same, but it may miss a NaN: for what is one then in any case
};

/// Nodes of a forward pass and its gradient together.
inline constexpr std::size_t most_derived = 512;

constexpr bool is_leaf(operation o) { return o <= operation::position; }
constexpr bool is_random(operation o) { return o == operation::uniform || o == operation::normal; }
constexpr bool is_reduction(operation o) { return o >= operation::sum; }
constexpr bool is_peak(operation o) { return o >= operation::peak; }
/// Whether its operand must be complete along an axis before it begins.
constexpr bool is_scan(operation o) { return o == operation::cumsum || o == operation::cumsum_back; }
/// Whether it costs more than storing and loading its result.
constexpr bool is_dear(operation o) {
  return o == operation::power || (o >= operation::exp && o <= operation::square_root);
}

struct node {
  operation what = operation::constant;
  axes over{};   ///< of its value
  axes along{};  ///< of a reduction or a cumulative sum
  std::int16_t a = -1, b = -1, c = -1;
  std::int16_t index = -1;
  double value = 0;

  friend constexpr bool operator==(node const&, node const&) = default;
};

/// Nodes in an order in which each can be computed. An equal node is not added twice, except the author's
/// constants: whether two are equal does not depend on the expression's form.
template <std::size_t Most>
struct node_list {
  std::array<node, Most> all{};
  int size = 0;

  constexpr node const& operator[](int i) const { return all[std::size_t(i)]; }
  constexpr int add(node const& n) {
    bool const own = n.what == operation::constant && n.index >= 0;
    for (int i = 0; i < size && !own; ++i)
      if (all[std::size_t(i)] == n) return i;
    if (std::size_t(size) == Most) throw error("an expression has too many operations");
    all[std::size_t(size)] = n;
    return size++;
  }
};

/// A variable or a statistic of an expression.
struct declared {
  std::string_view name{};
  axes over{};
  extents dims{};
  initializer initial = constant{0};
};

/// The forward pass of a layer.
struct form {
  static constexpr std::size_t most_inputs = 8, most_variables = 8, most_statistics = 4, most_nodes = 128;

  node_list<most_nodes> nodes{};
  std::array<declared, most_variables> variables{};
  std::array<declared, most_statistics> statistics{};
  std::array<int, most_statistics> updates{};  ///< nodes: what each statistic is after a step of training
  int input_count = 1, variable_count = 0, statistic_count = 0, constants = 0, streams = 0;
  int result = -1;
  mistake wrong{};

  /// Whether both have the same operations, perhaps with other numbers.
  constexpr bool same_operations(form const& other) const {
    if (nodes.size != other.nodes.size || variable_count != other.variable_count || result != other.result ||
        updates != other.updates)
      return false;
    for (int i = 0; i < nodes.size; ++i) {
      node a = nodes[i], b = other.nodes[i];
      a.value = b.value = 0;
      if (a != b) return false;
    }
    return true;
  }
};

/// The extents of a tensor with these axes, in a layer with the input `in`.
constexpr shape extents_of(axes over, shape in) {
  return {has(over, places) ? in.height : 1, has(over, places) ? in.width : 1,
          has(over, channels) ? in.channels : 1};
}
constexpr std::size_t elements_of(axes over, shape in) { return extents_of(over, in).size(); }

}  // namespace expression
}  // namespace edl::nn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <string>

#include "edl/compute/onnx/expression.hpp"
#include "edl/core/inline.hpp"

namespace edl::onnx {
namespace detail {

/// The ONNX operator of a node, if there is one.
inline std::string_view operator_of(nn::expression::operation o) {
  using enum nn::expression::operation;
  switch (o) {
    case add:
      return "Add";
    case subtract:
      return "Sub";
    case multiply:
      return "Mul";
    case divide:
      return "Div";
    case power:
      return "Pow";
    case least:
      return "Min";
    case greatest:
      return "Max";
    case less:
      return "Less";
    case less_equal:
      return "LessOrEqual";
    case equal:
      return "Equal";
    case negate:
      return "Neg";
    case exp:
    case expm1:
      return "Exp";
    case log:
      return "Log";
    case tanh:
      return "Tanh";
    case sigmoid:
      return "Sigmoid";
    case softplus:
      return "Softplus";
    case square_root:
      return "Sqrt";
    case absolute:
      return "Abs";
    default:
      return "Identity";
  }
}

}  // namespace detail

EDL_INLINE value add_expression(graph& g, nn::expression::form const& of, std::span<value const> x,
                                shape whole) {
  using enum nn::expression::operation;
  constexpr std::int64_t floats = 1, booleans = 9;  // of TensorProto's types
  std::array<std::string, nn::expression::form::most_nodes> names;
  for (int i = 0; i <= of.result; ++i) {  // updates of statistics follow, which a prediction does not make
    auto const& n = of.nodes[i];
    auto const operand = [&](int k) { return names[std::size_t(k)]; };
    std::string& name = names[std::size_t(i)];
    switch (n.what) {
      case input:
        name = g.as(x[std::size_t(n.index)], form::places).name;
        break;
      case variable: {
        auto const& v = of.variables[std::size_t(n.index)];
        name = n.over == nn::places ? g.tensor(v.name, {v.dims.sizes[0], 1}, g.elements(v.name))
                                    : g.variable(v.name);
        break;
      }
      case statistic: {
        auto const& v = of.statistics[std::size_t(n.index)];
        name = n.over == nn::places ? g.tensor(v.name, {v.dims.sizes[0], 1}, g.elements(v.name))
                                    : g.variable(v.name);
        break;
      }
      case constant:
        name = g.number(float(n.value));
        break;
      case extent:
        name = g.number(float(nn::expression::elements_of(n.along, whole)));
        break;
      case training:
      case uniform:
      case normal:
        name = g.number(0);  // predictions are not random
        break;
      case position: {
        std::vector<float> numbers(nn::expression::elements_of(n.over, whole));
        std::iota(numbers.begin(), numbers.end(), 0.0f);
        auto const size = std::int64_t(numbers.size());
        bool const down = n.over == nn::places;
        name = g.tensor(down ? "positions/places" : "positions/channels",
                        down ? std::vector<std::int64_t>{size, 1} : std::vector{size}, numbers);
        break;
      }
      case choose:
        name =
            g.add("Where", {g.add("Cast", {operand(n.a)}, {{"to", booleans}}), operand(n.b), operand(n.c)});
        break;
      case normal_cdf: {
        std::string const erf = g.add("Erf", {g.add("Mul", {operand(n.a), g.number(0.70710678f)})});
        name = g.add("Mul", {g.add("Add", {erf, g.number(1)}), g.number(0.5f)});
        break;
      }
      case normal_bell: {
        std::string const square = g.add("Mul", {operand(n.a), operand(n.a)});
        name = g.add("Exp", {g.add("Mul", {square, g.number(-0.5f)})});
        break;
      }
      case cumsum:
        name = g.add("CumSum",
                     {operand(n.a), g.add("Squeeze", {g.numbers({n.along == nn::channels ? -1 : -2})})});
        break;
      case sum:
      case peak:
      case peak_of_numbers: {
        std::vector<std::int64_t> along;
        if (has(n.along, nn::places)) along.push_back(1);
        if (has(n.along, nn::channels)) along.push_back(2);
        name = n.what == sum ? g.add("ReduceSum", {operand(n.a), g.numbers(along)})
                             : g.add("ReduceMax", {operand(n.a)}, {{"axes", along}});
        break;
      }
      default: {
        std::vector<std::string> operands{operand(n.a)};
        if (n.b >= 0) operands.push_back(operand(n.b));
        name = g.add(detail::operator_of(n.what), operands);
        if (n.what == less || n.what == less_equal || n.what == equal)
          name = g.add("Cast", {name}, {{"to", floats}});
        if (n.what == expm1) name = g.add("Sub", {name, g.number(1)});
      }
    }
  }
  auto const last = std::size_t(of.result);
  return {names[last], nn::expression::extents_of(of.nodes.all[last].over, whole), form::places};
}

}  // namespace edl::onnx

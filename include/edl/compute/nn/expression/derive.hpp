// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "edl/compute/nn/expression/graph.hpp"

namespace edl::nn::expression {

/// The nodes of a forward pass, followed by those of its gradient.
struct derivative {
  node_list<most_derived> nodes{};
  int forward = 0;  ///< number of nodes of the forward pass
  int mean = -1;    ///< the mean of a loss over all samples
  /// The gradients: each is another node.
  std::array<int, form::most_inputs> inputs{};
  std::array<int, form::most_variables> variables{};
};

/// Derives a forward pass, from its end.
class deriver {
 public:
  /// For a loss, the slope is that of the mean over all samples.
  constexpr explicit deriver(form const& of, bool loss = false) {
    for (int i = 0; i < of.nodes.size; ++i) {
      d_.nodes.all[std::size_t(i)] = of.nodes[i];
      slopes_[std::size_t(i)] = -1;
    }
    d_.nodes.size = d_.forward = of.nodes.size;
    int const all = put({.what = operation::extent, .along = samples});
    slopes_[std::size_t(of.result)] =
        loss ? over_by(literal(1), all)
             : put({.what = operation::slope, .over = of.nodes[of.result].over, .index = 0});
    if (loss) d_.mean = make(operation::divide, total(of.result), all);
    d_.inputs.fill(-1);
    d_.variables.fill(-1);
    find_factor(of);
    for (int i = of.nodes.size; i-- > 0;) {
      int const slope = slopes_[std::size_t(i)];
      if (slope < 0) continue;
      node const n = d_.nodes[i];
      if (n.what == operation::input)
        d_.inputs[std::size_t(n.index)] = own(slope, n.over);
      else if (n.what == operation::variable)
        d_.variables[std::size_t(n.index)] = own(slope, n.over);
      else
        pass_on(i, n, slope);
    }
    for (int i = 0; i < d_.forward; ++i) {  // variables without a gradient get zeros
      node const n = d_.nodes[i];
      if (n.what != operation::input && n.what != operation::variable) continue;
      auto const which = std::size_t(n.index);
      int& gradient = n.what == operation::input ? d_.inputs[which] : d_.variables[which];
      if (gradient < 0) gradient = own(literal(0), n.over);
    }
  }

  constexpr derivative const& result() const { return d_; }

 private:
  constexpr int put(node const& n) { return d_.nodes.add(n); }
  constexpr int value(int i) const { return i == dear_ ? instead_ : i; }
  constexpr int literal(double value) { return put({.value = value}); }
  constexpr axes over(int i) const { return i < 0 ? axes{} : d_.nodes[i].over; }
  constexpr int make(operation o, int a, int b = -1, int c = -1) {
    return put({.what = o,
                .over = over(a) | over(b) | over(c),
                .a = std::int16_t(a),
                .b = std::int16_t(b),
                .c = std::int16_t(c)});
  }
  constexpr int times(int a, int b) { return make(operation::multiply, a, b); }
  constexpr int minus(int a, int b) { return make(operation::subtract, a, b); }
  /// A division of each element of a row by one number is one division.
  constexpr int over_by(int a, int b) {
    if (has(over(a), channels) && !has(over(b), channels))
      return times(a, make(operation::divide, literal(1), b));
    return make(operation::divide, a, b);
  }
  constexpr int choose(int a, int b, int c) { return make(operation::choose, a, b, c); }
  constexpr int less(int a, int b) { return make(operation::less, a, b); }
  constexpr int negative(int a) { return make(operation::negate, a); }
  constexpr int sum(int a, axes along) {
    if (along == axes{}) return a;
    return put(
        {.what = operation::sum, .over = without(over(a), along), .along = along, .a = std::int16_t(a)});
  }
  /// The exponentials of a softmax are computed from the stored result, by the sum that divided them. This
  /// holds only where the factor cannot be 0. So the dividend must be the 1 of `quotient`, not an option, and
  /// the exponentials those of differences from the row's greatest, so that their sum is from 1 to their
  /// number.
  constexpr void find_factor(form const& of) {
    node const n = of.nodes[of.result];
    if (n.what != operation::multiply) return;
    auto const at = [&](int i) { return i < 0 ? node{} : of.nodes[i]; };
    node const e = at(n.a), by = at(n.b), one = at(by.a), all = at(by.b);
    node const off = at(e.a), stop = at(off.b), most = at(stop.a);
    if (e.what == operation::exp && off.what == operation::subtract && stop.what == operation::stop &&
        is_peak(most.what) && most.a == off.a && by.what == operation::divide &&
        one.what == operation::constant && one.index < 0 && all.what == operation::sum && all.a == n.a &&
        all.along == most.along) {
      dear_ = n.a;
      instead_ = times(of.result, by.b);
    }
  }

  /// The sum over all samples; common factors and divisors are applied after the sum.
  constexpr int total(int of) {
    node const n = d_.nodes[of];
    if ((n.what == operation::divide || n.what == operation::multiply) && is_number(n.b))
      return make(n.what, total(n.a), n.b);
    if (n.what == operation::same) return total(n.a);
    if (n.what == operation::sum) return sum(n.a, n.along | samples);
    return sum(of, samples);
  }

  /// Gives a gradient its own memory, with all axes of its variable.
  constexpr int own(int i, axes of) {
    node const n = d_.nodes[i];
    if (is_leaf(n.what) || is_reduction(n.what) || n.over != of) i = copy(i, of);
    auto const is = [&](int gradient) { return gradient == i; };
    while (std::ranges::any_of(d_.inputs, is) || std::ranges::any_of(d_.variables, is)) i = copy(i, of);
    return i;
  }
  constexpr int copy(int i, axes of) {
    return put({.what = operation::same, .over = of, .a = std::int16_t(i)});
  }

  /// Adds to the gradient of node `to`. `slope` is the contribution of each element of a tensor over `full`.
  constexpr void send(int to, int slope, axes full) {
    operation const leaf = d_.nodes[to].what;
    if (is_leaf(leaf) && leaf != operation::input && leaf != operation::variable) return;
    axes const spread = without(full, over(to));  // the operand was broadcast along these
    axes const even = without(spread, over(slope));
    if (even != axes{}) slope = times(slope, put({.what = operation::extent, .along = even}));
    slope = sum(slope, spread & over(slope));
    int& all = slopes_[std::size_t(to)];
    all = all < 0 ? slope : make(operation::add, all, slope);
  }

  constexpr void pass_on(int y, node const& n, int slope) {
    axes const all = n.over;
    int const a = n.a, b = n.b, c = n.c, none = literal(0);
    switch (n.what) {
      case operation::same:
        return send(a, slope, all);
      case operation::add:
        return send(a, slope, all), send(b, slope, all);
      case operation::subtract:
        return send(a, slope, all), send(b, negative(slope), all);
      case operation::multiply:
        return send(a, times(slope, value(b)), all), send(b, times(slope, value(a)), all);
      case operation::divide: {
        int const by = over_by(slope, b);
        send(a, by, all);
        if (is_number(b)) return;
        return send(b, negative(times(by, y)), all);
      }
      case operation::power:
        send(a,  // 0 where b is: aᵇ⁻¹ may be infinite there
             choose(b, times(times(slope, b), make(operation::power, a, minus(b, literal(1)))), none), all);
        if (is_number(b)) return;
        return send(b, choose(less(none, a), times(times(slope, y), make(operation::log, a)), none), all);
      case operation::least:
        return share(n, slope, less(a, b), less(b, a));
      case operation::greatest:
        return share(n, slope, less(b, a), less(a, b));
      case operation::choose:
        return send(b, choose(a, slope, none), all), send(c, choose(a, none, slope), all);
      case operation::negate:
        return send(a, negative(slope), all);
      case operation::exp:
        return send(a, times(slope, value(y)), all);
      case operation::expm1:
        return send(a, times(slope, make(operation::add, y, literal(1))), all);
      case operation::log:
        return send(a, over_by(slope, a), all);
      case operation::tanh:
        return send(a, times(slope, minus(literal(1), times(y, y))), all);
      case operation::sigmoid:
        return send(a, times(slope, times(y, minus(literal(1), y))), all);
      case operation::softplus:
        return send(a, times(slope, make(operation::sigmoid, a)), all);
      case operation::normal_cdf: {
        int const bell = make(operation::normal_bell, a);
        return send(a, times(slope, times(literal(0.3989422804014327), bell)), all);  // 1 / √(2π)
      }
      case operation::square_root:
        return send(a, over_by(times(slope, literal(0.5)), y), all);
      case operation::absolute:  // what is neither above nor below 0 is its own gradient: 0 or a NaN
        return send(a, choose(less(none, a), slope, choose(less(a, none), negative(slope), a)), all);
      case operation::sum:
        return send(a, slope, over(a));
      case operation::cumsum: {
        if (over(slope) != all) slope = put({.what = operation::same, .over = all, .a = std::int16_t(slope)});
        node const back{
            .what = operation::cumsum_back, .over = all, .along = n.along, .a = std::int16_t(slope)};
        return send(a, put(back), all);
      }
      case operation::peak:
      case operation::peak_of_numbers: {
        int const is = make(operation::equal, a, y);
        return send(a, times(is, over_by(slope, sum(is, n.along))), over(a));
      }
      default:
        return;  // comparisons and `stop`
    }
  }

  /// Sends the gradient to the operand that is the result, or half to each.
  constexpr void share(node const& n, int slope, int first, int second) {
    int const none = literal(0), half = times(slope, literal(0.5));
    send(n.a, choose(first, slope, choose(second, none, half)), n.over);
    send(n.b, choose(second, slope, choose(first, none, half)), n.over);
  }
  constexpr bool is_number(int i) const {
    operation const o = d_.nodes[i].what;
    return o == operation::constant || o == operation::extent || o == operation::training;
  }

  derivative d_{};
  std::array<int, most_derived> slopes_{};
  int dear_ = -1, instead_ = -1;
};

}  // namespace edl::nn::expression

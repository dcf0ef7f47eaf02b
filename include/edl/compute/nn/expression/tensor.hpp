// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "edl/compute/nn/expression/graph.hpp"

namespace edl::nn {

namespace expression {
class scope;
}

/// An axis of a tensor and its length.
struct axis_length {
  axes axis{};
  int length = 1;
  expression::scope* within = nullptr;

  constexpr operator int() const { return length; }  // NOLINT(google-explicit-constructor)

  // Without a tensor they are numbers.
  friend constexpr int operator+(axis_length a, axis_length b) { return a.length + b.length; }
  friend constexpr int operator-(axis_length a, axis_length b) { return a.length - b.length; }
  friend constexpr int operator*(axis_length a, axis_length b) { return a.length * b.length; }
  friend constexpr int operator/(axis_length a, axis_length b) { return a.length / b.length; }
  friend constexpr int operator-(axis_length a) { return -a.length; }
  friend constexpr auto operator<=>(axis_length a, axis_length b) { return a.length <=> b.length; }
};

namespace expression {
/// A number in brackets behind a tensor, with its line.
struct index_at {
  int line;

  template <std::integral N>
  constexpr index_at(N, source_line at = {}) : line(at.number) {}  // NOLINT(google-explicit-constructor)
};
}  // namespace expression

/// A value in the forward pass of a layer: the argument and the result of its `forward`. Copies are free: it
/// is the number of an operation.
struct tensor {
  expression::scope* within = nullptr;
  int id = -1;

  constexpr axis_length channels() const;
  constexpr axis_length places() const;

  /// A mistake.
  constexpr tensor operator[](expression::index_at i) const;
  /// A mistake: in `if`, `?:`, `&&` and the like.
  template <std::same_as<bool> T>
  constexpr explicit operator T() const;
};

namespace expression {

template <class T>
concept tensor_like = std::derived_from<T, tensor>;
template <class T>
concept number = std::integral<T> || std::floating_point<T> || std::same_as<T, axis_length>;
/// Valid operands of a binary operation: at least one is a tensor.
template <class A, class B>
concept operands = (tensor_like<A> && (tensor_like<B> || number<B>)) || (number<A> && tensor_like<B>);

/// The argument `layer` of a layer's `forward`: it records the operations and the variables, and the first
/// mistake.
class scope {
 public:
  /// For a layer with the input `in`. Without `sizes`, it records only the form, and compares no extents.
  constexpr explicit scope(shape in, bool sizes = true) : scope(in, std::span(&all_axes, 1), sizes) {}
  /// For several inputs with these axes of `in`.
  constexpr scope(shape in, std::span<axes const> inputs, bool sizes) : in_(in), sizes_(sizes) {
    form_.input_count = int(inputs.size());
    form_.updates.fill(-1);
    for (int i = 0; i < form_.input_count; ++i)
      form_.nodes.add(
          {.what = operation::input, .over = inputs[std::size_t(i)] | samples, .index = std::int16_t(i)});
  }

  constexpr tensor input(std::size_t which = 0) { return {this, int(which)}; }
  /// For a loss: a label for each output, or with `samples` one for each sample, which is one of a list.
  constexpr tensor label(axes over = all_axes, std::size_t which = 0) {
    return put({.what = operation::label, .over = over, .index = std::int16_t(which)}, 0);
  }

  /// For a loss of classes: the weight of each sample.
  constexpr tensor weight() { return put({.what = operation::label, .over = samples, .index = 1}, 0); }

  /// A trained variable with one number for each channel of the input, or for each of its places.
  constexpr tensor variable(std::string_view name, axis_length of, initializer const& initial,
                            source_line line = {}) {
    if (sizes_ && std::size_t(of.length) != elements_of(of.axis, in_))
      fail({mistake_kind::length_of_variable, line.number, {1, 1, of.length}, extents_of(of.axis, in_)});
    return declare({name, of.axis, extents(of.length), initial}, line.number);
  }
  /// A trained variable that is one number.
  constexpr tensor variable(std::string_view name, initializer const& initial, source_line line = {}) {
    return declare({name, axes{}, extents(1), initial}, line.number);
  }

  template <class... Given>
  static constexpr bool declares =
      std::is_invocable_v<void (*)(std::string_view, axis_length, initializer), Given...> ||
      std::is_invocable_v<void (*)(std::string_view, initializer), Given...>;
  /// A mistake.
  template <class... Given>
    requires(!declares<Given...>)
  constexpr tensor variable(Given const&...) {
    fail({mistake_kind::arguments_of_variable, 0, {}, {}});
    return input();
  }

  /// 1 in training, 0 in evaluation and prediction: `nn::where(layer.training(), …, x)`.
  constexpr tensor training() { return put({.what = operation::training}, 0); }
  /// Random numbers in [0, 1), independent for each sample and along these axes. They are a function of
  /// (seed, layer, step, element), and 0 outside of training. A layer that draws them uses `training()`.
  constexpr tensor random_uniform(axes over = channels | places, source_line line = {}) {
    return draw(operation::uniform, over, line.number);
  }
  /// The same from the normal distribution with mean 0 and variance 1.
  constexpr tensor random_normal(axes over = channels | places, source_line line = {}) {
    return draw(operation::normal, over, line.number);
  }
  /// A variable that is not trained, with one number for each channel of the input, or for each of its
  /// places. All samples of a pass see its running value from before the pass. It is stored, and merged
  /// between workers, as the running mean of a `batch_norm` is. Each statistic needs one `update`.
  constexpr tensor statistic(std::string_view name, axis_length of, initializer const& initial,
                             source_line line = {}) {
    if (sizes_ && std::size_t(of.length) != elements_of(of.axis, in_))
      fail({mistake_kind::length_of_variable, line.number, {1, 1, of.length}, extents_of(of.axis, in_)});
    return declare({name, of.axis, extents(of.length), initial}, line.number, operation::statistic);
  }
  /// The same with one number.
  constexpr tensor statistic(std::string_view name, initializer const& initial, source_line line = {}) {
    return declare({name, axes{}, extents(1), initial}, line.number, operation::statistic);
  }
  /// A mistake.
  template <class... Given>
    requires(!declares<Given...>)
  constexpr tensor statistic(Given const&...) {
    fail({mistake_kind::arguments_of_variable, 0, {}, {}});
    return input();
  }
  /// After a step of training the statistic is `momentum` · statistic + (1 − `momentum`) · mean. The mean of
  /// `value` is over all samples of the minibatch, and over the axes that the statistic lacks. It has no
  /// gradient.
  constexpr void update(tensor statistic, tensor value, double momentum, source_line line = {}) {
    node const n = statistic.within == this ? form_.nodes[statistic.id] : node{};
    bool const right = n.what == operation::statistic && value.within == this &&
                       has(over_of(value), samples) && momentum >= 0 && momentum <= 1;
    if (!right || form_.updates[std::size_t(n.index)] >= 0) {
      fail({right ? mistake_kind::statistic_updated_twice : mistake_kind::update_of_statistic,
            line.number,
            {},
            {}});
      return;
    }
    axes const along = without(over_of(value), n.over);
    tensor const total = put({.what = operation::sum,
                              .over = without(over_of(value), along),
                              .along = along,
                              .a = std::int16_t(value.id)},
                             line.number);
    tensor const mean = add(operation::divide, line.number, total, number_of_elements(along));
    form_.updates[std::size_t(n.index)] =
        add(operation::add, line.number, add(operation::multiply, line.number, statistic, number(momentum)),
            add(operation::multiply, line.number, mean, number(1 - momentum)))
            .id;
  }

  // ---- For operations ----

  constexpr void fail(mistake const& m) {
    if (form_.wrong.none()) form_.wrong = m;
  }
  constexpr void refuse_condition(tensor t) {
    fail({mistake_kind::tensor_for_condition, lines_[std::size_t(t.id)], {}, {}});
  }
  constexpr tensor add(operation o, int line, tensor a, tensor b = {}, tensor c = {}) {
    for (tensor* of : {&a, &b, &c})
      if (of->within != this && (of->id >= 0 || of == &a)) {
        fail({mistake_kind::tensor_of_another_layer, caller_ > 0 ? caller_ : line, {}, {}});
        *of = input();
      }
    axes over = over_of(a);
    if (b.id >= 0) over = over | over_of(b);
    if (c.id >= 0) over = over | over_of(c);
    return put(
        {.what = o, .over = over, .a = std::int16_t(a.id), .b = std::int16_t(b.id), .c = std::int16_t(c.id)},
        line);
  }
  constexpr tensor number(double value) {
    return put({.index = std::int16_t(form_.constants++), .value = value}, 0);
  }
  /// 1, which no option is.
  constexpr tensor one() { return put({.value = 1}, 0); }
  constexpr tensor number_of_elements(axes along) {
    return put({.what = operation::extent, .along = along}, 0);
  }
  constexpr tensor positions(axes along, int line) {
    if (along != channels && along != places) fail({mistake_kind::axes_of_positions, line, {}, {}});
    return put({.what = operation::position, .over = along}, line);
  }
  constexpr tensor reduce(operation o, tensor a, axes along, int line) {
    if (along == axes{} || !has(over_of(a), along)) {
      fail({mistake_kind::axis_of_reduction, caller_ > 0 ? caller_ : line, extents_of(over_of(a), in_), {}});
      return a;
    }
    return put({.what = o, .over = without(over_of(a), along), .along = along, .a = std::int16_t(a.id)},
               line);
  }
  constexpr tensor accumulate(tensor a, axes along, int line) {
    if ((along != channels && along != places) || !has(over_of(a), along)) {
      fail({mistake_kind::axis_of_cumsum, caller_ > 0 ? caller_ : line, extents_of(over_of(a), in_), {}});
      return a;
    }
    return put({.what = operation::cumsum, .over = over_of(a), .along = along, .a = std::int16_t(a.id)},
               line);
  }
  constexpr axes over_of(tensor t) const { return form_.nodes[t.id].over; }
  constexpr shape in() const { return in_; }

  /// The complete form, when `forward` has returned. Compilers evaluate operands in any order, so this puts
  /// the nodes, constants and variables into the order in which the result needs them.
  constexpr form finish(tensor result, bool loss = false) {
    if (result.within != this) {
      fail({mistake_kind::tensor_of_another_layer, 0, {}, {}});
      result = input();
    }
    if (loss && over_of(result) != samples) fail({mistake_kind::loss_is_no_number, 0, {}, {}});
    if (!has(over_of(result), samples)) fail({mistake_kind::result_without_input, 0, {}, {}});
    if (random_line_ > 0 && !asks_training())
      fail({mistake_kind::random_outside_training, random_line_, {}, {}});
    // The result is a separate operation, so that it has its own memory.
    operation const last = form_.nodes[result.id].what;
    if (is_leaf(last) || is_reduction(last)) result = add(operation::same, 0, result);
    form ordered;
    std::array<int, form::most_nodes> moved{};
    moved.fill(-1);
    ordered.input_count = form_.input_count;
    for (int i = 0; i < form_.input_count; ++i) moved[std::size_t(i)] = ordered.nodes.add(form_.nodes[i]);
    ordered.updates.fill(-1);
    ordered.result = move(result.id, ordered, moved);
    for (int n = -1; n < ordered.statistic_count;) {  // an update may need another statistic
      n = ordered.statistic_count;
      for (int i = 0; i < form_.nodes.size; ++i)
        if (int const at = moved[std::size_t(i)]; at >= 0 && form_.nodes[i].what == operation::statistic) {
          int const next = form_.updates[std::size_t(form_.nodes[i].index)];
          if (next < 0)
            fail({mistake_kind::statistic_without_update, lines_[std::size_t(i)], {}, {}});
          else
            ordered.updates[std::size_t(ordered.nodes[at].index)] = move(next, ordered, moved);
        }
    }
    for (int i = 0; i < form_.input_count && form_.input_count > 1; ++i)
      if (!reads(ordered, i)) fail({mistake_kind::unused_input, 0, {}, {}});
    for (bool const statistics : {true, false})  // before what updates them
      for (int i = form_.nodes.size; i-- > 0;) {
        if (moved[std::size_t(i)] >= 0) continue;
        operation const o = form_.nodes[i].what;
        if (statistics != (o == operation::statistic)) continue;
        if (o == operation::variable || statistics)
          fail({mistake_kind::unused_variable, lines_[std::size_t(i)], {}, {}});
        if (!is_leaf(o)) fail({mistake_kind::unused_tensor, lines_[std::size_t(i)], {}, {}});
      }
    ordered.wrong = form_.wrong;
    return ordered;
  }

 private:
  constexpr tensor put(node const& n, int line) {
    if (std::size_t(form_.nodes.size) == form::most_nodes) {
      fail({mistake_kind::too_large, line, {}, {}});
      return input();
    }
    if (int const at = caller_ != 0 ? caller_ : line; at < 0) fail({mistake_kind::axes_in_turn, -at, {}, {}});
    tensor const t{this, form_.nodes.add(n)};
    if (lines_[std::size_t(t.id)] == 0) lines_[std::size_t(t.id)] = caller_ > 0 ? caller_ : line;
    return t;
  }
  constexpr tensor draw(operation o, axes over, int line) {
    random_line_ = line;
    return put({.what = o, .over = over | samples, .index = std::int16_t(form_.streams++)}, line);
  }
  constexpr bool asks_training() const {
    for (int i = 0; i < form_.nodes.size; ++i)
      if (form_.nodes[i].what == operation::training) return true;
    return false;
  }
  constexpr tensor declare(declared const& v, int line, operation what = operation::variable) {
    bool const trained = what == operation::variable;
    std::span<declared> const variables = form_.variables, statistics = form_.statistics;
    for (auto const all : {variables.first(std::size_t(form_.variable_count)),
                           statistics.first(std::size_t(form_.statistic_count))})
      for (declared const& other : all)
        if (other.name == v.name) fail({mistake_kind::name_of_variable, line, {}, {}});
    int& count = trained ? form_.variable_count : form_.statistic_count;
    auto const own = trained ? variables : statistics;
    if (std::size_t(count) == own.size()) {
      fail({mistake_kind::too_large, line, {}, {}});
      return input();
    }
    own[std::size_t(count)] = v;
    return put({.what = what, .over = v.over, .index = std::int16_t(count++)}, line);
  }
  static constexpr bool reads(form const& f, int of) {
    for (int i = f.input_count; i < f.nodes.size; ++i)
      if (node const& n = f.nodes[i]; n.a == of || n.b == of || n.c == of) return true;
    return false;
  }
  constexpr int move(int from, form& to, std::array<int, form::most_nodes>& moved) {
    int& at = moved[std::size_t(from)];
    if (at >= 0) return at;
    node n = form_.nodes[from];
    for (std::int16_t* of : {&n.a, &n.b, &n.c})
      if (*of >= 0) *of = std::int16_t(move(*of, to, moved));
    if (n.what == operation::constant && n.index >= 0) n.index = std::int16_t(to.constants++);
    if (is_random(n.what)) n.index = std::int16_t(to.streams++);
    if (n.what == operation::variable) {
      to.variables[std::size_t(to.variable_count)] = form_.variables[std::size_t(n.index)];
      n.index = std::int16_t(to.variable_count++);
    }
    if (n.what == operation::statistic) {
      to.statistics[std::size_t(to.statistic_count)] = form_.statistics[std::size_t(n.index)];
      n.index = std::int16_t(to.statistic_count++);
    }
    return at = to.nodes.add(n);
  }

  friend class written_at;

  form form_{};
  std::array<int, form::most_nodes> lines_{};  ///< of the author's file, where they are known
  int caller_ = 0;                             ///< the line of `written_at`
  int random_line_ = 0;                        ///< of random numbers
  shape in_;
  bool sizes_;
};

/// While it exists, all operations are those of this line, which calls a function of several.
class written_at {
 public:
  constexpr written_at(tensor of, source_line line) : scope_(*of.within), before_(scope_.caller_) {
    if (before_ == 0) scope_.caller_ = line.number;
  }
  constexpr ~written_at() { scope_.caller_ = before_; }
  written_at(written_at const&) = delete;
  written_at& operator=(written_at const&) = delete;

 private:
  scope& scope_;
  int before_;
};

}  // namespace expression

template <std::same_as<bool> T>
constexpr tensor::operator T() const {
  within->refuse_condition(*this);
  return true;
}
constexpr tensor tensor::operator[](expression::index_at i) const {
  within->fail({expression::mistake_kind::index_of_tensor, i.line, {}, {}});
  return *this;
}
constexpr axis_length tensor::channels() const {
  return {nn::channels, has(within->over_of(*this), nn::channels) ? within->in().channels : 1, within};
}
constexpr axis_length tensor::places() const {
  bool const has_places = has(within->over_of(*this), nn::places);
  return {nn::places, has_places ? within->in().height * within->in().width : 1, within};
}

}  // namespace edl::nn

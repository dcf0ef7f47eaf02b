// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "edl/compute/device/geometry.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"
#include "import/formula.hpp"
#include "import/lifting.hpp"
#include "import/view.hpp"

namespace edl::tool::lifting {

using onnx_file::node;
using onnx_file::numbers;
using onnx_file::tensor;
using constant = std::shared_ptr<tensor const>;

/// Why a node has no layer.
struct unsupported {
  std::string why;
};

inline std::int64_t product(numbers const& of) {
  return std::accumulate(of.begin(), of.end(), std::int64_t(1), std::multiplies<>());
}

/// A tensor of the graph: a constant, or a term with its axes.
struct value {
  constant known{};
  int term = -1;
  view as{};
};

/// The tensor with its axes in another order.
tensor turned(tensor const& t, numbers const& order);

class lifter {
 public:
  lifter(onnx_file::network const& graph, std::map<std::string, std::int64_t> const& extents)
      : graph_(graph), extents_(extents) {}

  network run() {
    for (auto const& [name, t] : graph_.constants)
      values_[name] = {.known = std::shared_ptr<tensor const>(std::shared_ptr<void>(), &t)};
    for (node const& n : graph_.nodes)
      for (std::string const& i : n.inputs) ++uses_[i];
    for (auto const& o : graph_.outputs) ++uses_[o.name];
    for (auto const& p : graph_.inputs) input(p);
    for (node const& n : graph_.nodes) {
      if (n.outputs.empty()) continue;
      std::vector<value> made;
      try {
        made = layers_of(n);
      } catch (unsupported const& no) {
        made.assign(n.outputs.size(), placeholder(n, no.why));
      }
      for (std::size_t i = 0; i < n.outputs.size() && i < made.size(); ++i) {
        values_[n.outputs[i]] = made[i];
        if (made[i].term >= 0 && uses_[n.outputs[i]] > 1) terms_[made[i].term].shared = true;
      }
    }
    outputs();
    return std::move(net_);
  }

 private:
  // ---- Results ----

  int add(result r) {
    bool const fits = r.out.height > 0 && r.out.width > 0 && r.out.channels > 0 &&
                      std::int64_t(r.out.height) * r.out.width <= (std::int64_t(1) << 31) / r.out.channels;
    if (!fits)
      throw unsupported{fmt::format("extents ({}, {}, {})", r.out.height, r.out.width, r.out.channels)};
    net_.results.push_back(std::move(r));
    return int(net_.results.size()) - 1;
  }
  shape shape_of(int r) const { return net_.results[std::size_t(r)].out; }
  int layer(int from, std::string type, std::vector<std::string> options, shape out, std::string name = {},
            std::vector<variable> variables = {}) {
    return add({.type = std::move(type),
                .options = std::move(options),
                .from = {from},
                .out = out,
                .name = std::move(name),
                .variables = std::move(variables)});
  }
  int joint(std::string type, std::vector<int> from, shape out, std::vector<std::string> options = {}) {
    return add({.what = result::kind::joint,
                .type = std::move(type),
                .options = std::move(options),
                .from = std::move(from),
                .out = out});
  }

  // ---- Values ----

  /// Extents as ints; a size that no sample has is refused where the result is added.
  static int small(std::int64_t n) { return n > 0 && n < std::int64_t(1) << 31 ? int(n) : 0; }

  value of_result(int r, view as) { return {.term = terms_.leaf(r, shape_of(r)), .as = std::move(as)}; }
  /// In the order of the axes.
  value of_result(int r, numbers const& dims) { return of_result(r, in_order(dims)); }
  value picture(int r, std::size_t rank) { return of_result(r, channels_first(shape_of(r), rank)); }

  value const& operand(node const& n, std::size_t i) const {
    static value const none;
    return i < n.inputs.size() && !n.inputs[i].empty() ? values_.at(n.inputs[i]) : none;
  }
  value const& variable_operand(node const& n, std::size_t i) const {
    value const& x = operand(n, i);
    if (x.term < 0) throw unsupported{fmt::format("operand {}, which is a constant or none", i)};
    return x;
  }
  tensor const& known(node const& n, std::size_t i) const {
    value const& x = operand(n, i);
    if (!x.known) throw unsupported{fmt::format("operand {}, which is no constant of the file", i)};
    return *x.known;
  }
  bool has(node const& n, std::size_t i) const { return operand(n, i).known || operand(n, i).term >= 0; }
  std::vector<float> floats(node const& n, std::size_t i, std::size_t size) const {
    auto const& t = known(n, i);
    if (t.floats.size() != size)
      throw unsupported{fmt::format("operand {}, which has not {} numbers", i, size)};
    return t.floats;
  }
  /// A list that is an attribute, or in later versions of ONNX an operand.
  numbers list(node const& n, std::string const& attribute, std::size_t i) const {
    if (n.find(attribute)) return n.list(attribute);
    return has(n, i) ? known(n, i).ints : numbers{};
  }
  std::size_t axis_of(std::int64_t axis, std::size_t rank) const {
    if (axis < 0) axis += std::int64_t(rank);
    if (axis < 1 || axis >= std::int64_t(rank)) throw unsupported{fmt::format("axis {}", axis)};
    return std::size_t(axis) - 1;
  }
  std::size_t axis_of(std::int64_t axis, value const& x) const { return axis_of(axis, x.as.axes.size() + 1); }

  // ---- From terms to results ----

  /// The result with these extents.
  int shaped(int r, shape s) {
    if (shape_of(r) == s) return r;
    if (s.height == 1 && s.width == 1) return layer(r, "nn::flatten", {}, s);
    std::vector<std::string> options;
    if (s.height != 1) options.push_back(fmt::format(".height = {}", s.height));
    if (s.width != 1) options.push_back(fmt::format(".width = {}", s.width));
    options.push_back(fmt::format(".channels = {}", s.channels));
    return layer(r, "nn::reshape", std::move(options), s);
  }
  /// The result whose elements lie in this order of the value's axes.
  int ordered(value const& x, std::vector<std::size_t> const& axes) {
    view v{x.as.sizes, {}};
    for (std::size_t const a : axes) v.axes.push_back(x.as.axes[a]);
    int const r = materialise(x.term);
    auto order = v.order();
    if (std::ranges::is_sorted(order)) return r;
    int const cut = order[0];
    std::ranges::rotate(order, std::ranges::find(order, 0));
    if (!std::ranges::is_sorted(order)) throw unsupported{"an order of axes that edl's layers do not have"};
    std::int64_t before = 1;
    for (int i = 0; i < cut; ++i) before *= v.sizes[std::size_t(i)];
    int const a = small(before), b = small(v.size() / before);
    shape const s = shape_of(r);
    int const from = s.channels == b ? r : shaped(r, {1, a, b});
    return layer(from, "nn::transpose", {}, {1, b, a});
  }
  static std::vector<std::size_t> all_axes(value const& x) {
    std::vector<std::size_t> all(x.as.axes.size());
    std::iota(all.begin(), all.end(), std::size_t(0));
    return all;
  }
  /// The result with the last axis as channels, and the others as places.
  int places(value const& x) {
    auto const dims = x.as.dims();
    int const c = dims.empty() ? 1 : small(dims.back()), rest = small(product(dims)) / std::max(c, 1);
    int const r = ordered(x, all_axes(x));
    return shape_of(r).channels == c
               ? r
               : shaped(r, dims.size() == 3 ? shape{small(dims[0]), small(dims[1]), c} : shape{1, rest, c});
  }
  int row(value const& x) {
    int const r = ordered(x, all_axes(x));
    return shaped(r, {1, 1, int(shape_of(r).size())});
  }
  /// A picture whose first axis is the channels.
  int picture_of(value const& x) {
    auto const dims = x.as.dims();
    if (dims.size() != 2 && dims.size() != 3)
      throw unsupported{fmt::format("a tensor of {} axes, where a picture has 4", dims.size() + 1)};
    auto axes = all_axes(x);
    std::ranges::rotate(axes, axes.begin() + 1);
    return shaped(ordered(x, axes),
                  {dims.size() == 2 ? 1 : small(dims[1]), small(dims.back()), small(dims[0])});
  }
  int materialise(int term) {
    if (auto const found = made_.find(term); found != made_.end()) return found->second;
    return made_[term] = build(term);
  }

  int build(int index) {
    term const t = terms_[index];
    if (t.op == "result") return t.result;
    static std::map<std::string, char const*> const layers{{"relu", "relu"}, {"sigmoid", "sigmoid"},
                                                           {"tanh", "tanh"}, {"softplus", "softplus"},
                                                           {"gelu", "gelu"}, {"silu", "silu"}};
    if (auto const found = layers.find(t.op); found != layers.end()) {
      int const x = materialise(t.args[0]);
      return layer(x, fmt::format("nn::{}", found->second), {}, shape_of(x));
    }
    bool const two = t.args.size() == 2 && (t.op == "+" || t.op == "*");
    auto const full = [&](int k) {
      term const& a = terms_[k];
      return a.op != "number" && a.op != "variable" && a.over == t.over && a.whole == t.whole;
    };
    if (two && full(t.args[0]) && full(t.args[1])) {
      int const a = materialise(t.args[0]), b = materialise(t.args[1]);
      if (shape_of(a) == shape_of(b)) return joint(t.op, {a, b}, shape_of(a));
    }
    for (int const k : {0, 1})
      if (two && full(t.args[std::size_t(k)])) {
        term const& other = terms_[t.args[std::size_t(1 - k)]];
        if (t.op == "*" && other.op == "number") {
          int const x = materialise(t.args[std::size_t(k)]);
          return layer(x, "nn::scale", {".factor = " + literal(float(other.number))}, shape_of(x));
        }
        if (t.op == "+" && other.op == "variable" && other.over == both) {
          int const x = materialise(t.args[std::size_t(k)]);
          shape const s = shape_of(x);
          return layer(x, "nn::positions", {}, s, "positions",
                       {{"rows", {s.height * s.width, s.channels}, other.values}});
        }
      }
    return formula_of(index);
  }

  /// Whether containers and layers of edl compute it, without a formula.
  bool is_plain(int index) const {
    term const& t = terms_[index];
    if (t.op == "result" || t.op == "relu" || t.op == "sigmoid" || t.op == "tanh" || t.op == "gelu" ||
        t.op == "silu")
      return true;
    return (t.op == "+" || t.op == "*") && std::ranges::all_of(t.args, [&](int a) {
             return terms_[a].over == t.over && terms_[a].op != "number" && terms_[a].op != "variable";
           });
  }

  int formula_of(int root) {
    // What other nodes read too, and layers compute, is a result of its own.
    std::map<int, int> leaves;
    auto const collect = [&](auto const& self, int k) -> void {
      term const t = terms_[k];
      if (t.op == "result" || (k != root && t.shared && is_plain(k))) {
        leaves[k] = materialise(k);
        return;
      }
      for (int const a : t.args) self(self, a);
    };
    collect(collect, root);
    term const t = terms_[root];
    formula f;
    try {
      f = write_formula(terms_, root, leaves, net_.formulas);
    } catch (std::string const& why) {
      throw unsupported{why};
    }
    shape const out = terms_.shape_of(root);
    if (f.from.empty() || f.from.size() > 8)
      throw unsupported{"a formula of constants, or of more than 8 results"};
    std::vector<std::string> options;
    if (f.from.size() == 1 && shape_of(f.from[0]) == t.whole)
      return layer(f.from[0], f.name, {}, out, f.name, std::move(f.variables));
    int const r = joint("nn::apply", f.from, out, {f.name + "{}"});
    net_.results.back().name = f.name;
    net_.results.back().variables = std::move(f.variables);
    return r;
  }

  // ---- The graph's ends ----

  void input(onnx_file::port const& p) {
    std::string const name = printable(p.name, 100);
    numbers dims;
    for (std::size_t i = 1; i < p.dims.size(); ++i) {
      std::int64_t d = p.dims[i];
      auto const given = extents_.find(p.named[i]);
      if (d < 1 && given != extents_.end()) d = given->second;
      if (d < 1 || d > std::int64_t(1) << 31)
        throw error(fmt::format(
            "input '{}' has an extent '{}' that the file does not know: give it, for example by "
            "--extent={}=128",
            name, printable(p.named[i], 50), p.named[i].empty() ? "NAME" : printable(p.named[i], 50)));
      dims.push_back(d);
    }
    if (dims.size() > 3) throw error(fmt::format("input '{}' has more than 4 axes", name));
    bool first = graph_.producer != "edl" && (dims.size() == 3 || dims.size() == 2), convolves = false;
    for (node const& n : graph_.nodes)
      if (!n.inputs.empty() && n.inputs[0] == p.name) {
        if (n.op == "Transpose" && n.list("perm") == numbers{0, 3, 1, 2}) first = false;
        convolves = convolves || n.op == "Conv";
      }
    first = first && (dims.size() == 3 || convolves);
    shape s{1, 1, 1};
    if (dims.size() == 1) s.channels = small(dims[0]);
    if (dims.size() == 2)
      s = first ? shape{1, small(dims[1]), small(dims[0])} : shape{1, small(dims[0]), small(dims[1])};
    if (dims.size() == 3)
      s = first ? shape{small(dims[1]), small(dims[2]), small(dims[0])}
                : shape{small(dims[0]), small(dims[1]), small(dims[2])};
    std::string const kind =
        p.ids             ? fmt::format("nn::ids{{.count = {}}}", s.size())
        : dims.size() < 2 ? fmt::format("nn::features{{.count = {}}}", s.channels)
        : s.height == 1   ? fmt::format("nn::image{{.width = {}, .channels = {}}}", s.width, s.channels)
                          : fmt::format("nn::image{{.height = {}, .width = {}, .channels = {}}}", s.height,
                                        s.width, s.channels);
    int const r = add({.what = result::kind::input, .type = p.name, .options = {kind}, .from = {}, .out = s});
    values_[p.name] = of_result(r, first ? channels_first(s, dims.size()) : in_order(dims));
  }

  void outputs() {
    std::vector<int> all;
    std::vector<std::pair<std::string, int>> heads;
    for (auto const& o : graph_.outputs) {
      value const& x = values_.at(o.name);
      if (x.term < 0) throw error(fmt::format("output '{}' is a constant", printable(o.name, 200)));
      bool const rows = graph_.outputs.size() > 1;
      try {
        bool const ready =
            x.as.axes.size() == 3 && x.as.is_channels(0, shape_of(materialise(x.term)).channels);
        int const r = ready && !rows ? materialise(x.term) : rows ? row(x) : places(x);
        all.push_back(r);
        heads.emplace_back(o.name, int(shape_of(r).size()));
      } catch (unsupported const& no) {
        net_.problems.push_back(fmt::format("the output '{}': {}", printable(o.name, 200), no.why));
        all.push_back(materialise(x.term));
      }
    }
    net_.output = all[0];
    if (all.size() > 1) {
      net_.output = beside(all);
      net_.heads = std::move(heads);
    }
    net_.ends_in_softmax = net_.results[std::size_t(net_.output)].type == "nn::softmax";
  }

  /// Channels one after the other. Neighbouring slices of one result are a slice, or all of it.
  int beside(std::vector<int> from) {
    shape out = shape_of(from[0]);
    out.channels = 0;
    for (int const r : from) out.channels += shape_of(r).channels;
    auto const& first = net_.results[std::size_t(from[0])];
    if (std::ranges::all_of(from, [&](int r) {
          auto const& s = net_.results[std::size_t(r)];
          return s.type == "nn::slice" && s.from == first.from && slices_.contains(r);
        })) {
      int next = 0;
      for (int const r : from) next = slices_[r] == next ? next + shape_of(r).channels : -1;
      if (next == shape_of(first.from[0]).channels) return first.from[0];
    }
    return joint("nn::concat", std::move(from), out);
  }

  value placeholder(node const& n, std::string const& why) {
    std::string name = n.op;
    for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? char(std::tolower(c)) : '_';
    name = fmt::format("unknown_{}_{}", name, net_.problems.size() + 1);
    net_.problems.push_back(
        fmt::format("`{}`: node '{}' ({}): {}", name, printable(n.name, 200), printable(n.op, 50), why));
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      if (value const& x = operand(n, i); x.term >= 0) {
        int from = 0;
        try {
          from = materialise(x.term);
        } catch (unsupported const&) {
          continue;
        }
        return of_result(layer(from, name, {}, shape_of(from), name), x.as);
      }
    return of_result(layer(0, name, {}, shape_of(0), name), in_order({std::int64_t(shape_of(0).size())}));
  }

  // ---- Nodes ----

  std::vector<value> layers_of(node const& n);
  value dense(value const& x, tensor const& kernel, std::vector<float> const& bias);
  value convolution(node const& n);
  value transposed_convolution(node const& n);
  value pool(node const& n, bool greatest);
  value batch_norm(node const& n);
  value layer_norm(node const& n);
  value arithmetic(node const& n, std::string const& op);
  value arithmetic(value a, value b, std::string const& op);
  value reduce(node const& n, std::string const& op);
  value product_of(node const& n);
  value gather(node const& n);
  value joined(node const& n);
  value reshape(value const& x, numbers dims);
  value unary(value const& x, std::string op);
  value function(value const& x, std::string layer, std::vector<std::string> options);
  std::vector<value> split(node const& n);
  value cut(value const& x, std::size_t axis, std::int64_t first, std::int64_t count);
  bool is_gelu(term const& product);
  int constant_term(tensor const& t, value& with);
  bool add_bias(value const& x, tensor const& bias);
  std::string padding_of(node const& n, shape in, extent window, extent stride, extent& out) const;
  std::vector<value> folded(node const& n);

  onnx_file::network const& graph_;
  std::map<std::string, std::int64_t> const& extents_;
  std::map<std::string, value> values_;
  std::map<std::string, int> uses_;
  network net_;
  term_list terms_;
  std::map<int, int> made_;    // results of terms
  std::map<int, int> slices_;  // the first channel of each
  int gelu_of_ = -1;
};

}  // namespace edl::tool::lifting

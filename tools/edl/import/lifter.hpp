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
#include <utility>
#include <vector>

#include "edl/compute/device/geometry.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"
#include "import/formula.hpp"
#include "import/lifting.hpp"
#include "import/view.hpp"

namespace edl::tool::lifting {

using onnx_file::attribute;
using onnx_file::node;
using onnx_file::numbers;
using onnx_file::tensor;
using constant = std::shared_ptr<tensor const>;

inline std::int64_t product(numbers const& of) {
  return std::accumulate(of.begin(), of.end(), std::int64_t(1), std::multiplies<>());
}

/// A tensor of the graph: a constant, or a term with its axes.
struct value {
  constant known{};
  int term = -1;
  view as{};
};

/// Whether these are all numbers from 0 on, each once.
inline bool is_permutation(numbers order) {
  std::ranges::sort(order);
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] != std::int64_t(i)) return false;
  return true;
}

/// The tensor with its axes in another order.
tensor turned(tensor const& t, numbers const& order);

class lifter {
 public:
  lifter(onnx_file::network const& graph, std::map<std::string, std::int64_t> const& extents)
      : graph_(graph), extents_(extents) {}

  network run();

 private:
  // ---- Results ----

  int add(result r);
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
  /// A constant that is no list of whole numbers.
  tensor const& kernel(node const& n, std::size_t i) const {
    tensor const& t = known(n, i);
    if (t.of_ints || t.floats.empty()) throw unsupported{fmt::format("operand {}, which has no floats", i)};
    return t;
  }
  /// Counts numbers that are made of constants: they may not be many times those of the file.
  void spend(std::size_t n) {
    if (n > room_) throw unsupported{"constants that grow too large"};
    room_ -= n;
  }
  int add_term(term t);
  bool has(node const& n, std::size_t i) const { return operand(n, i).known || operand(n, i).term >= 0; }
  std::vector<float> floats(node const& n, std::size_t i, std::size_t size) const {
    auto const& t = known(n, i);
    if (t.floats.size() != size)
      throw unsupported{fmt::format("operand {}, which has not {} numbers", i, size)};
    return t.floats;
  }
  /// A list that is an attribute, or in later versions of ONNX an operand.
  numbers list(node const& n, std::string const& attribute, std::size_t i) const;
  std::size_t axis_of(std::int64_t axis, std::size_t rank) const {
    if (axis < 0) axis += std::int64_t(rank);
    if (axis < 1 || axis >= std::int64_t(rank)) throw unsupported{fmt::format("axis {}", axis)};
    return std::size_t(axis) - 1;
  }
  std::size_t axis_of(std::int64_t axis, value const& x) const { return axis_of(axis, x.as.axes.size() + 1); }

  // ---- From terms to results ----

  /// The result with these extents.
  int shaped(int r, shape s);
  /// The result whose elements lie in this order of the value's axes.
  int ordered(value const& x, std::vector<std::size_t> const& axes);
  static std::vector<std::size_t> all_axes(value const& x) {
    std::vector<std::size_t> all(x.as.axes.size());
    std::iota(all.begin(), all.end(), std::size_t(0));
    return all;
  }
  /// The result with the last axis as channels, and the others as places.
  int places(value const& x);
  int row(value const& x) {
    int const r = ordered(x, all_axes(x));
    return shaped(r, {1, 1, int(shape_of(r).size())});
  }
  /// A picture whose first axis is the channels.
  int picture_of(value const& x);
  int materialise(int term) {
    if (auto const found = made_.find(term); found != made_.end()) return found->second;
    return made_[term] = build(term);
  }

  int build(int index);

  /// Whether containers and layers of edl compute it, without a formula.
  bool is_plain(int index) const;

  int formula_of(int root);

  // ---- The graph's ends ----

  void input(onnx_file::port const& p);

  void outputs();

  /// Channels one after the other. Neighbouring slices of one result are a slice, or all of it.
  int beside(std::vector<int> from);

  value placeholder(node const& n, std::string const& why);

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
  struct problem {
    int result;  // that it stands in the place of
    std::string text;
  };
  std::vector<problem> problems_;
  std::map<int, std::vector<int>> lost_;  // of what stands in a node's place: terms that the node reads
  /// Attention over several heads, as far as it is known: its terms have no other meaning.
  struct attention_part {
    value query, key;
    float scale = 1;
    bool causal = false, normal = false;  // normal: behind the softmax
  };
  struct attention_heads {
    attention_part weights;
    value data;
  };
  struct rotation {
    float base = 0;
    bool interleaved = false;
  };
  /// A linear map of a result's channels.
  struct linear {
    int from = -1, inputs = 0;
    std::vector<float> kernel, bias;  // of `width` columns
    int width = 0;
    float scale = 1;
    rotation turn;
  };
  node const* maker(std::string const& value, std::string const& op) const;
  linear linear_of(value const& x) const;
  bool attend(value& made, value const& a, value const& b, std::string const& op);
  value attended(value const& weights, value const& data);
  int attention_of(int context, tensor const& kernel, std::vector<float> const& bias);
  bool rotate(node const& n, value& made);
  bool choose(node const& n, value const& x, tensor const& at, value& made);

  std::vector<value> recurrent(node const& n);
  value state_of(node const& n, value const& x);
  bool sum_of_rows(node const& n, value& made);
  bool products_of_pairs(node const& n, value& made);

  std::size_t room_ = std::size_t(1) << 24;
  std::map<int, int> nested_;  // by result: how many joints lie in each other
  std::map<int, int> steps_;   // by term: how many lie in each other that are no result
  /// By term, of results of recurrent layers: the axes in ONNX, of steps, directions (one: d, both: b),
  /// samples n and units.
  std::map<int, std::string> states_;
  std::map<int, attention_part> scores_;     // by term
  std::map<int, attention_heads> contexts_;  // by result
  std::map<int, rotation> rotations_;        // by term
  std::map<std::string, node const*> makers_;
  term_list terms_;
  std::map<int, int> made_;    // results of terms
  std::map<int, int> slices_;  // the first channel of each
  int gelu_of_ = -1;
};

}  // namespace edl::tool::lifting

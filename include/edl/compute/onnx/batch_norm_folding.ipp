// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "edl/compute/onnx/batch_norm_folding.hpp"
#include "edl/core/inline.hpp"

namespace edl::onnx {

/// A graph's nodes, indexed for folding.
struct folding {
  using node = graph::node;
  using stored = graph::stored;

  /// The axis of the channels in a tensor that is traced backwards: after the samples, last, or both.
  enum class channels { second, last, alone };

  graph& g;

  std::size_t readers(std::string_view name) const {
    std::size_t n = 0;
    for (node const& one : g.nodes_) n += std::size_t(std::ranges::count(one.inputs, name));
    return n;
  }
  std::optional<std::size_t> maker(std::string_view name) const {
    for (std::size_t i = 0; i < g.nodes_.size(); ++i)
      if (std::ranges::find(g.nodes_[i].outputs, name) != g.nodes_[i].outputs.end()) return i;
    return std::nullopt;
  }
  stored const* find(std::string_view name) const {
    auto const found = std::ranges::find(g.stored_, name, &stored::name);
    return found == g.stored_.end() ? nullptr : &*found;
  }
  template <class T>
  static std::vector<T> elements(stored const& s) {
    std::vector<T> all;
    s.each([&](bytes some) {
      std::size_t const before = all.size();
      all.resize(before + some.size() / sizeof(T));
      std::memcpy(all.data() + before, some.data(), some.size());
    });
    return all;
  }

  /// The layer's name for a node, or for a tensor that is an input.
  static std::string layer_of(std::string_view tensor) {
    auto const end = tensor.rfind('/');
    return std::string(end == tensor.npos ? tensor : tensor.substr(0, end));
  }

  /// The axis of the channels before a node that only moves elements; none: any other node, or one that may
  /// mix channels.
  std::optional<channels> before(node const& n, channels now, std::int64_t count) const {
    using order = std::vector<std::int64_t>;
    if (n.order == order{0, 3, 1, 2} && now == channels::second) return channels::last;
    if (n.order == order{0, 2, 3, 1} && now == channels::last) return channels::second;
    if (n.op != "Reshape") return std::nullopt;
    stored const* const to = find(n.inputs[1]);
    if (!to || !to->ids) return std::nullopt;
    auto const dims = elements<std::int64_t>(*to);
    if (dims.size() < 2 || dims[0] != 0 ||
        std::ranges::any_of(dims.begin() + 1, dims.end(), [](auto d) { return d < 1; }))
      return std::nullopt;
    auto const size = std::accumulate(dims.begin() + 1, dims.end(), std::int64_t(1), std::multiplies<>());
    if (size == count) return channels::alone;
    if (now == channels::last && dims.back() == count) return channels::last;
    return std::nullopt;
  }

  /// A node that computes a sum of products for each channel, and its operands.
  struct linear {
    std::size_t product;             // the node
    std::optional<std::size_t> sum;  // that adds the bias, if it is another one
    std::size_t axis;                // of the kernel: the channels
  };

  std::optional<linear> linear_at(std::size_t at, channels where, std::int64_t count) const {
    node const& n = g.nodes_[at];
    auto const kernel = [&](node const& of, std::size_t axis) {
      stored const* const k = of.inputs.size() > 1 ? find(of.inputs[1]) : nullptr;
      return k && !k->ids && k->dims.size() > axis && k->dims[axis] == count;
    };
    auto const bias = [&](std::string const& name) {
      stored const* const b = find(name);
      return b && !b->ids && b->dims == std::vector<std::int64_t>{count};
    };
    bool const own_bias = n.inputs.size() < 3 || bias(n.inputs[2]);
    if (n.op == "Conv" && where != channels::last && own_bias && kernel(n, 0)) return linear{at, {}, 0};
    if (n.op == "ConvTranspose" && where != channels::last && own_bias && kernel(n, 1))
      return linear{at, {}, 1};
    if (std::size_t const axis = n.turned ? 0 : 1; n.op == "Gemm" && own_bias && kernel(n, axis))
      return linear{at, {}, axis};
    if (where == channels::second) return std::nullopt;
    if (n.op == "MatMul" && kernel(n, 1) && find(n.inputs[1])->dims.size() == 2) return linear{at, {}, 1};
    if (n.op != "Add" || !bias(n.inputs[1]) || readers(n.inputs[0]) != 1) return std::nullopt;
    auto const product = maker(n.inputs[0]);
    if (!product || g.nodes_[*product].op != "MatMul") return std::nullopt;
    auto found = linear_at(*product, where, count);
    if (found) found->sum = at;
    return found;
  }

  /// Replaces a tensor by another one, and removes the old one if no other node reads it.
  std::string replace(std::string const& old, std::string const& name, std::vector<std::int64_t> dims,
                      std::vector<float> of) {
    if (readers(old) == 1) {
      std::erase_if(g.stored_, [&](stored const& s) { return s.name == old; });
      g.taken_.erase(old);
    }
    auto const all = std::make_shared<std::vector<float> const>(std::move(of));
    g.stored_.push_back({.name = g.unique(name.ends_with("_folded") ? name : name + "_folded"),
                         .dims = std::move(dims),
                         .bytes = all->size() * sizeof(float),
                         .each = [all](auto const& to) { to(std::as_bytes(std::span(*all))); }});
    return g.stored_.back().name;
  }

  void fold(linear const& l, graph::channel_scale const& s) {
    std::string const kernel = g.nodes_[l.product].inputs[1];
    stored const& k = *find(kernel);
    std::vector<std::int64_t> const dims = k.dims;
    std::size_t inner = 1;
    for (std::size_t i = l.axis + 1; i < dims.size(); ++i) inner *= std::size_t(dims[i]);
    std::size_t const count = s.factor.size();
    auto weights = elements<float>(k);
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i] = float(double(weights[i]) * s.factor[i / inner % count]);

    node& adds = g.nodes_[l.sum.value_or(l.product)];
    std::size_t const place = l.sum ? 1 : 2;
    std::string const old = adds.inputs.size() > place ? adds.inputs[place] : "";
    std::vector<float> bias(count);
    if (!old.empty()) bias = elements<float>(*find(old));
    for (std::size_t i = 0; i < count; ++i) bias[i] = float(double(bias[i]) * s.factor[i] + s.shift[i]);

    std::string const name = old.empty() ? layer_of(kernel) + "/bias" : old;
    std::string const shift = replace(old, name, {std::int64_t(count)}, std::move(bias));
    g.nodes_[l.product].inputs[1] = replace(kernel, kernel, dims, std::move(weights));
    if (!old.empty()) {
      adds.inputs[place] = shift;
    } else if (adds.op != "MatMul") {
      adds.inputs.push_back(shift);
    } else {
      std::string const product = adds.outputs[0], sum = g.unique(layer_of(product) + "/Add");
      for (node& n : g.nodes_) std::ranges::replace(n.inputs, product, sum);
      g.nodes_.insert(g.nodes_.begin() + std::ptrdiff_t(l.product) + 1,
                      {.op = "Add", .inputs = {product, shift}, .outputs = {sum}, .rest = {}});
    }
  }

  std::vector<std::string> in_order() const {
    std::vector<std::string> all;
    for (node const& n : g.nodes_)
      if (g.scales_.contains(n.outputs[0])) all.push_back(n.outputs[0]);
    return all;
  }

  /// Folds into the node that produces `output`, or returns why it cannot.
  std::string try_fold(std::string const& output) {
    graph::channel_scale const& s = g.scales_.at(output);
    std::size_t const at = *maker(output);
    auto const count = std::int64_t(s.factor.size());
    channels where = channels::second;
    std::string from = g.nodes_[at].inputs[0];
    std::optional<linear> found;
    while (true) {
      if (readers(from) > 1) return "other nodes read its input, too";
      auto const made = maker(from);
      if (!made) return "it is the first layer";
      found = linear_at(*made, where, count);
      if (found) break;
      node const& n = g.nodes_[*made];
      auto const next = before(n, where, count);
      if (!next) return fmt::format("behind '{}', no convolution or dense layer", layer_of(from));
      where = *next;
      from = n.inputs[0];
    }
    std::string const source = g.nodes_[at].inputs[0];
    std::vector<std::string> const own(g.nodes_[at].inputs.begin() + 1, g.nodes_[at].inputs.end());
    g.nodes_.erase(g.nodes_.begin() + std::ptrdiff_t(at));
    for (node& n : g.nodes_) std::ranges::replace(n.inputs, output, source);
    for (std::string const& tensor : own)
      if (readers(tensor) == 0) std::erase_if(g.stored_, [&](stored const& t) { return t.name == tensor; });
    fold(*found, s);  // which comes before the removed node
    return {};
  }
};

EDL_INLINE folded_layers fold_batch_norms(graph& g) {
  folding f{g};
  folded_layers all;
  for (std::string const& output : f.in_order()) {
    std::string const layer = folding::layer_of(output), why = f.try_fold(output);
    if (why.empty())
      all.gone.push_back(layer);
    else
      all.stay.push_back(fmt::format("'{}' ({})", layer, why));
  }
  return all;
}

}  // namespace edl::onnx

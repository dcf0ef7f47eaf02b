// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/layer/attention.hpp"
#include "edl/compute/nn/layer/dense.hpp"
#include "edl/compute/nn/layer/graph_joint.hpp"
#include "edl/compute/nn/layer/graph_of.hpp"
#include "edl/compute/nn/literal.hpp"

namespace edl::nn {

/// What the heads of a `cross_attention` give, of queries (h, w, c) and of keys and values (k places, 2 · c).
struct attention_of_two {
  attention of{};

  static constexpr std::string_view name = "cross_attention";
  static constexpr bool joins = true, portable = false;
  static constexpr bool reads_operands = true, reads_y = true, overwrites_dy = false, mixes_places = true;

  constexpr shape output(std::span<shape const> in, expression::mistake& wrong) const {
    using enum expression::mistake_kind;
    shape const memory{in[1].height, in[1].width, in[1].channels / 2};
    if (of.orders_places() || of.key_value_heads > 0 || of.softcap != 0 || of.qk_norm || of.heads < 1 ||
        !of.dropout.is_in(0, 1))
      wrong = {option_of_cross_attention, 0, in[0], memory};
    else if (memory.channels != in[0].channels || memory.channels % of.heads != 0)
      wrong = {shapes_of_attention, 0, in[0], memory};
    return in[0];
  }
  /// The logarithms of the softmax's sums.
  constexpr std::size_t saved(std::span<shape const> in, std::size_t batch) const {
    return batch * std::size_t(of.heads) * std::size_t(in[0].height * in[0].width);
  }
  /// The gradients of both, which are computed together.
  constexpr std::size_t scratch(std::span<shape const> in, std::size_t batch) const {
    return rounded(batch * in[0].size()) + rounded(batch * in[1].size());
  }

  template <class D, class T>
  void forward(pass<D>& p, joint_args<T> const& a, std::span<T> y) const {
    p.device.cross_attention_forward(geometry(a), int(a.batch), mask_of(p), a.x[0], a.x[1], y, a.saved);
  }
  template <class D, class T>
  void backward(pass<D>& p, joint_args<T> const& a, view<T> y, view<T> dy, std::size_t i,
                std::span<T> dx) const {
    carver scratch(p.scratch);
    auto const queries = scratch.aligned(a.batch * a.in[0].size()),
               memory = scratch.aligned(a.batch * a.in[1].size());
    if (i == 0)
      p.device.cross_attention_backward(geometry(a), int(a.batch), mask_of(p), a.x[0], a.x[1], y, dy, a.saved,
                                        queries, memory);
    if (!dx.empty()) p.device.copy(i == 0 ? queries : memory, dx);
  }

 private:
  template <class T>
  cross_attention_geometry geometry(joint_args<T> const& a) const {
    return {a.in[0].height * a.in[0].width, a.in[1].height * a.in[1].width, of.heads,
            a.in[0].channels / of.heads};
  }
  template <class D>
  attention_mask mask_of(pass<D> const& p) const {
    bool const drops = p.mode == mode::training;
    return {{}, drops ? of.dropout.resolve(p.set, "the dropout of an attention", 0, 1) : 0, p.random};
  }
};

/// A dense layer of each place with `Times` as many units as it is given channels. `Name` is its own.
template <literal Name, int Times>
struct projection {
  bool use_bias = true;
  initializer kernel_initializer = glorot_uniform{};

  static constexpr std::string_view name = Name.view();
  static constexpr bool each_place = true, portable = true, reads_y = false;

  constexpr dense of(shape in) const {
    return {.units = Times * in.channels,
            .each_place = true,
            .use_bias = use_bias,
            .kernel_initializer = kernel_initializer};
  }
  constexpr fit check(shape in) const { return of(in).check(in); }
  constexpr shape output(shape in) const { return of(in).output(in); }
  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    of(in).variables(in, visit);
  }
  constexpr bfloat16_io narrows(shape in) const { return of(in).narrows(in); }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    of(a.in).forward(p, a);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    of(a.in).backward(p, a);
  }
};

/// Within the function of a graph: attention whose queries are linear in `x`, and whose keys and values are
/// linear in `memory`. Each place of x asks all of memory, as in `attention`, whose options are those of this
/// one. It has no `causal`, `rotary` and `window`, as places of one are not before those of the other, and no
/// `key_value_heads`, `softcap` and `qk_norm`. Both results have as many channels; the shape of x stays. The
/// variables are called `cross_attention/query/kernel`, `…/key_value/kernel` and `…/output/kernel`, with
/// biases. It runs on the processor, and knows no padding.
template <class Queries, class Memory>
constexpr auto cross_attention(Queries const& x, Memory const& memory, attention const& o = {},
                               expression::source_line line = {}) {
  if constexpr (detail::are_results<Queries, Memory>())
    return detail::join_by(
               line.number, attention_of_two{o},
               x | projection<"cross_attention/query", 1>{o.use_bias, o.kernel_initializer},
               memory | projection<"cross_attention/key_value", 2>{o.use_bias, o.kernel_initializer}) |
           projection<"cross_attention/output", 1>{o.use_bias && o.output_bias, o.kernel_initializer};
  else
    return x;
}

}  // namespace edl::nn

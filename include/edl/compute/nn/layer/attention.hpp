// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/geometry.hpp"
#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// Self-attention of several heads (Vaswani et al., "Attention is all you need", 2017). Each place of a
/// sample attends to all places, or with `causal` to itself and those before it. Queries, keys and values are
/// linear in x; of each, a head has width = c / heads channels. y = concat(softmax(q · k' / √width) · v) · W
/// + b, over the heads. With `rotary`, queries and keys are rotated by an angle that grows with the place (Su
/// et al., "RoFormer", 2021). Pairs are channels i and i + width / 2 of a head. The shape stays; (h, w, c) is
/// h · w places. In training, `dropout` sets that share of the weights, the softmax's outputs, to zero, and
/// divides the others by the remaining share. The choice is a function of (seed, layer, step, sample, head,
/// places).
///
/// It stores no matrix of places by places: it computes scores block by block, and again in the backward pass
/// (Dao et al., "FlashAttention", 2022). Threads share the heads of samples. One thread computes each head,
/// in one order, so that these results are bitwise equal for any number of threads. It runs on the processor.
struct attention {
  int heads = 1;
  bool causal = false;
  bool rotary = false;
  float rotary_base = 10'000;
  setting dropout = 0.0f;  ///< in [0, 1)
  bool use_bias = true;
  initializer kernel_initializer = glorot_uniform{};

  static constexpr std::string_view name = "attention";
  static constexpr bool reads_y = false, knows_padding = true;

  constexpr fit check(shape in) const {
    if (heads < 1 || in.channels % heads != 0 || !dropout.is_in(0, 1)) return fit::option_out_of_range;
    bool const turns = !rotary || (in.channels / heads % 2 == 0 && rotary_base > 0);
    return turns ? fit::fits : fit::option_out_of_range;
  }
  constexpr shape output(shape in) const { return in; }
  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    int const c = in.channels;
    visit(variable_spec{"query_key_value_kernel", {c, 3 * c}, kernel_initializer});
    if (use_bias) visit(variable_spec{"query_key_value_bias", {3 * c}, constant{0}});
    visit(variable_spec{"output_kernel", {c, c}, kernel_initializer});
    if (use_bias) visit(variable_spec{"output_bias", {c}, constant{0}});
  }
  /// It decodes if no place sees later ones. For each place the cache keeps keys and values.
  constexpr bool decodes() const { return causal; }
  constexpr std::size_t cached(shape in) const { return 2 * std::size_t(in.channels); }

  /// Queries, keys and values, the heads' results, and the logarithms of the softmax's sums.
  constexpr std::size_t saved(shape in, pass_size batch) const {
    std::size_t const n = std::size_t(batch) * in.size();
    return rounded(3 * n) + rounded(n) + sums(in, batch);
  }
  /// The gradient of the heads' results.
  constexpr std::size_t scratch(shape in, pass_size batch) const { return std::size_t(batch) * in.size(); }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    auto const c = std::size_t(a.in.channels), rows = a.x.size() / c;
    parts w(*this, c, a.parameters);
    kept s(*this, a);
    p.device.dense_forward(rows, c, 3 * c, activation::none, a.x, w.kernel, w.bias, s.qkv);
    if (p.decoding)
      p.device.cached_attention_forward(geometry(a.in, p.decoding->places), p.decoding->rows, s.qkv,
                                        p.decoding->next(cached(a.in)), s.heads);
    else if (auto const mask = mask_of(p, a.in); mask.none())
      p.device.attention_forward(geometry(a.in), a.batch, s.qkv, s.heads, s.sums);
    else
      p.device.masked_attention_forward(geometry(a.in), a.batch, mask, s.qkv, s.heads, s.sums);
    p.device.dense_forward(rows, c, c, activation::none, s.heads, w.output_kernel, w.output_bias, a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    auto const c = std::size_t(a.in.channels), rows = a.x.size() / c;
    parts w(*this, c, a.parameters);
    parts d(*this, c, a.gradients);
    kept s(*this, a);
    auto const dheads = p.scratch.first(a.x.size());
    p.device.dense_backward(rows, c, c, s.heads, w.output_kernel, a.dy, dheads, d.output_kernel,
                            d.output_bias);
    if (auto const mask = mask_of(p, a.in); mask.none())
      p.device.attention_backward(geometry(a.in), a.batch, s.heads, dheads, s.sums, s.qkv);
    else
      p.device.masked_attention_backward(geometry(a.in), a.batch, mask, s.heads, dheads, s.sums, s.qkv);
    p.device.dense_backward(rows, c, 3 * c, a.x, w.kernel, s.qkv, a.dx, d.kernel, d.bias);
  }

  constexpr attention_geometry geometry(shape in) const { return geometry(in, in.height * in.width); }

 private:
  constexpr attention_geometry geometry(shape in, int places) const {
    return {places, heads, in.channels / heads, causal, rotary ? rotary_base : 0};
  }
  template <class D>
  attention_mask mask_of(pass<D> const& p, shape in) const {
    bool const drops = p.mode == mode::training;
    return {p.places_of(in), drops ? dropout.resolve(p.set, "the dropout of an attention", 0, 1) : 0,
            p.random};
  }
  constexpr std::size_t sums(shape in, pass_size batch) const {
    return std::size_t(batch) * std::size_t(heads) * std::size_t(in.height * in.width);
  }

  /// The variables, or their gradients.
  template <class Span>
  struct parts {
    Span kernel, bias, output_kernel, output_bias;

    parts(attention const& of, std::size_t c, Span all) {
      carver next(all);
      kernel = next.next(3 * c * c);
      bias = next.next(of.use_bias ? 3 * c : 0);
      output_kernel = next.next(c * c);
      output_bias = next.rest();
    }
  };

  /// The saved values.
  template <class T>
  struct kept {
    std::span<T> qkv, heads, sums;

    template <class Args>
    kept(attention const& of, Args const& a) {
      carver next(a.saved);
      qkv = next.aligned(3 * a.x.size());
      heads = next.aligned(a.x.size());
      sums = next.next(of.sums(a.in, a.batch));
    }
  };
  template <class Args>
  kept(attention const&, Args const&) -> kept<typename decltype(Args::saved)::value_type>;
};

}  // namespace edl::nn

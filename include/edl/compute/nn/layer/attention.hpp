// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>

#include "edl/compute/device/geometry.hpp"
#include "edl/compute/nn/adaptable.hpp"
#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// Self-attention of several heads (Vaswani et al., "Attention is all you need", 2017). Each place of a
/// sample attends to all places, or with `causal` to itself and those before it. Queries, keys and values are
/// linear in x; of each, a head has width = c / heads channels. y = concat(softmax(q · k' / √width) · v) · W
/// + b, over the heads. With `rotary`, queries and keys are rotated by an angle that grows with the place (Su
/// et al., "RoFormer", 2021). Pairs are channels i and i + width / 2 of a head, or with `interleaved` 2i and
/// 2i + 1, as in that paper. The shape stays; (h, w, c) is h · w places.
///
/// With `window` a place sees that many places, of which it is the last (Jiang et al., "Mistral 7B", 2023);
/// padding does not count. With `softcap` a score s is softcap · tanh(s / softcap) (Gemma Team, "Gemma 2",
/// 2024). With `qk_norm` each head's query and key are divided by the root of their mean square, and
/// multiplied by trained factors for their channels, before they are rotated (Dehghani et al., "Scaling
/// vision transformers to 22 billion parameters", 2023; as in Qwen3). In training, `dropout` sets that share
/// of the weights, the softmax's outputs, to zero, and divides the others by the remaining share. The choice
/// is a function of (seed, layer, step, sample, head, places). With `key_value_heads`, groups of heads share
/// that many heads of keys and values (Ainslie et al., "GQA", 2023). The kernel's columns are all queries,
/// then these keys, then these values.
///
/// It stores no matrix of places by places: it computes scores block by block, and again in the backward pass
/// (Dao et al., "FlashAttention", 2022). Threads share the heads of samples. One thread computes each head,
/// in one order, so that these results are bitwise equal for any number of threads. It runs on the processor.
struct attention {
  int heads = 1;
  int key_value_heads = 0;  ///< 0: as many as `heads`; otherwise a divisor of it
  bool causal = false;
  bool rotary = false;
  float rotary_base = 10'000;
  rotary_scaling scaling{};  ///< of `rotary`
  bool interleaved = false;  ///< pairs of `rotary`
  int window = 0;            ///< with `causal`; 0: all places before
  float softcap = 0;         ///< 0: none
  bool qk_norm = false;
  float norm_epsilon = 1e-6f;  ///< of `qk_norm`: is added to the mean square
  setting dropout = 0.0f;      ///< in [0, 1)
  bool use_bias = true;        ///< of queries, keys and values, and of the result
  bool output_bias = true;     ///< of the result, with `use_bias`
  initializer kernel_initializer = glorot_uniform{};

  static constexpr std::string_view name = "attention";
  static constexpr bool reads_y = false, knows_padding = true, skips_gradients = true;

  constexpr fit check(shape in) const {
    if (heads < 1 || in.channels % heads != 0 || !dropout.is_in(0, 1)) return fit::option_out_of_range;
    if (key_value_heads < 0 || heads % std::max(key_value_heads, 1) != 0) return fit::option_out_of_range;
    if (window < 0 || (window > 0 && !causal) || !(softcap >= 0 && softcap <= 1e30f) ||
        (interleaved && !rotary) || !(norm_epsilon > 0))
      return fit::option_out_of_range;
    bool const turns = !rotary || (in.channels / heads % 2 == 0 && rotary_base > 0 && scaling.valid());
    return turns ? fit::fits : fit::option_out_of_range;
  }
  constexpr shape output(shape in) const { return in; }
  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    int const c = in.channels;
    int const columns = int(projected(std::size_t(c)));
    visit(variable_spec{"query_key_value_kernel", {c, columns}, kernel_initializer});
    if (use_bias) visit(variable_spec{"query_key_value_bias", {columns}, constant{0}});
    if (qk_norm)
      for (auto const scale : {"query_norm", "key_norm"})
        visit(variable_spec{scale, {c / heads}, constant{1}});
    visit(variable_spec{"output_kernel", {c, c}, kernel_initializer});
    if (use_bias && output_bias) visit(variable_spec{"output_bias", {c}, constant{0}});
  }
  /// It decodes if no place sees later ones. For each place the cache keeps keys and values.
  constexpr bool decodes() const { return causal; }
  constexpr std::size_t cached(shape in) const { return 2 * std::size_t(in.channels) / group(); }

  /// Queries, keys and values, the heads' results, queries and keys before their norm, and the logarithms of
  /// the softmax's sums.
  constexpr std::size_t saved(shape in, pass_size batch) const {
    std::size_t const n = std::size_t(batch) * in.size();
    return rounded(3 * n) + rounded(n) + rounded(qk_norm ? 2 * n : 0) + sums(in, batch);
  }
  /// The gradient of the heads' results; and what is shared by groups.
  constexpr std::size_t scratch(shape in, pass_size batch) const {
    std::size_t const n = std::size_t(batch) * in.size();
    return rounded(n) + (group() > 1 ? rounded(projected(n)) : 0);
  }

  /// It compares the places of queries and keys.
  constexpr bool orders_places() const { return causal || rotary || interleaved || window > 0; }
  /// Heads of queries for each head of keys and values.
  constexpr std::size_t group() const {
    return key_value_heads > 0 ? std::size_t(heads) / std::size_t(key_value_heads) : 1;
  }
  /// Queries, keys and values that `n` queries have.
  constexpr std::size_t projected(std::size_t n) const { return n + 2 * (n / group()); }
  /// Calls visit(to, from, n): of the queries, keys and values of all heads, 3c numbers, those from `to` on
  /// are those of the projection from `from` on.
  template <class Visit>
  constexpr void each_run(std::size_t c, Visit&& visit) const {
    std::size_t const width = c / std::size_t(heads), shared = c / group();
    visit(std::size_t(0), std::size_t(0), c);
    for (std::size_t part = 0; part < 2; ++part)
      for (std::size_t head = 0; head < std::size_t(heads); ++head)
        visit((1 + part) * c + head * width, c + part * shared + head / group() * width, width);
  }

  /// What adapters may be added to: the kernel's columns, and the kernel of the result.
  constexpr std::array<adaptable, 4> adaptables(shape in) const {
    int const c = in.channels, shared = c / int(group()), n = c + 2 * shared;
    return {{{"query", "query_lora_a", "query_lora_b", 0, c, 0, c, 0, n},
             {"key", "key_lora_a", "key_lora_b", 0, c, c, shared, 0, n},
             {"value", "value_lora_a", "value_lora_b", 0, c, c + shared, shared, 0, n},
             {"output", "output_lora_a", "output_lora_b", 1, c, 0, c,
              (std::size_t(c) + use_bias) * std::size_t(n) + std::size_t(qk_norm ? 2 * c / heads : 0), c}}};
  }

  /// Calls more(product, rows, x, y, stride) after each of its two products.
  template <class D, class More = no_addition>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a, More const& more = {}) const {
    auto const c = std::size_t(a.in.channels), rows = a.x.size() / c;
    parts w(*this, c, a.parameters);
    kept s(*this, a);
    if (group() == 1) {
      p.device.dense_forward(rows, c, 3 * c, activation::none, a.x, w.kernel, w.bias, s.qkv);
      more(0, rows, a.x, s.qkv, 3 * c);
    } else {
      std::size_t const n = projected(c);
      auto const own = p.scratch.first(rows * n);
      p.device.dense_forward(rows, c, n, activation::none, a.x, w.kernel, w.bias, own);
      more(0, rows, a.x, own, n);
      for (std::size_t row = 0; row < rows; ++row)
        each_run(c, [&](std::size_t to, std::size_t from, std::size_t count) {
          std::copy_n(own.data() + row * n + from, count, s.qkv.data() + row * 3 * c + to);
        });
    }
    if (qk_norm)
      each_vector(s, c, [&](auto qk, auto raw, std::size_t part) {
        std::ranges::copy(qk, raw.begin());
        auto const factor = less(qk);
        for (std::size_t i = 0; i < qk.size(); ++i) qk[i] *= factor * w.norms[part * qk.size() + i];
      });
    if (p.decoding)
      p.device.cached_attention_forward(geometry(a.in, p.decoding->places), p.decoding->rows, s.qkv,
                                        p.decoding->next(cached(a.in)), s.heads);
    else if (auto const mask = mask_of(p, a.in); mask.none())
      p.device.attention_forward(geometry(a.in), a.batch, s.qkv, s.heads, s.sums);
    else
      p.device.masked_attention_forward(geometry(a.in), a.batch, mask, s.qkv, s.heads, s.sums);
    p.device.dense_forward(rows, c, c, activation::none, s.heads, w.output_kernel, w.output_bias, a.y);
    more(1, rows, s.heads, a.y, c);
  }
  /// Calls more(product, rows, x, dy, stride, dx) after the gradients of each product, the last one first.
  template <class D, class More = no_addition>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a, More const& more = {}) const {
    auto const c = std::size_t(a.in.channels), rows = a.x.size() / c;
    parts w(*this, c, a.parameters);
    parts d(*this, c, a.gradients);
    kept s(*this, a);
    carver memory(p.scratch);
    auto const dheads = memory.aligned(a.x.size());
    p.device.dense_backward(rows, c, c, s.heads, w.output_kernel, a.dy, dheads, d.output_kernel,
                            d.output_bias);
    more(1, rows, s.heads, a.dy, c, dheads);
    if (auto const mask = mask_of(p, a.in); mask.none())
      p.device.attention_backward(geometry(a.in), a.batch, s.heads, dheads, s.sums, s.qkv);
    else
      p.device.masked_attention_backward(geometry(a.in), a.batch, mask, s.heads, dheads, s.sums, s.qkv);
    if (qk_norm) {
      std::ranges::fill(d.norms, 0);
      each_vector(s, c, [&](auto slope, auto x, std::size_t part) {
        std::size_t const n = x.size();
        auto const gain = w.norms.subspan(part * n, n);
        auto const factor = less(x);
        typename D::scalar along = 0;
        for (std::size_t i = 0; i < n; ++i) {
          if (!d.norms.empty()) d.norms[part * n + i] += slope[i] * x[i] * factor;
          along += slope[i] * gain[i] * x[i];
        }
        along *= factor * factor / typename D::scalar(n);
        for (std::size_t i = 0; i < n; ++i) slope[i] = factor * (slope[i] * gain[i] - x[i] * along);
      });
    }
    if (group() == 1) {
      p.device.dense_backward(rows, c, 3 * c, a.x, w.kernel, s.qkv, a.dx, d.kernel, d.bias);
      return more(0, rows, a.x, s.qkv, 3 * c, a.dx);
    }
    std::size_t const n = projected(c);
    auto const own = memory.aligned(rows * n);
    std::ranges::fill(own, 0);
    for (std::size_t row = 0; row < rows; ++row)
      each_run(c, [&](std::size_t from, std::size_t to, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) own[row * n + to + i] += s.qkv[row * 3 * c + from + i];
      });
    p.device.dense_backward(rows, c, n, a.x, w.kernel, own, a.dx, d.kernel, d.bias);
    more(0, rows, a.x, own, n, a.dx);
  }

  constexpr attention_geometry geometry(shape in) const { return geometry(in, in.height * in.width); }

 private:
  constexpr attention_geometry geometry(shape in, int places) const {
    return {places, heads,   in.channels / heads, causal, rotary ? rotary_base : 0, scaling, int(group()),
            window, softcap, interleaved};
  }
  /// The reciprocal of a vector's root mean square.
  template <class Vector>
  auto less(Vector const& x) const {
    using T = std::ranges::range_value_t<Vector>;
    T squares = 0;
    for (T const each : x) squares += each * each;
    return 1 / std::sqrt(squares / T(x.size()) + T(norm_epsilon));
  }
  /// Calls visit(vector, before its norm, part) for each query (part 0) and key (part 1) of a head.
  template <class Kept, class Visit>
  void each_vector(Kept const& s, std::size_t c, Visit&& visit) const {
    std::size_t const width = c / std::size_t(heads), rows = s.qkv.size() / (3 * c);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t at = 0; at < 2 * c; at += width)
        visit(s.qkv.subspan(row * 3 * c + at, width), s.raw.subspan(row * 2 * c + at, width),
              std::size_t(at >= c));
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

  /// The variables, or their gradients, which may be left out.
  template <class Span>
  struct parts {
    Span kernel, bias, norms, output_kernel, output_bias;

    parts(attention const& of, std::size_t c, Span all) {
      if (all.empty()) return;
      carver next(all);
      kernel = next.next(c * of.projected(c));
      bias = next.next(of.use_bias ? of.projected(c) : 0);
      norms = next.next(of.qk_norm ? 2 * c / std::size_t(of.heads) : 0);
      output_kernel = next.next(c * c);
      output_bias = next.rest();
    }
  };

  /// The saved values.
  template <class T>
  struct kept {
    std::span<T> qkv, heads, raw, sums;

    template <class Args>
    kept(attention const& of, Args const& a) {
      carver next(a.saved);
      qkv = next.aligned(3 * a.x.size());
      heads = next.aligned(a.x.size());
      raw = next.aligned(of.qk_norm ? 2 * a.x.size() : 0);
      sums = next.next(of.sums(a.in, a.batch));
    }
  };
  template <class Args>
  kept(attention const&, Args const&) -> kept<typename decltype(Args::saved)::value_type>;
};

}  // namespace edl::nn

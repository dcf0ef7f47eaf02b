// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <tuple>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/chain.hpp"
#include "edl/compute/nn/expression/layer.hpp"
#include "edl/compute/nn/layer/embedding.hpp"
#include "edl/compute/nn/layer_parts.hpp"

namespace edl::nn {

/// The embedding of `tied`, which adds to the gradient that the product has written.
struct tied_embedding : embedding {
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    embedding_geometry g = geometry(a.in);
    g.adds_gradient = true;
    p.device.embedding_backward(g, a.batch, a.x, a.dy, a.dx, a.gradients);
  }
};

/// An embedding, layers, and the product with the embedding's table: y = layers(E[ids]) · E' (Press and Wolf,
/// "Using the output embedding to improve language models", 2017). Write it as `tied(…)`.
///
/// The table's gradient is the sum of both uses. Nothing between the layers and the product is narrow.
template <class... Layers>
struct tied_chain : chain<Layers...> {
  using body = chain<Layers...>;
  static constexpr std::string_view name = "tied";
  static constexpr bool spliced = true, adds = false, reads_y = false, overwrites_dy = false;
  static constexpr bool multiplies = true;  // the layers' result by the table

  constexpr fit check(shape in) const {
    if (fit const why = body::check(in); why != fit::fits) return why;
    return body::output(in).channels == table().width ? fit::fits : fit::branches_differ_in_shape;
  }
  constexpr shape output(shape in) const {
    shape out = body::output(in);
    out.channels = table().vocabulary;
    return out;
  }

  /// The layers' result and its gradient, beside what the layers store.
  constexpr std::size_t saved(shape in, pass_size batch) const {
    return 2 * result(in, batch) + body::saved(in, batch);
  }
  constexpr std::size_t workspace(shape in, pass_size batch) const {
    return 2 * result(in, batch) + body::workspace(in, batch);
  }
  constexpr bfloat16_io narrows(shape) const { return {}; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> a) const {
    shape const out = body::output(a.in);
    auto const y = a.y;
    auto const [h, ignored] = own_parts(a, out);
    (void)ignored;
    a.out = out, a.y = h;
    body::forward(p, a);
    auto const rows = h.size() / width();
    p.device.dense_backward(rows, vocabulary(), width(), {}, rows_of_table(a), h, y, {}, {});
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> a) const {
    shape const out = body::output(a.in);
    auto const [h, dh] = own_parts(a, out);
    auto const rows = h.size() / width();
    if (!frozen && !a.gradients.empty())  // to which the embedding adds
      p.device.dense_backward(rows, vocabulary(), width(), a.dy, {}, h, {}, a.gradients.first(size()), {});
    p.device.dense_forward(rows, vocabulary(), width(), activation::none, a.dy, rows_of_table(a), {}, dh);
    a.out = out, a.y = h, a.dy = dh;
    body::backward(p, a);
  }

 private:
  /// The embedding is frozen.
  static constexpr bool frozen = requires { requires body::template child<0>::is_frozen; };

  template <class Args>
  auto rows_of_table(Args const& a) const {
    return (frozen ? a.frozen : a.parameters).first(size());
  }
  constexpr embedding const& table() const { return std::get<0>(this->layers); }
  constexpr std::size_t vocabulary() const { return std::size_t(table().vocabulary); }
  constexpr std::size_t width() const { return std::size_t(table().width); }
  constexpr std::size_t size() const { return vocabulary() * width(); }
  constexpr std::size_t result(shape in, pass_size batch) const {
    return rounded(std::size_t(batch) * body::output(in).size());
  }

  /// The layers' result and its gradient, which are taken from `saved`.
  template <class Args>
  static auto own_parts(Args& a, shape out) {
    carver next(a.saved);
    auto const h = next.aligned(std::size_t(a.batch) * out.size()), dh = next.aligned(h.size());
    a.saved = next.rest();
    return std::pair(h, dh);
  }
};

/// A language model whose output shares its embedding's table, e.g. `sequential(ids{…}, tied(embedding{…},
/// positions{…}, repeat<6>(…), layer_norm{}))`. The layers' result has the embedding's width.
template <class... Layers>
constexpr auto tied(embedding first, Layers... layers) {
  static_assert(sizeof...(Layers) > 0, "edl: between an embedding and its product there are layers");
  if constexpr ((is_expression<Layers> || ...)) {
    return tied(first, as_layer(layers)...);
  } else if constexpr ((layer<Layers> && ...)) {
    return tied_chain<tied_embedding, Layers...>{{{tied_embedding{first}, layers...}}};
  } else {
    detail::explain_layers<Layers...>();
    return tied_chain<tied_embedding, no_layer>{{{tied_embedding{first}, no_layer{}}}};
  }
}

/// What a network of these layers computes: a chain of them, or the only one if it is tied.
template <class... Layers>
struct body_of_network {
  using type = chain<Layers...>;
};
template <class... Layers>
struct body_of_network<tied_chain<Layers...>> {
  using type = tied_chain<Layers...>;
};

}  // namespace edl::nn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <tuple>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/device/backend.hpp"
#include "edl/compute/device/elementwise.hpp"
#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/layer/activations.hpp"
#include "edl/compute/nn/layer/batch_norm.hpp"
#include "edl/compute/nn/layer/pools.hpp"
#include "edl/compute/nn/recomputation.hpp"
#include "edl/compute/nn/takes_ids.hpp"

namespace edl::nn {

/// A layer that can apply an activation to its result before it is stored: `forward(pass, args, activation)`.
/// Its `backward` takes the gradient before the activation.
template <class L>
concept activates = layer<L> && L::activates;

/// A layer whose `backward(pass, args, true)` also applies the gradient of the relu that produced its input.
template <class L>
concept masks_input = layer<L> && L::masks_input;

/// A layer whose `backward(pass, args, more, masked, narrow_more)` adds `more` to dx. If `masked`, it then
/// sets dx to 0 where x is not above 0.
template <class L>
concept adds_gradient = requires { requires L::adds_gradient; };

/// A layer whose `backward` computes dx without x, and skips gradients if none are requested.
template <class L>
concept splits_backward = requires { requires L::splits_backward; };

/// A layer whose `forward(pass, args, activation::none, true)` can use that a batch normalisation reads its
/// result next.
template <class L>
concept feeds_norm = requires { requires L::feeds_norm; };

/// How a chain computes one of its layers, or several as one. A step has the variables, random streams and
/// results of the layers that it replaces; only the values between them are never stored. `AfterRelu`: it
/// applies the gradient of the relu before. `ToNorm`: a batch normalisation is next.
template <layer L, bool AfterRelu = false, bool ToNorm = false>
struct step {
  L l;

  static constexpr std::string_view name = name_of<L>();
  static constexpr std::size_t width = 1;  ///< layers
  static constexpr bool overwrites_dy = nn::overwrites_dy<L>, reads_y = nn::reads_y<L>;
  static constexpr bool recomputes = nn::recomputes<L>;
  static constexpr bool exact = gives_ids<L>;  ///< its result is never rounded
  static constexpr bool over_x = false;        ///< its dx may overwrite x
  /// Its dx may be computed in a separate call, without gradients, and then overwrite x.
  static constexpr bool splits_backward = nn::splits_backward<L> && !AfterRelu;
  static constexpr bool adds_gradient = nn::adds_gradient<L> && !AfterRelu;

  constexpr L const& source() const { return l; }
  constexpr shape output(shape in) const { return l.output(in); }
  constexpr bfloat16_io narrows(shape in) const { return nn::narrows(l, in); }
  constexpr std::size_t saved(shape in, pass_size batch) const { return saved_by(l, in, batch); }
  constexpr std::size_t scratch(shape in, pass_size batch) const { return scratch_of(l, in, batch); }
  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    if constexpr (ToNorm)
      l.forward(p, a, activation::none, p.mode == mode::training);
    else
      l.forward(p, a);
  }
  template <class D>
  void recompute(pass<D>& p, forward_args<typename D::scalar> const& a) const
    requires recomputes
  {
    static_assert(recomputation<L, basic_backend<typename D::scalar>>::read != nullptr);
    l.forward(p, a);
  }
  template <class D, class... More>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a, More const&... more) const {
    if constexpr (AfterRelu)
      l.backward(p, a, true);
    else
      l.backward(p, a, more...);
  }
};

/// A layer and the relu after it. `Masked`: the next step applies the relu's gradient.
template <activates L, bool Masked, bool AfterRelu = false>
struct relu_step : step<L, AfterRelu> {
  static constexpr std::size_t width = 2;
  static constexpr bool overwrites_dy = !Masked || nn::overwrites_dy<L>, reads_y = !Masked || nn::reads_y<L>;
  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    this->l.forward(p, a, activation::relu);
  }
  template <class D, class... More>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a, More const&... more) const {
    if constexpr (!Masked)
      p.device.elementwise_backward(elementwise::relu, 0, a.y, a.dy, a.dy, {a.narrow.out, a.narrow.out});
    step<L, AfterRelu>::backward(p, a, more...);
  }
};

/// No pooling.
struct no_pool {};

/// A batch normalisation, the activation after it if any, and the pooling after that if any.
template <bool AfterRelu, activation F, class Pool>
struct norm_step {
  batch_norm l;
  Pool pool;

  static constexpr std::string_view name = batch_norm::name;
  /// `forward(pass, args, more, activation)` adds something to the result before the activation.
  static constexpr bool adds = F == activation::none && std::same_as<Pool, no_pool>;
  static constexpr bool pools = std::same_as<Pool, max_pool>;
  static constexpr std::size_t width = 1 + (F != activation::none) + pools;
  static constexpr bool overwrites_dy = false, reads_y = pools, over_x = !pools, splits_backward = false;
  /// `again(pass, args)` recomputes the result from the stored statistics.
  static constexpr bool recomputes = !pools, exact = false;

  constexpr batch_norm const& source() const { return l; }
  /// The pooling's window if the step also pools; 1 without pooling, or if that is a separate pass.
  constexpr int window(shape in) const {
    if constexpr (pools) {
      auto const g = pool.geometry(in);
      bool const side_by_side = g.window.height == g.window.width && g.window == g.stride &&
                                g.before == extent{0} && g.out.height == in.height / g.window.height &&
                                g.out.width == in.width / g.window.width;
      return side_by_side ? g.window.height : 1;
    } else {
      return 1;
    }
  }
  constexpr bool apart(shape in) const { return pools && window(in) == 1; }
  constexpr norm_chain chain(shape in) const { return {in, AfterRelu, F, window(in)}; }
  constexpr bfloat16_io narrows(shape) const { return {true, true}; }
  constexpr shape output(shape in) const {
    if constexpr (pools)
      return pool.output(in);
    else
      return in;
  }
  constexpr std::size_t saved(shape in, pass_size batch) const {
    return rounded(l.saved(in, batch)) + pooled(in, batch);
  }
  constexpr std::size_t scratch(shape in, pass_size batch) const { return pooled(in, batch); }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> a) const {
    carver saved(a.saved);
    auto const y = a.y;
    a.saved = saved.aligned(l.saved(a.in, a.batch));
    auto const narrow = a.narrow;
    if (apart(a.in)) {
      a.y = saved.rest();
      a.narrow.out = pooled_narrow(a.in, a.batch);
    }
    l.forward(p, a, chain(a.in));
    if constexpr (pools)
      if (apart(a.in))
        p.device.max_pool_forward(pool.geometry(a.in, {a.narrow.out, narrow.out}), a.batch, a.y, y);
  }
  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> a, view<typename D::scalar> more, activation f,
               bool narrow_more = false) const
    requires adds
  {
    l.forward(p, a, {.in = a.in, .after_relu = AfterRelu, .f = f, .narrow_more = narrow_more}, more);
  }
  template <class D>
  void recompute(pass<D>& p, forward_args<typename D::scalar> const& a) const
    requires recomputes
  {
    l.recompute(p, a, chain(a.in));
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> a) const {
    carver saved(a.saved);
    a.saved = saved.aligned(l.saved(a.in, a.batch));
    if constexpr (pools)
      if (apart(a.in)) {
        bool const narrow = pooled_narrow(a.in, a.batch);
        auto const between = p.scratch.first(pooled(a.in, a.batch));
        p.device.max_pool_backward(pool.geometry(a.in, {narrow, a.narrow.out}), a.batch, saved.rest(), a.y,
                                   a.dy, between);
        a.dy = between;
        a.narrow.out = narrow;
      }
    l.backward(p, a, chain(a.in));
  }

 private:
  /// Whether the values between normalisation and a separate pooling are narrow, and the scalars that they
  /// take.
  constexpr bool pooled_narrow(shape in, pass_size batch) const {
    return batch.narrow && in.channels % 2 == 0;
  }
  constexpr std::size_t pooled(shape in, pass_size batch) const {
    return apart(in) ? scalars_of(std::size_t(batch) * in.size(), pooled_narrow(in, batch)) : 0;
  }
};

namespace detail {

template <std::size_t I, class Wanted, class... Layers>
constexpr bool is_at() {
  if constexpr (I < sizeof...(Layers))
    return std::same_as<std::tuple_element_t<I, std::tuple<Layers...>>, Wanted>;
  else
    return false;
}

/// The activation that layer number `I` is, if a normalisation can apply it.
template <std::size_t I, class... Layers>
constexpr activation activation_at() {
  return is_at<I, relu, Layers...>()   ? activation::relu
         : is_at<I, gelu, Layers...>() ? activation::gelu
         : is_at<I, silu, Layers...>() ? activation::silu
                                       : activation::none;
}

/// Whether layer number `I` can apply the gradient of the relu before it.
template <std::size_t I, class... Layers>
constexpr bool masks_at() {
  if constexpr (I < sizeof...(Layers)) {
    using there = std::tuple_element_t<I, std::tuple<Layers...>>;
    return std::same_as<there, batch_norm> || masks_input<there>;
  } else {
    return false;
  }
}

/// The steps `done` and those for the layers from number `I` on. `AfterRelu`: the step before ends with a
/// relu, and the next one applies its gradient.
template <std::size_t I, bool AfterRelu, class... Layers, class... Done>
constexpr auto steps_from(std::tuple<Layers...> const& layers, Done const&... done) {
  if constexpr (I == sizeof...(Layers)) {
    return std::tuple<Done...>(done...);
  } else {
    using here = std::tuple_element_t<I, std::tuple<Layers...>>;
    auto const& l = std::get<I>(layers);
    constexpr bool relu_next = is_at<I + 1, relu, Layers...>();
    if constexpr (std::same_as<here, batch_norm>) {
      constexpr activation f = activation_at<I + 1, Layers...>();
      constexpr std::size_t after = I + 1 + (f != activation::none);
      if constexpr (!curved(f) && is_at<after, max_pool, Layers...>())
        return steps_from<after + 1, false>(layers, done...,
                                            norm_step<AfterRelu, f, max_pool>{l, std::get<after>(layers)});
      else
        return steps_from<after, false>(layers, done..., norm_step<AfterRelu, f, no_pool>{l, {}});
    } else if constexpr (activates<here> && relu_next) {
      constexpr bool masked = masks_at<I + 2, Layers...>();
      return steps_from<I + 2, masked>(layers, done..., relu_step<here, masked, AfterRelu>{{l}});
    } else {
      constexpr bool to_norm = feeds_norm<here> && is_at<I + 1, batch_norm, Layers...>();
      return steps_from<I + 1, false>(layers, done..., step<here, AfterRelu, to_norm>{l});
    }
  }
}

}  // namespace detail

/// The steps that compute these layers one after the other.
template <layer... Layers>
constexpr auto fuse(std::tuple<Layers...> const& layers) {
  return detail::steps_from<0, false>(layers);
}

}  // namespace edl::nn

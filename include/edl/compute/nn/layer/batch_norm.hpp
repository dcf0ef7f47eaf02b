// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/geometry.hpp"
#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

/// Normalises each channel (Ioffe and Szegedy, 2015): in training by the batch's mean and variance, which
/// update the running ones, otherwise by the running ones. As in Keras: moving ← momentum · moving + (1 −
/// momentum) · batch, with the biased variance. The shape stays.
struct batch_norm {
  setting momentum = 0.99f;  ///< in [0, 1]
  float epsilon = 1e-3f;
  bool scale = true;  ///< by a trained gamma; otherwise by 1
  /// The layer adds this times a trained beta, which thereby learns at the others' rate times the square of
  /// this.
  float shift_gain = 1;

  static constexpr std::string_view name = "batch_normalization";
  static constexpr bool portable = true;
  static constexpr bool reads_y = false;

  constexpr fit check(shape) const {
    return momentum.is_in(0, above_one) && epsilon > 0 && shift_gain != 0 ? fit::fits
                                                                          : fit::option_out_of_range;
  }
  constexpr shape output(shape in) const { return in; }
  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    if (scale) visit(variable_spec{"gamma", {in.channels}, constant{1}});
    visit(variable_spec{"beta", {in.channels}, constant{0}});
    visit(variable_spec{"moving_mean", {in.channels}, constant{0}, false});
    visit(variable_spec{"moving_variance", {in.channels}, constant{1}, false});
  }
  constexpr std::size_t saved(shape in, int) const { return 2 * std::size_t(in.channels); }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    forward(p, a, {a.in});
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    backward(p, a, {a.in});
  }

  /// The same with the fused activation and pooling of the chain, and with `more` added before these.
  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a, norm_chain chain,
               view<typename D::scalar> more = {}) const {
    auto const c = std::size_t(a.in.channels);
    carver parameters(a.parameters);
    carver state(a.state);
    auto const gamma = parameters.next(scales(a.in)), beta = parameters.rest();
    chain.shift_gain = shift_gain;
    chain.narrow = a.narrow;
    auto const mean = state.next(c), variance = state.next(c);
    if (p.mode == mode::training)
      p.device.batch_norm_train(chain, a.batch, momentum_in(p), epsilon, a.x, gamma, beta, more, mean,
                                variance, a.y, a.saved);
    else
      p.device.batch_norm_evaluate(chain, a.batch, epsilon, a.x, gamma, beta, more, mean, variance, a.y,
                                   a.saved);
  }
  /// Recomputes the result after `forward`, whose statistics are in `a.saved`.
  template <class D>
  void recompute(pass<D>& p, forward_args<typename D::scalar> const& a, norm_chain chain) const {
    std::size_t const n = scales(a.in);
    chain.shift_gain = shift_gain;
    chain.narrow = a.narrow;
    p.device.batch_norm_recompute(chain, a.batch, a.x, a.parameters.first(n), a.parameters.subspan(n),
                                  a.saved, a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a, norm_chain chain) const {
    std::size_t const n = scales(a.in);
    chain.shift_gain = shift_gain;
    chain.narrow = a.narrow;
    p.device.batch_norm_backward(chain, a.batch, p.mode == mode::training, a.x, a.parameters.first(n),
                                 a.parameters.subspan(n), a.dy, a.saved, a.dx, a.gradients.first(n),
                                 a.gradients.subspan(n));
  }

 private:
  static constexpr float above_one = 1.0000001f;

  template <class D>
  float momentum_in(pass<D> const& p) const {
    return momentum.resolve(p.set, "the momentum of a batch_norm", 0, above_one);
  }
  constexpr std::size_t scales(shape in) const { return scale ? std::size_t(in.channels) : 0; }
};

}  // namespace edl::nn

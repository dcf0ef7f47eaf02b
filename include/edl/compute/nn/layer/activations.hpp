// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "edl/compute/device/elementwise.hpp"
#include "edl/compute/nn/expression/operations.hpp"
#include "edl/compute/nn/layer.hpp"

namespace edl::nn {

// Those without options are functions within the forward pass of a layer, too: `nn::tanh(x)` of a tensor is a
// tensor.

namespace detail {

/// The common part of activations without options: an element-wise function, whose gradient is computed from
/// its result or, with `FromX`, from the element.
template <elementwise Function, bool FromX = false>
struct plain_activation {
  static constexpr bool each_place = true, portable = true, reads_y = !FromX;

  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape in) const { return in; }
  constexpr bfloat16_io narrows(shape) const { return {true, true}; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.elementwise_forward(Function, 0, a.x, a.y, a.narrow);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    p.device.elementwise_backward(Function, 0, FromX ? a.x : a.y, a.dy, a.dx, a.narrow);
  }
};

/// The common part of activations with one option. The layer L names it: `option`, and `option_name` in
/// errors.
template <class L, elementwise Function>
struct tuned_activation {
  static constexpr bool each_place = true, portable = true;

  constexpr fit check(shape) const {
    return option().is_in(0, setting::unbounded) ? fit::fits : fit::option_out_of_range;
  }
  constexpr shape output(shape in) const { return in; }
  constexpr bfloat16_io narrows(shape) const { return {true, true}; }

  /// The option's value with `set`. Throws usage_error if it is negative.
  float resolve(hyperparameter_view set) const {
    return option().resolve(set, L::option_name, 0, setting::unbounded);
  }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    p.device.elementwise_forward(Function, resolve(p.set), a.x, a.y, a.narrow);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    p.device.elementwise_backward(Function, resolve(p.set), a.y, a.dy, a.dx, a.narrow);
  }

 private:
  constexpr setting const& option() const { return static_cast<L const&>(*this).*L::option; }
};

}  // namespace detail

/// max(x, 0), element by element. The shape stays.
struct relu : detail::plain_activation<elementwise::relu>, tensor {
  static constexpr std::string_view name = "relu";

  constexpr relu() = default;
  constexpr relu(tensor x, expression::source_line line = {})  // NOLINT(google-explicit-constructor)
      : tensor(expression::relu(x, line)) {}
};

/// tanh(x), element by element. The shape stays.
struct tanh : detail::plain_activation<elementwise::tanh>, tensor {
  static constexpr std::string_view name = "tanh";

  constexpr tanh() = default;
  constexpr tanh(tensor x, expression::source_line line = {})  // NOLINT(google-explicit-constructor)
      : tensor(expression::tanh(x, line)) {}
};

/// 1 / (1 + exp(-x)), element by element. The shape stays.
struct sigmoid : detail::plain_activation<elementwise::sigmoid>, tensor {
  static constexpr std::string_view name = "sigmoid";

  constexpr sigmoid() = default;
  constexpr sigmoid(tensor x, expression::source_line line = {})  // NOLINT(google-explicit-constructor)
      : tensor(expression::sigmoid(x, line)) {}
};

/// x · Φ(x), with the standard normal distribution Φ (Hendrycks and Gimpel, 2016), element by element. The
/// shape stays.
struct gelu : detail::plain_activation<elementwise::gelu, true>, tensor {
  static constexpr std::string_view name = "gelu";
  static constexpr bool recomputes = true;

  constexpr gelu() = default;
  constexpr gelu(tensor x, expression::source_line line = {})  // NOLINT(google-explicit-constructor)
      : tensor(expression::gelu(x, line)) {}
};

/// x · σ(x) = x / (1 + exp(−x)), element by element. It is also called swish, with β = 1. (Elfwing, Uchibe
/// and Doya, 2017; Ramachandran, Zoph and Le, "Searching for activation functions", 2017.) The shape stays.
struct silu : detail::plain_activation<elementwise::silu, true>, tensor {
  static constexpr std::string_view name = "silu";

  constexpr silu() = default;
  constexpr silu(tensor x, expression::source_line line = {})  // NOLINT(google-explicit-constructor)
      : tensor(expression::silu(x, line)) {}
};

/// log(1 + exp(x)), element by element, without overflow. The shape stays.
struct softplus : detail::plain_activation<elementwise::softplus, true>, tensor {
  static constexpr std::string_view name = "softplus";

  constexpr softplus() = default;
  constexpr softplus(tensor x, expression::source_line line = {})  // NOLINT(google-explicit-constructor)
      : tensor(expression::softplus(x, line)) {}
};

/// x · tanh(softplus(x)), element by element (Misra, "Mish", BMVC 2020). The shape stays.
struct mish : tensor {
  static constexpr std::string_view name = "mish";

  constexpr mish() = default;
  constexpr mish(tensor x, expression::source_line line = {})  // NOLINT(google-explicit-constructor)
      : tensor(expression::mish(x, line)) {}
  constexpr auto forward(auto x, auto&) const { return mish(x); }
};

/// x where it is positive, slope · x elsewhere. The shape stays.
struct leaky_relu : detail::tuned_activation<leaky_relu, elementwise::leaky_relu> {
  setting slope = 0.3f;  ///< not negative

  static constexpr std::string_view name = "leaky_relu";
  static constexpr char option_name[] = "the slope of a leaky_relu";
  static constexpr setting leaky_relu::* option = &leaky_relu::slope;
};

/// x where it is positive, alpha · (exp(x) − 1) elsewhere (Clevert, Unterthiner and Hochreiter, "Exponential
/// linear units", ICLR 2016). The shape stays.
struct elu : detail::tuned_activation<elu, elementwise::elu> {
  setting alpha = 1.0f;  ///< not negative

  static constexpr std::string_view name = "elu";
  static constexpr char option_name[] = "the alpha of an elu";
  static constexpr setting elu::* option = &elu::alpha;
};

/// exp(x) / Σ exp(x) over the channels. The shape stays.
struct softmax : tensor {
  static constexpr std::string_view name = "softmax";
  static constexpr bool each_place = true;
  static constexpr bool portable = true;

  constexpr softmax() = default;
  constexpr softmax(tensor x,
                    expression::reduced_axes along = nn::channels,  // NOLINT(google-explicit-constructor)
                    expression::source_line line = {})
      : tensor(expression::softmax(x, along, line)) {}

  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape in) const { return in; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    auto const classes = std::size_t(a.in.channels);
    p.device.softmax_forward(a.x.size() / classes, classes, a.x, a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    auto const classes = std::size_t(a.in.channels);
    p.device.softmax_backward(a.y.size() / classes, classes, a.y, a.dy, a.dx);
  }
};

/// x − log Σ exp(x) over the channels, without overflow: the logarithm of `softmax`. The shape stays.
struct log_softmax : tensor {
  static constexpr std::string_view name = "log_softmax";
  static constexpr bool each_place = true;
  static constexpr bool portable = true;

  constexpr log_softmax() = default;
  constexpr log_softmax(tensor x,
                        expression::reduced_axes along = nn::channels,  // NOLINT(google-explicit-constructor)
                        expression::source_line line = {})
      : tensor(expression::log_softmax(x, along, line)) {}

  constexpr fit check(shape) const { return fit::fits; }
  constexpr shape output(shape in) const { return in; }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    auto const classes = std::size_t(a.in.channels);
    p.device.log_softmax_forward(a.x.size() / classes, classes, a.x, a.y);
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    if (a.dx.empty()) return;
    auto const classes = std::size_t(a.in.channels);
    p.device.log_softmax_backward(a.y.size() / classes, classes, a.y, a.dy, a.dx);
  }
};

}  // namespace edl::nn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "edl/compute/nn/expression/loss.hpp"
#include "edl/compute/nn/loss/loss.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn::detail {

/// The parts of a softmax: the largest of some logits, and the sums of exp(x − largest) and of x − largest.
/// Each sum is computed in double.
template <class T>
struct logit_sums {
  T largest;
  double exps, below;
};

/// The sums of a non-empty row, vectorised. An element 87 or more below the largest adds nothing in single
/// precision. A NaN makes `exps` NaN.
template <std::floating_point T>
logit_sums<T> sums_of_logits(view<T> x);

/// y = exp(x − largest) · scale − shift, vectorised. `largest` must not be below any x.
template <std::floating_point T>
void scaled_exps(view<T> x, T largest, T scale, T shift, std::type_identity_t<std::span<T>> y);

}  // namespace edl::nn::detail

namespace edl::nn {

/// Cross entropy of softmax(outputs) with one class per sample; the outputs are logits. The true distribution
/// is q_k = (1 − s)·[k is the label] + s / classes with the label smoothing s in [0, 1). (Szegedy et al.,
/// "Rethinking the inception architecture", CVPR 2016, section 7.)
struct softmax_cross_entropy {
  float label_smoothing = 0;
  nn::class_weights class_weights{};  ///< with any, it is computed on the host

  using label = std::int32_t;
  static constexpr bool class_labels = true;
  static constexpr std::size_t labels(shape) { return 1; }
  static constexpr bool fits(shape output) { return output.size() > 1; }  ///< for one it is always 0
  static constexpr bool valid(label l, shape output) { return l >= 0 && std::size_t(l) < output.size(); }

  constexpr bool options_fit(shape output) const {
    return label_smoothing >= 0 && label_smoothing < 1 && class_weights.fit(output.size());
  }
  constexpr bool on_host() const { return class_weights.count() > 0; }

  /// See `loss_function`. Every label must be `valid`.
  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    std::size_t const classes = output.size();
    double const smooth = double(label_smoothing), spread = smooth / double(classes);
    double total = 0;
    for (std::size_t i = 0; i < std::size_t(batch); ++i) {
      view<T> const x = outputs.subspan(i * classes, classes);
      auto const y = std::size_t(truth[i]);
      double const weight = double(class_weights[y]);
      auto const sums = detail::sums_of_logits(x);
      double loss = std::log(sums.exps) - (1 - smooth) * double(x[y] - sums.largest);
      if (smooth != 0) loss -= spread * sums.below;  // 0 · −∞ must not make a loss of an unlikely class NaN
      total += weight * loss;
      if (gradients.empty()) continue;
      auto const dx = gradients.subspan(i * classes, classes);
      detail::scaled_exps(x, sums.largest, T(weight / (sums.exps * batch)), T(weight * spread / batch), dx);
      dx[y] -= T(weight * (1 - smooth) / batch);
    }
    return batch > 0 ? total / batch : 0;
  }
};

/// `softmax_cross_entropy` at every place of a sample: of a text, an output of (1, length, classes), or of a
/// picture, (height, width, classes). The channels are logits, and each place has a label, row by row. A
/// place whose label is `ignored`, −1, does not count, also not in metrics: use it for the padding of short
/// records. The loss is the mean over the counted places of the minibatch, and 0 if there are none.
struct sequence_cross_entropy {
  float label_smoothing = 0;  ///< in [0, 1)
  nn::class_weights class_weights{};

  using label = std::int32_t;
  static constexpr label ignored = -1;
  static constexpr bool class_labels = true;
  static constexpr std::size_t labels(shape output) {
    return std::size_t(output.height) * std::size_t(output.width);
  }
  static constexpr bool valid(label l, shape output) { return l >= ignored && l < output.channels; }
  /// For one class the loss is always 0; for one place it is `softmax_cross_entropy`.
  static constexpr bool fits(shape output) { return output.channels > 1 && labels(output) > 1; }
  constexpr bool options_fit(shape output) const {
    return label_smoothing >= 0 && label_smoothing < 1 && class_weights.fit(std::size_t(output.channels));
  }

  /// See `loss_function`. Every label must be `valid`.
  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    auto const classes = std::size_t(output.channels), count = std::size_t(batch) * labels(output);
    auto const counted = double(count) - double(std::ranges::count(truth.first(count), ignored));
    double const smooth = double(label_smoothing), spread = smooth / double(classes);
    double total = 0;
    for (std::size_t i = 0; i < count; ++i) {
      view<T> const x = outputs.subspan(i * classes, classes);
      auto const dx = gradients.empty() ? gradients : gradients.subspan(i * classes, classes);
      if (truth[i] == ignored) {
        std::ranges::fill(dx, T(0));
        continue;
      }
      auto const y = std::size_t(truth[i]);
      double const weight = double(class_weights[y]);
      auto const sums = detail::sums_of_logits(x);
      double loss = std::log(sums.exps) - (1 - smooth) * double(x[y] - sums.largest);
      if (smooth != 0) loss -= spread * sums.below;  // 0 · −∞ must not make a loss of an unlikely class NaN
      total += weight * loss;
      if (dx.empty()) continue;
      detail::scaled_exps(x, sums.largest, T(weight / (sums.exps * counted)), T(weight * spread / counted),
                          dx);
      dx[y] -= T(weight * (1 - smooth) / counted);
    }
    return counted > 0 ? total / counted : 0;
  }
};

/// Cross entropy of softmax(outputs), reduced for samples that are already classified well: −(1 −
/// p)^gamma·log p. p is the probability of the label, one class per sample. (Lin et al., "Focal loss for
/// dense object detection", ICCV 2017; its alpha is `class_weights`.) With gamma = 0 it is
/// `softmax_cross_entropy`.
struct softmax_focal {
  float gamma = 2;  ///< not negative
  nn::class_weights class_weights{};

  using label = std::int32_t;
  static constexpr bool class_labels = true;
  static constexpr std::size_t labels(shape) { return 1; }
  static constexpr bool valid(label l, shape output) { return l >= 0 && std::size_t(l) < output.size(); }
  static constexpr bool fits(shape output) { return output.size() > 1; }  ///< for one it is always 0
  constexpr bool options_fit(shape output) const { return gamma >= 0 && class_weights.fit(output.size()); }

  /// See `loss_function`. Every label must be `valid`.
  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    std::size_t const classes = output.size();
    double total = 0;
    for (std::size_t i = 0; i < std::size_t(batch); ++i) {
      view<T> const x = outputs.subspan(i * classes, classes);
      auto const y = std::size_t(truth[i]);
      auto const sums = detail::sums_of_logits(x);
      double const surprise = std::log(sums.exps) - double(x[y] - sums.largest);  // −log p
      double const p = std::exp(-surprise), wrong = -std::expm1(-surprise);
      double const weight = double(class_weights[y]), focus = weight * std::pow(wrong, double(gamma));
      total += focus * surprise;
      if (gradients.empty()) continue;
      // By −log p: gamma · wrong^(gamma − 1) · p · surprise + wrong^gamma, where surprise / wrong goes to 1.
      double const ratio = wrong > 0 ? surprise / wrong : 1;
      double const slope = focus * (p > 0 ? double(gamma) * p * ratio + 1 : 1) / batch;
      auto const dx = gradients.subspan(i * classes, classes);
      detail::scaled_exps(x, sums.largest, T(slope / sums.exps), T(0), dx);
      dx[y] -= T(slope);
    }
    return batch > 0 ? total / batch : 0;
  }
};

/// Cross entropy of sigmoid(outputs) with one probability per output element, averaged over the elements; the
/// outputs are logits. Per element max(x, 0) − x·z + log(1 + exp(−|x|)), which is −z·log σ(x) − (1 − z)·log(1
/// − σ(x)) without overflow. With the label smoothing s, a label z counts as (1 − s)·z + s / 2. Two class
/// weights, {of no, of yes}, multiply an element's loss; a label between 0 and 1 interpolates them.
struct sigmoid_cross_entropy {
  float label_smoothing = 0;          ///< in [0, 1)
  nn::class_weights class_weights{};  ///< with any, it is computed on the host

  using label = float;
  static constexpr bool class_labels = false;
  static constexpr std::size_t labels(shape output) { return output.size(); }
  static constexpr bool valid(label l, shape) { return l >= 0 && l <= 1; }

  constexpr bool options_fit(shape) const {
    return label_smoothing >= 0 && label_smoothing < 1 && class_weights.fit(2);
  }
  constexpr bool on_host() const { return class_weights.count() > 0; }

  /// See `loss_function`. Every label must be `valid`.
  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    std::size_t const n = std::size_t(batch) * output.size();
    T const scale = T(1 / double(n)), keep = T(1 - label_smoothing), shift = T(label_smoothing / 2);
    T const no = T(class_weights[0]), more = T(class_weights[1]) - no;
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) {
      T const x = outputs[i], z = T(truth[i]) * keep + shift, weight = no + more * T(truth[i]);
      T const small = std::exp(-std::abs(x));
      total += double(weight * ((x > 0 ? x : 0) - x * z + std::log1p(small)));
      if (!gradients.empty()) gradients[i] = ((x > 0 ? 1 : small) / (1 + small) - z) * (weight * scale);
    }
    return n > 0 ? total / double(n) : 0;
  }
};

/// Cross entropy of sigmoid(outputs), reduced for elements that are already classified well: −a·(1 −
/// p)^gamma·log p for each output element, averaged over them. p is the probability of the label, 0 or 1. a
/// is `alpha` for the label 1, and 1 − alpha for the label 0. (Lin et al., "Focal loss for dense object
/// detection", ICCV 2017.) With gamma = 0 and alpha = 1/2 it is half of `sigmoid_cross_entropy`.
struct sigmoid_focal {
  float gamma = 2;      ///< not negative
  float alpha = 0.25f;  ///< in [0, 1]

  using label = float;
  static constexpr bool class_labels = false;
  static constexpr std::size_t labels(shape output) { return output.size(); }
  static constexpr bool valid(label l, shape) { return l == 0 || l == 1; }
  constexpr bool options_fit(shape) const { return gamma >= 0 && alpha >= 0 && alpha <= 1; }

  /// See `loss_function`. Every label must be `valid`.
  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    std::size_t const n = std::size_t(batch) * output.size();
    T const scale = T(1 / double(n));
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) {
      bool const yes = truth[i] > 0.5f;
      T const m = yes ? outputs[i] : -outputs[i];  // the logit of the label's probability
      T const small = std::exp(-std::abs(m)), all = 1 / (1 + small);
      T const p = m > 0 ? all : small * all, wrong = m > 0 ? small * all : all;
      T const surprise = (m > 0 ? 0 : -m) + std::log1p(small);  // −log p
      T const share = yes ? T(alpha) : 1 - T(alpha);
      T const focus = share * (gamma == 2 ? wrong * wrong : std::pow(wrong, T(gamma)));
      total += double(focus) * double(surprise);
      if (gradients.empty()) continue;
      T const slope = focus * (T(gamma) * p * surprise + wrong) * scale;
      gradients[i] = yes ? -slope : slope;
    }
    return n > 0 ? total / double(n) : 0;
  }
};

/// max(0, margin − s·x) for each output element x, averaged over them; s is 1 for the label 1, and −1 for the
/// label 0. It is the loss of a support vector machine (Cortes and Vapnik, 1995). With `squared` it is the
/// square of that. An output above 0 means yes, as it does for `sigmoid_cross_entropy`.
struct hinge {
  float margin = 1;  ///< above 0
  bool squared = false;

  static constexpr bool valid(float l, shape) { return l == 0 || l == 1; }
  constexpr bool options_fit(shape) const { return margin > 0; }
  constexpr auto loss(auto output, auto label) const {
    auto const gap = margin - (2 * label - 1) * output, lack = where(gap <= 0, 0, gap);  // a NaN stays
    // With factors, because an option may change numbers, but not the set of operations.
    return mean(lack * (squared ? 1 : 0) * lack + lack * (squared ? 0 : 1));
  }
};

/// The divergence of softmax(outputs) from the labels' distribution, Σ z·(log z − log softmax(x)), per sample
/// (Kullback and Leibler, 1951). Labels are a probability for each output of a sample; their sum is 1. A
/// probability of 0 adds nothing. The gradient is that of cross entropy.
struct kullback_leibler {
  static constexpr bool valid(float l, shape) { return l >= 0 && l <= 1; }
  static constexpr bool fits(shape output) { return output.size() > 1; }  ///< for one it is always 0
  constexpr auto loss(auto output, auto label) const {
    auto const answer = expression::log_softmax(output, channels | places);
    return sum(where(label > 0, label * (log(label) - answer), 0));
  }
};

}  // namespace edl::nn

#ifdef EDL_HEADER_ONLY
#include "edl/compute/nn/loss/classification.ipp"
#endif

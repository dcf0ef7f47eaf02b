// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "edl/compute/nn/expression/loss.hpp"
#include "edl/compute/nn/literal.hpp"
#include "edl/compute/nn/loss/loss.hpp"
#include "edl/core/hyperparameter.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"
#include "edl/core/unpack.hpp"

namespace edl::nn {

/// Some neighbouring outputs of a network with a name, a loss and a weight.
template <literal Name, int Outputs, class Loss>
struct named_head {
  using loss_type = Loss;
  static constexpr std::string_view name = Name.view();
  static constexpr bool sized = Outputs > 0;
  static_assert(sized, "edl: a head has at least one output");
  static constexpr shape output{1, 1, sized ? Outputs : 1};
  static constexpr std::size_t labels = Loss::labels(output);
  static_assert(!sized || loss_fits<Loss>(output),
                "edl: the loss of this head cannot be computed from so many outputs: `softmax_cross_entropy` "
                "takes two or more");
  static_assert(!Loss::class_labels || labels == 1, "edl: a head of classes has one label");
  static_assert(
      !needs_whole_batch<Loss>,
      "edl: the loss of this head compares samples with each other, and heads are computed one by one");
  static_assert(!weighs_samples<Loss>,
                "edl: a sample of heads has no weight: `nn::sample_weighted` is for one loss of all outputs; "
                "weight the head, or its classes");

  Loss loss;
  setting weight = 1.0f;  ///< at least 0

  /// The same with the weight for these hyperparameters.
  named_head with(hyperparameter_view set) const {
    return {loss, weight.resolve(set, "the weight of a head", 0, setting::unbounded)};
  }

  static bool valid(float label) {
    if constexpr (std::same_as<typename Loss::label, std::int32_t>)
      return label >= 0 && label < float(Outputs) && label == float(std::int32_t(label)) &&
             Loss::valid(std::int32_t(label), output);
    else
      return Loss::valid(label, output);
  }

  /// Calls act(labels), with labels of the loss's type.
  template <class Act>
  static auto with_labels(view<float> truth, Act&& act) {
    if constexpr (std::same_as<typename Loss::label, std::int32_t>) {
      auto const label = std::int32_t(truth[0]);
      return act(view<std::int32_t>(&label, 1));
    } else {
      return act(truth);
    }
  }
};

/// Names a head: `head<"stars", 5>(softmax_cross_entropy{}, 0.5f)` takes the next 5 outputs. The weight may
/// be a hyperparameter: `set_by<&hyperparameters::stars>`.
template <literal Name, int Outputs, class Loss>
constexpr auto head(Loss loss, setting weight = 1.0f) {
  if constexpr (is_loss_expression<Loss>) {
    return head<Name, Outputs>(as_loss(loss), weight);
  } else if constexpr (loss_function<Loss>) {
    return named_head<Name, Outputs, Loss>{loss, weight};
  } else {
    static_assert(sizeof(is_a_loss<Loss>) > 0);
    return named_head<Name, Outputs, no_loss>{{}, weight};
  }
}

/// A head without a name, or without its number of outputs.
template <class Loss>
constexpr auto head(Loss, setting weight = 1.0f) {
  static_assert(sizeof(Loss) == 0,
                "edl: this head has no name and no number of outputs: `edl::nn::head<\"stars\", 5>(...)`");
  return named_head<"head", 1, no_loss>{{}, weight};
}
template <literal Name, class Loss>
constexpr auto head(Loss, setting weight = 1.0f) {
  static_assert(sizeof(Loss) == 0,
                "edl: this head has no number of outputs: `edl::nn::head<\"stars\", 5>(...)`");
  return named_head<Name, 1, no_loss>{{}, weight};
}

/// Used instead of a missing head. Instantiated so that the compiler's message shows its name.
template <literal Name>
struct names_a_head {
  static constexpr bool value = false;
};

/// A loss for each head of a network, and their weighted sum as the model's. The network's outputs are those
/// of the heads, one after the other, as `concat` puts them. The labels are in the same order, and are floats
/// even for classes. Make it with `heads`. It is computed sample by sample, on the host.
template <class... Head>
struct head_list {
  using label = float;
  static constexpr bool class_labels = false, own_labels = true;
  static constexpr std::size_t all_outputs = (Head::output.size() + ...), all_labels = (Head::labels + ...);

  std::tuple<Head...> all;

  static constexpr bool sized = (Head::sized && ...);  // or it has been reported
  static constexpr bool fits(shape output) { return !sized || output.size() == all_outputs; }
  constexpr bool options_fit(shape) const {
    auto const one = [](auto const& h) {
      return h.weight.is_in(0, setting::unbounded) && nn::options_fit(h.loss, h.output);
    };
    return edl::unpack([&](auto const&... h) { return (one(h) && ...); }, all);
  }
  static constexpr std::size_t labels(shape) { return all_labels; }

  /// The same with the weights for these hyperparameters. Throws as `setting::resolve`.
  head_list with(hyperparameter_view set) const {
    return edl::unpack([&](auto const&... h) { return head_list{{h.with(set)...}}; }, all);
  }

  /// Whether some head takes the label; the overload below checks its own head.
  static bool valid(label l, shape) { return (Head::valid(l) || ...); }
  static bool valid(label l, shape, std::size_t place) {
    bool good = false;
    std::size_t first = 0;
    (..., (good = good || (place >= first && place < first + Head::labels && Head::valid(l)),
           first += Head::labels));
    return good;
  }

  template <literal Name>
  static constexpr std::size_t index_of() {
    std::size_t index = 0, found = sizeof...(Head);
    (..., (found = Head::name == Name.view() ? index : found, ++index));
    return found;
  }
  /// The index of a head's first output, and of its first label.
  template <literal Name>
  static constexpr std::array<std::size_t, 2> first_of() {
    static_assert(index_of<Name>() < sizeof...(Head) || names_a_head<Name>::value,
                  "edl: no head has this name");
    std::size_t index = 0, outputs = 0, labels = 0;
    (..., (index++ < index_of<Name>() ? (outputs += Head::output.size(), labels += Head::labels) : 0));
    return {outputs, labels};
  }
  template <literal Name>
  constexpr auto const& of() const {
    return std::get<index_of<Name>()>(all);
  }

  /// See `loss_function`. Every label must be `valid` for its head. Weights are constants: see `with`.
  template <class T>
  double operator()(shape, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    double total = 0;
    for (std::size_t i = 0; i < std::size_t(batch); ++i) {
      std::size_t output = i * all_outputs, first = i * all_labels;
      auto const one = [&](auto const& h) {
        float const weight = h.weight.resolve({}, "the weight of a head", 0, setting::unbounded);
        std::size_t const n = h.output.size();
        auto const slope = gradients.empty() ? gradients : gradients.subspan(output, n);
        total += double(weight) * h.with_labels(truth.subspan(first, h.labels), [&](auto labels_of_head) {
          return h.loss(h.output, 1, outputs.subspan(output, n), labels_of_head, slope);
        });
        for (T& d : slope) d *= T(weight) / T(batch);
        output += n;
        first += h.labels;
      };
      edl::unpack([&](auto const&... h) { (one(h), ...); }, all);
    }
    return batch > 0 ? total / batch : 0;
  }
};

/// The loss of a network with several heads: `heads(head<"click", 1>(…), head<"stars", 5>(…, 0.5f))`.
template <class... Head>
constexpr head_list<Head...> heads(Head... all) {
  static_assert(sizeof...(Head) > 1, "edl: heads are at least two");
  constexpr auto twins = [] {
    std::string_view const names[] = {Head::name...};
    for (auto const& one : names)
      if (std::ranges::count(names, one) > 1) return true;
    return false;
  };
  static_assert(!twins(), "edl: two heads of the model's `loss` have the same name");
  return {{all...}};
}

}  // namespace edl::nn

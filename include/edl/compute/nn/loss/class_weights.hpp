// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>

namespace edl::nn {

/// How much samples of each class count, from the first class on: `.class_weights = {1, 1, 5}`. At most 64;
/// of none, all count 1. The loss of a sample is multiplied by the weight of its class. The mean still
/// divides by the number of samples, as Keras does, so that minibatches add up.
class class_weights {
 public:
  static constexpr std::size_t most = 64;

  constexpr class_weights() = default;
  template <class... Weight>
    requires(sizeof...(Weight) > 0 && sizeof...(Weight) <= most &&
             (std::convertible_to<Weight, float> && ...))
  constexpr explicit(false) class_weights(Weight... weights)
      : weights_{float(weights)...}, count_(sizeof...(weights)) {}

  constexpr std::size_t count() const { return count_; }
  constexpr float operator[](std::size_t label) const { return count_ == 0 ? 1 : weights_[label]; }

  /// There are none, or one for each of so many classes, finite and not negative.
  constexpr bool fit(std::size_t classes) const {
    bool good = count_ == 0 || count_ == classes;
    for (std::size_t i = 0; i < count_; ++i)
      good = good && weights_[i] >= 0 && weights_[i] - weights_[i] == 0;
    return good;
  }

 private:
  std::array<float, most> weights_{};
  std::size_t count_ = 0;
};

}  // namespace edl::nn

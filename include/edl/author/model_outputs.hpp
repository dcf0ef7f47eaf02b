// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <tuple>
#include <vector>

#include "edl/compute/nn/losses.hpp"
#include "edl/core/shape.hpp"
#include "edl/job/train/prediction/model_output.hpp"

namespace edl::author {

template <class Loss>
constexpr output_meaning meaning_of() {
  if constexpr (std::same_as<Loss, nn::softmax_cross_entropy> || std::same_as<Loss, nn::softmax_focal>)
    return output_meaning::classes;
  else if constexpr (std::same_as<Loss, nn::sigmoid_cross_entropy> || std::same_as<Loss, nn::sigmoid_focal>)
    return output_meaning::probabilities;
  else
    return output_meaning::numbers;
}

/// The outputs of a network with this loss: one for each head, or one.
template <class Loss>
std::vector<model_output> model_outputs(shape all) {
  if constexpr (requires(Loss const& l) { l.all; }) {
    std::vector<model_output> heads;
    [&]<class... Heads>(std::tuple<Heads...> const*) {
      std::size_t first = 0;
      (..., (heads.push_back(
                 {std::string(Heads::name), Heads::output, first, meaning_of<typename Heads::loss_type>()}),
             first += Heads::output.size()));
    }(static_cast<decltype(Loss::all) const*>(nullptr));
    return heads;
  } else {
    return {{"output", all, 0, meaning_of<Loss>()}};
  }
}

}  // namespace edl::author

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// The meaning of outputs, determined by their loss.
enum class output_meaning {
  numbers,        ///< plain numbers
  classes,        ///< the softmax of all is a probability for each class
  probabilities,  ///< the sigmoid of each is a probability
};

/// Some neighbouring outputs of a network: of a head, or all.
struct model_output {
  std::string name;       ///< of the head, or "output"
  shape extents;          ///< of a record's
  std::size_t first = 0;  ///< offset among the record's outputs
  output_meaning meaning = output_meaning::numbers;

  std::size_t size() const { return extents.size(); }
  view<float> of(view<float> outputs) const { return outputs.subspan(first, size()); }
};

/// The class of the largest of these outputs, the first of equals, and its probability by softmax.
struct likeliest_class {
  std::size_t number = 0;
  float probability = 0;

  explicit likeliest_class(view<float> outputs)
      : number(std::size_t(std::ranges::max_element(outputs) - outputs.begin())) {
    double sum = 0;
    for (float const x : outputs) sum += std::exp(double(x) - double(outputs[number]));
    probability = float(1 / sum);
  }
};

/// The sigmoid of an output.
inline float probability_of(float output) { return float(1 / (1 + std::exp(-double(output)))); }

}  // namespace edl

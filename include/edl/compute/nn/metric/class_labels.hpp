// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::detail {

/// Calls act(outputs, label) for each class label of a minibatch that counts, and says how many do. A sample
/// has one label or, of `nn::sequence_cross_entropy`, one for each place; those below 0 do not count.
template <class T, class Act>
std::size_t each_label(shape output, int batch, view<T> outputs, view<std::int32_t> labels, Act&& act) {
  if (labels.empty()) return 0;
  std::size_t const classes = std::size_t(batch) * output.size() / labels.size();
  std::size_t counted = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0) continue;
    act(outputs.subspan(i * classes, classes), std::size_t(labels[i]));
    ++counted;
  }
  return counted;
}

/// The class of the largest output, the first of equal ones. Where an output is NaN there is none: as many as
/// there are classes.
template <class T>
std::size_t predicted(view<T> x) {
  std::size_t best = 0;
  bool all = x[0] == x[0];
  for (std::size_t k = 1; k < x.size(); ++k) {
    all = all && x[k] == x[k];
    if (x[k] > x[best]) best = k;
  }
  return all ? best : x.size();
}

}  // namespace edl::detail

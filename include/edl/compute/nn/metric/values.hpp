// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace edl {

/// What an evaluation has found: names and values, in the order of the model's metrics.
using metric_values = std::vector<std::pair<std::string, double>>;

/// The values as Python prints a dict of numpy.float32: `{'accuracy': 0.97, 'loss': 1e-05}`. Each has the
/// fewest digits that give the same float back, and an exponent below 1e-4 and from 1e16 on. The counts of a
/// confusion matrix are one entry, `'confusion': [[50, 2], [1, 47]]`, with a row for each class that is true.
std::string to_text(metric_values const& values);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/nn/metric/values.ipp"
#endif

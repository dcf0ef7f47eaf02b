// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace edl::onnx {

/// Values of a record that a model reads: float32 numbers, or ids.
struct record_values {
  std::string name;
  std::vector<std::size_t> extents;  ///< of a record's; none: one value
};

/// An input of numbers computed from a record: number i is factors[i] · x[places[i]] + offsets[i], where x
/// holds the values of `from`, one feature after the other.
struct preprocessing {
  std::vector<record_values> from;
  std::vector<std::int64_t> places;
  std::vector<float> factors, offsets;
};

}  // namespace edl::onnx

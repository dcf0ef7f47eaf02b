// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "edl/base/checkpoint/safetensors.hpp"

namespace edl::checkpoint {

/// Whether float32 can represent all numbers of a dtype: F32, F16 (IEEE 754 binary16) and BF16.
bool widens_to_float(std::string_view dtype);

/// All numbers of a tensor of this file, row-major and exact, including infinities and NaN. Throws
/// edl::error, which names file and tensor, for a dtype that does not widen, and if the file cannot be read.
/// Thread safety: safe.
std::vector<float> read_floats(safetensors_file const& file, tensor const& t);

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/float_tensor.ipp"
#endif

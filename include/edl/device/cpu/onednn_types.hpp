// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef EDL_ONEDNN

#include <cstdint>
#include <dnnl.hpp>

namespace edl::detail {

/// What a kernel multiplies.
enum class factors : std::uint8_t { float32, bfloat16, int8 };

inline dnnl::memory::data_type data_type_of(factors f) {
  using enum dnnl::memory::data_type;
  return f == factors::float32 ? f32 : f == factors::bfloat16 ? bf16 : s8;
}

/// And what it sums in.
inline dnnl::memory::data_type sum_type_of(factors f) {
  using enum dnnl::memory::data_type;
  return f == factors::int8 ? s32 : f32;
}

}  // namespace edl::detail

#endif

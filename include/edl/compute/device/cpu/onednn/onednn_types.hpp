// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef EDL_ONEDNN

#include <cstdint>
#include <dnnl.hpp>

namespace edl::detail {

/// What a kernel multiplies.
enum class factors : std::uint8_t { float32, bfloat16 };

inline dnnl::memory::data_type data_type_of(factors f) {
  using enum dnnl::memory::data_type;
  return f == factors::float32 ? f32 : bf16;
}

/// Moves numbers from one layout to another. Several threads may do so at once. Throws dnnl::error where
/// oneDNN wants memory of its own for that, which they would share.
inline dnnl::reorder reorder_of(dnnl::engine const& on, dnnl::memory::desc const& from,
                                dnnl::memory::desc const& to) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::reorder::primitive_desc const d(on, from, on, to, attributes);
  if (d.scratchpad_desc().get_size() > 0)
    throw dnnl::error(dnnl_unimplemented, "a reorder that works in memory of its own");
  return dnnl::reorder(d);
}

}  // namespace edl::detail

#endif

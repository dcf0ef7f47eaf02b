// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef EDL_ONEDNN

#include <dnnl_version.h>

#include <cstdint>
#include <dnnl.hpp>

namespace edl::detail {

/// What a kernel multiplies.
enum class factors : std::uint8_t { float32, bfloat16 };

inline dnnl::memory::data_type data_type_of(factors f) {
  using enum dnnl::memory::data_type;
  return f == factors::float32 ? f32 : bf16;
}

// Where oneDNN 2 makes a descriptor of an operation first, and of that the primitive's, oneDNN 3 makes the
// latter of the same arguments. No other header knows which of the two it is.

/// The description of a primitive of these arguments.
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc described(dnnl::engine const& on, dnnl::primitive_attr const& attributes,
                                             Arguments const&... arguments) {
#if DNNL_VERSION_MAJOR < 3
  return {typename Primitive::desc(arguments...), attributes, on};
#else
  return {on, arguments..., attributes};
#endif
}

/// The description of a backward pass of these arguments, beside its forward pass.
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc described(dnnl::engine const& on, dnnl::primitive_attr const& attributes,
                                             dnnl::convolution_forward::primitive_desc const& forward,
                                             Arguments const&... arguments) {
#if DNNL_VERSION_MAJOR < 3
  return {typename Primitive::desc(arguments...), attributes, on, forward};
#else
  return {on, arguments..., forward, attributes};
#endif
}

/// Attributes of a primitive that works in memory of the caller, and applies relu to its result where asked.
inline dnnl::primitive_attr attributes_of(bool relu) {
  dnnl::primitive_attr made;
  made.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (!relu) return made;
  dnnl::post_ops then;
#if DNNL_VERSION_MAJOR < 3
  then.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
#else
  then.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
#endif
  made.set_post_ops(then);
  return made;
}

/// Moves numbers from one layout to another. Several threads may do so at once. Throws dnnl::error where
/// oneDNN wants memory of its own for that, which they would share.
inline dnnl::reorder reorder_of(dnnl::engine const& on, dnnl::memory::desc const& from,
                                dnnl::memory::desc const& to) {
  dnnl::reorder::primitive_desc const d(on, from, on, to, attributes_of(false));
  if (d.scratchpad_desc().get_size() > 0)
    throw dnnl::error(dnnl_unimplemented, "a reorder that works in memory of its own");
  return dnnl::reorder(d);
}

}  // namespace edl::detail

#endif

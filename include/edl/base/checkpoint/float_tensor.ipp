// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "edl/base/checkpoint/float_tensor.hpp"
#include "edl/core/bfloat16.hpp"
#include "edl/core/error.hpp"
#include "edl/core/float16.hpp"
#include "edl/core/inline.hpp"

namespace edl::checkpoint {

EDL_INLINE bool widens_to_float(std::string_view dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16";
}

EDL_INLINE std::vector<float> read_floats(safetensors_file const& file, tensor const& t) {
  if (!widens_to_float(t.dtype))
    throw error(
        fmt::format("tensor '{}' of {} is {}; numbers are read of F32, F16 and BF16: save it as one "
                    "of them",
                    detail::shown(t.name), file.path(), t.dtype));
  std::vector<float> values(std::size_t(t.end - t.begin) / element_bytes(t.dtype));
  if (t.dtype == "F32") {
    file.read(t, 0, std::as_writable_bytes(std::span(values)));
    return values;
  }
  auto* const widen = t.dtype == "F16" ? from_float16 : from_bfloat16;
  std::array<std::uint16_t, 4096> piece;  // so that memory holds a large tensor only once
  for (std::size_t at = 0; at < values.size(); at += piece.size()) {
    auto const some = std::span(piece).first(std::min(piece.size(), values.size() - at));
    file.read(t, at * sizeof(std::uint16_t), std::as_writable_bytes(some));
    std::ranges::transform(some, values.begin() + std::ptrdiff_t(at), widen);
  }
  return values;
}

}  // namespace edl::checkpoint

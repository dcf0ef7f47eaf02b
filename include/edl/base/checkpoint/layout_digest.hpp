// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "edl/core/layout.hpp"

namespace edl::checkpoint {

/// A hash of a layout: names, extents, order and the border between parameters and state. Different layouts
/// collide with probability 2^-64. It is FNV-1a, 64 bits, over little-endian fields. Only processes and files
/// with one layout are compatible.
inline std::uint64_t layout_digest(parameter_layout const& layout) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  auto const byte = [&](unsigned char b) { hash = (hash ^ b) * 0x100000001B3u; };
  auto const number = [&](std::uint64_t n) {
    for (int shift = 0; shift < 64; shift += 8) byte(static_cast<unsigned char>(n >> shift));
  };
  number(layout.parameters);
  number(layout.state);
  for (variable const& v : layout.variables) {
    number(v.name.size());
    for (char c : v.name) byte(static_cast<unsigned char>(c));
    number(static_cast<std::uint64_t>(v.dims.rank));
    for (int i = 0; i < v.dims.rank; ++i) number(static_cast<std::uint64_t>(v.dims.sizes[std::size_t(i)]));
  }
  for (table_shape const& t : layout.tables) {
    number(t.name.size());
    for (char c : t.name) byte(static_cast<unsigned char>(c));
    number(std::uint64_t(t.width));
  }
  return hash;
}

}  // namespace edl::checkpoint

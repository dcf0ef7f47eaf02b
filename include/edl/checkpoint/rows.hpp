// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/checkpoint/checkpoint.hpp"
#include "edl/sparse/table_cut.hpp"

/// The rows of tables in a checkpoint: a safetensors file per server beside its variables,
/// `rows-<i>-of-<M>-<16 hex digits>.safetensors`. It holds hash slots [first, last), table by table. A table
/// is one tensor `tables/<name>` of bytes, (rows, row bytes), by hash slot. A row is its id (u64), its last
/// use and its uses (u32 each), its weights, then each of the optimiser's slots (f32), all little-endian. The
/// metadata say how many rows each hash slot has. Any number of servers' files are read by any number of
/// servers.
namespace edl::checkpoint {

/// What one server puts into a checkpoint. Spans stay the caller's.
struct rows_part {
  std::uint32_t server = 0, servers = 1;
  std::uint64_t version = 0;
  element_range slots;                                               ///< hash slots
  std::span<std::shared_ptr<sparse::table_cut const> const> tables;  ///< in the order of the layout
  std::span<std::string const> slot_names;                           ///< of the optimiser
  std::span<segment const> segments;                                 ///< cover the hash slots, in order
};

/// Whether a name is that of such a file.
bool is_rows(std::string_view name);

/// Writes a server's file as `write_part` does. What it takes of memory does not grow with the tables.
manifest::file write_rows(std::string const& path, parameter_layout const& layout, rows_part const& part);

/// Calls put(table, header, weights and then slots) for each row of these hash slots, from whichever files
/// hold them. Each of these files is checked against size and CRC-32 first. Tables, widths and the names of
/// the optimiser's slots must agree: the edl::error names what does not. Returns the segments of the hash
/// slots.
std::vector<segment> read_rows(
    std::string const& path, parameter_layout const& layout, element_range slots,
    std::span<std::string const> slot_names,
    std::function<void(std::size_t table, sparse::row_header const&, view<float>)> const& put);

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/checkpoint/rows.ipp"
#endif

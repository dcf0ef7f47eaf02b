// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/compute/sparse/table_snapshot.hpp"

/// The rows of tables in a checkpoint: safetensors files per server beside its variables,
/// `rows-<i>-of-<M>-<16 hex digits>.safetensors`. A server's first file contains hash slots [first, last)
/// completely. Each following file contains the changes since the one before, which it names. A checkpoint is
/// self-contained: files of the previous one are linked into its directory. Any number of servers can read
/// the files of any number of servers.
///
/// A table is `tables/<name>` of bytes, (rows, row bytes), by hash slot. A row is its id (u64), its last use
/// and its uses (u32 each), its weights, then each of the optimiser's slots (f32), all little-endian.
/// Candidates are in `tables/<name>/candidates`, as rows without values. Ids that were removed from both are
/// in `tables/<name>/removed` (u64). The metadata have the counts for each hash slot.
namespace edl::checkpoint {

/// One server's part of a checkpoint. The caller owns the spans' memory.
struct rows_part {
  std::uint32_t server = 0, servers = 1;
  std::uint64_t version = 0;
  element_range slots;                                                    ///< hash slots
  std::span<std::shared_ptr<sparse::table_snapshot const> const> tables;  ///< in the order of the layout
  std::span<std::string const> slot_names;                                ///< of the optimiser
  std::span<segment const> segments;                                      ///< cover the hash slots, in order
};

/// The files of a server's rows in the last checkpoint that it wrote, and their state.
struct row_chain {
  std::string path;                     ///< of that checkpoint
  std::vector<manifest::file> files{};  ///< the complete one first; empty: nothing is written yet
  std::vector<segment> segments{};
  std::vector<std::uint64_t> removed{};  ///< of each table: its place among `sparse::removals`
};

namespace detail {

inline constexpr std::size_t rows_at_a_time = std::size_t{1} << 20;  // bytes

constexpr std::size_t row_bytes(int width, std::size_t slots) {
  return sizeof(sparse::row_header) + std::size_t(width) * (1 + slots) * sizeof(float);
}

}  // namespace detail

/// Whether a name is that of a file of rows.
bool is_rows(std::string_view name);

/// Writes a server's rows as `write_part` writes variables, and returns all files for the manifest. It writes
/// only the changes if the chain permits. It writes everything if the chain has `most_changes` files of
/// changes, or as many bytes of them as the complete file, if the chain's files cannot be linked
/// (`bucket::place::link`), or if the changes are unknown. The chain is then updated. Its memory use does not
/// grow with the tables.
std::vector<manifest::file> write_rows(bucket::place const& to, parameter_layout const& layout,
                                       rows_part const& part, row_chain& chain, std::size_t most_changes);

/// The callbacks for the contents, in this order for each file. A row without values is a candidate. A row
/// replaces a candidate, and an existing row.
struct row_sink {
  std::function<void(std::size_t table, std::uint64_t id)> remove;
  std::function<void(std::size_t table, sparse::row_header const&, view<float> values)> put;
};

/// Reads the rows of hash slots `rows`, from the files that contain them. Verifies size and CRC-32 of each
/// file first, and a file of changes against its predecessor. Tables, widths and the names of the optimiser's
/// slots must agree: the edl::error names the difference. Returns the segments of hash slots `slots`, which
/// include `rows`.
std::vector<segment> read_rows(std::string const& path, parameter_layout const& layout, element_range slots,
                               element_range rows, std::span<std::string const> slot_names,
                               row_sink const& to);

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/read_rows.ipp"
#include "edl/base/checkpoint/write_rows.ipp"
#endif

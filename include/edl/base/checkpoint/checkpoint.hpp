// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/base/checkpoint/manifest.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/ledger.hpp"
#include "edl/core/partition.hpp"
#include "edl/core/span.hpp"

/// A checkpoint is a directory `version-N`: a safetensors file per server, `variables-<i>-of-<M>-<16 hex
/// digits>.safetensors`, and `manifest.json`, renamed into place last, which names them. The digits are
/// random for each write, so a late writer cannot overwrite a file that a manifest names. Older versions of
/// this program wrote names without them. A file contains the server's elements [first, last) of the arena:
/// parameters by name, carried state as `state/<name>`, slots as `slots/<slot>/<name>`. A variable of which
/// the server has only elements [b, e), in row-major order, is a one-dimensional `<name>[b:e]`. The metadata
/// contain the layout and the segments as JSON. Any number of servers can read the files of any number of
/// servers.
namespace edl::checkpoint {

/// Elements of the arena with one history. A server has one segment, until it takes over elements from
/// servers that had not applied the same minibatches.
struct segment {
  element_range elements;
  std::uint64_t steps = 0;  ///< of the optimiser on these elements
  edl::ledger ledger;       ///< minibatches in these steps

  friend bool operator==(segment const&, segment const&) = default;
};

/// One server's part of a checkpoint. The caller owns the spans' memory.
struct checkpoint_part {
  std::uint32_t server = 0, servers = 1;
  std::uint64_t version = 0;
  element_range elements;
  view<float> variables;                    ///< as many as `elements`
  std::span<std::string const> slot_names;  ///< without '/'
  std::span<view<float> const> slots;       ///< one per name, as long as the parameters among `elements`
  std::span<segment const> segments;        ///< cover `elements`, in order
};

/// `<directory>/version-<version>`.
std::string checkpoint_path(std::string const& directory, std::uint64_t version);

/// Creates the directory of a new checkpoint, and returns the files of earlier attempts in it, which
/// `commit_checkpoint` removes. An existing checkpoint stays valid until then.
std::vector<std::string> begin_checkpoint(bucket::place const& to);

/// Writes a server's file, under a temporary name first, and syncs it to disk. On failure (e.g. a full disk)
/// it throws edl::error with the reason, and the file does not exist. Thread safety: safe for different
/// servers.
manifest::file write_part(bucket::place const& to, parameter_layout const& layout,
                          checkpoint_part const& part);

/// Throws if this process must not write any more (`directory_lock::check`).
using permission = std::function<void()>;

/// The last step: `contents.files` are the results of `write_part` on every server, in order. Throws if a
/// file is missing or has another size. Calls `allowed` last, immediately before the rename, which fails if
/// another process has removed the temporary file. In a bucket it fails if another process has written a
/// manifest since `allowed` was called. Then it removes the files of `earlier` attempts that
/// `contents` does not name.
void commit_checkpoint(bucket::place const& to, manifest const& contents,
                       std::span<std::string const> earlier = {}, permission const& allowed = {});

/// Whether a name is that of a server's file, from this or an older version of the program.
bool is_part(std::string_view name);

/// Reads elements [first, first + variables.size()) of the arena from the files that contain them. For the
/// slots in `slot_names` it reads the parameters among these. It verifies size and CRC-32 of each file first.
/// Layouts must agree: the edl::error names the variable that differs. Returns the segments of the range; an
/// empty range gets its neighbour's. After an error the spans' contents are unspecified.
std::vector<segment> read_range(std::string const& path, parameter_layout const& layout, std::size_t first,
                                std::span<float> variables, std::span<std::string const> slot_names = {},
                                std::span<std::span<float> const> slots = {});

/// The histories of the elements in one file of a checkpoint, for any model; verifies the file first.
std::vector<segment> read_segments(std::string const& path, manifest::file const& listed);

/// The histories of everything in a checkpoint, each element and each hash slot once. For rows in several
/// files, complete or changes, the last file counts.
std::vector<segment> read_histories(std::string const& path);

/// The names of the slots in a checkpoint, for display.
std::vector<std::string> slots_of(std::string const& path);

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/checkpoint.ipp"
#endif

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
/// digits>.safetensors`, and `manifest.json`, renamed into place last, which names them. The digits are drawn
/// anew whenever a file is written: so nobody, however late, can write over a file that a manifest names.
/// Older versions of this program wrote names without them. A file holds the server's elements [first, last)
/// of the arena. Parameters stand there by their name, carried state as `state/<name>`, slots as
/// `slots/<slot>/<name>`. A variable of which the server has but elements [b, e), in row-major order, is a
/// one-dimensional `<name>[b:e]`. Its metadata hold the layout and the segments as JSON. Any number of
/// servers' files are read by any number of servers.
namespace edl::checkpoint {

/// Elements of the arena with one history. A server has one, until it takes over elements from servers that
/// had not applied the same minibatches when they were cut.
struct segment {
  element_range elements;
  std::uint64_t steps = 0;  ///< that the optimiser has made on them
  edl::ledger ledger;       ///< minibatches in these steps

  friend bool operator==(segment const&, segment const&) = default;
};

/// What one server puts into a checkpoint. Spans stay the caller's.
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

/// Makes the directory of a checkpoint about to be written, and returns the files of earlier attempts in it:
/// `commit_checkpoint` removes them. A checkpoint that is there already stays valid until then. `path`: as of
/// `checkpoint_path`.
std::vector<std::string> begin_checkpoint(std::string const& path);

/// Writes a server's file, under a temporary name first, and forces it to the disk. On failure (a full disk)
/// the file does not exist and the edl::error says why. Thread safety: safe for different servers.
manifest::file write_part(std::string const& path, parameter_layout const& layout,
                          checkpoint_part const& part);

/// Whoever must not write any more throws (`directory_lock::check`).
using permission = std::function<void()>;

/// The last step: `contents.files` are what `write_part` returned on every server, in order. Refuses when one
/// of them is missing or has another size. `allowed` is asked last, when nothing but a rename is left to do;
/// a rename whose temporary another process has removed fails. Then the files of `earlier` attempts that
/// `contents` does not name go.
void commit_checkpoint(std::string const& path, manifest const& contents,
                       std::span<std::string const> earlier = {}, permission const& allowed = {});

/// Whether a name is that of a server's file, of this version of the program or of an older one.
bool is_part(std::string_view name);

/// Reads elements [first, first + variables.size()) of the arena from whichever files hold them. Of the slots
/// named in `slot_names` it reads the parameters among these. Each of these files is checked against size and
/// CRC-32 first. Layouts must agree: the edl::error names the variable that does not. Returns the segments of
/// the range; an empty range gets its neighbour's. After an error the spans hold anything.
std::vector<segment> read_range(std::string const& path, parameter_layout const& layout, std::size_t first,
                                std::span<float> variables, std::span<std::string const> slot_names = {},
                                std::span<std::span<float> const> slots = {});

/// The histories of the elements in one file of a checkpoint, whatever the model; the file is checked first.
std::vector<segment> read_segments(std::string const& path, manifest::file const& listed);

/// The histories of everything in a checkpoint, each element and each hash slot once. Of rows that several
/// files hold, whole and changes, the last one speaks.
std::vector<segment> read_histories(std::string const& path);

/// What a checkpoint holds beside its variables, for who wants to see: names of the slots.
std::vector<std::string> slots_of(std::string const& path);

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/checkpoint.ipp"
#endif

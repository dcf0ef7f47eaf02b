// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edl/core/generation.hpp"
#include "edl/core/ledger.hpp"

namespace edl::checkpoint {

/// What makes a directory of files a checkpoint: `manifest.json`. It names every file with size and checksum,
/// and the parameters without which the ledger's keys mean nothing.
struct manifest {
  struct file {
    std::string name;  ///< within the directory
    std::uint64_t bytes = 0;
    std::uint32_t crc32 = 0;    ///< zlib's, of the whole file
    std::uint64_t version = 0;  ///< of that server when it was cut
    edl::ledger ledger;         ///< what all of the file's elements have applied
  };
  struct shard {
    std::string name;
    std::uint64_t records = 0;
    std::uint64_t digest = 0;  ///< of its content (`data::source::digest`); 0: not known
  };

  std::string job;
  std::uint64_t version = 0;     ///< of the model
  std::uint64_t generation = 0;  ///< whose state it is; 0: written by a version of edl that did not tell
  std::uint64_t layout = 0;      ///< layout_digest
  std::uint64_t minibatch_size = 0;
  std::uint64_t records_per_task = 0;
  std::uint64_t seed = 0;
  std::optional<bool> shuffle;  ///< none: written by a version of edl that did not keep it
  std::uint64_t epochs = 0;
  std::string hyperparameters;  ///< names and values, as `--set` takes them
  std::string record;  ///< what the model takes of one, as `to_text` of record_facts; empty: not known
  std::vector<shard> shards;
  std::vector<file> files;  ///< by server

  position at() const { return {generation, version}; }

  /// What the job has applied: the intersection over the servers.
  edl::ledger applied() const;
};

/// As JSON, with a checksum over its own content.
std::string to_json(manifest const& from);

/// The manifest of such a text; `where` (its file) stands in errors. A text that is damaged or edited, names
/// a file outside the directory, or lacks a field is an edl::error.
manifest manifest_from_json(std::string_view text, std::string_view where);

/// The manifest of a checkpoint's directory.
manifest read_manifest(std::string const& directory);

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/manifest.ipp"
#endif

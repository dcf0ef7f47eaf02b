// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edl/base/bucket/place.hpp"
#include "edl/core/generation.hpp"
#include "edl/core/ledger.hpp"

namespace edl::checkpoint {

/// The `manifest.json` that makes a directory a checkpoint. It names every file with size and checksum, and
/// the parameters that give the ledger's keys their meaning.
struct manifest {
  struct file {
    std::string name;  ///< within the directory
    std::uint64_t bytes = 0;
    std::uint32_t crc32 = 0;    ///< zlib's, of the whole file
    std::uint64_t version = 0;  ///< of that server at the snapshot
    edl::ledger ledger;         ///< applied to all of the file's elements
  };
  struct shard {
    std::string name;
    std::uint64_t records = 0;
    std::uint64_t digest = 0;  ///< of its content (`data::source::digest`); 0: unknown
  };

  std::string job;
  std::uint64_t version = 0;     ///< of the model
  std::uint64_t generation = 0;  ///< of the state; 0: written by an older version of edl
  std::uint64_t layout = 0;      ///< layout_digest
  std::uint64_t minibatch_size = 0;
  std::uint64_t records_per_task = 0;
  std::uint64_t seed = 0;
  std::optional<bool> shuffle;  ///< empty: written by an older version of edl
  std::uint64_t epochs = 0;
  std::string hyperparameters;   ///< names and values, in the form of `--set`
  std::string base_model;        ///< path of an adapted network's base; empty: there is none
  std::uint32_t base_crc32 = 0;  ///< of its values (`checkpoint::base_model`)
  std::string record;  ///< the features that the model takes, `to_text` of record_facts; empty: unknown
  std::vector<shard> shards;
  std::vector<file> files;  ///< by server

  position at() const { return {generation, version}; }

  /// What the job has applied: the intersection over all servers.
  edl::ledger applied() const;
};

/// Converts to JSON, with a checksum over its own content.
std::string to_json(manifest const& from);

/// The manifest of a JSON text; `where` (its file) appears in errors. Throws edl::error if the text is
/// damaged or edited, names a file outside the directory, or lacks a field.
manifest manifest_from_json(std::string_view text, std::string_view where);

/// The manifest of a checkpoint.
manifest read_manifest(bucket::place const& checkpoint);

/// Whether there is one.
bool has_manifest(bucket::place const& checkpoint);

namespace detail {

/// The file of a manifest, with its tag, and whether it is empty: in a bucket an object of line ends stands
/// where an attempt must not be completed any more.
std::optional<bucket::place::text> manifest_text(bucket::place const& checkpoint);
bool is_empty(bucket::place::text const& manifest);

}  // namespace detail
}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/manifest.ipp"
#endif

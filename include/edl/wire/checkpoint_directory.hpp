// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace edl::wire {

/// How closely a checkpoint is looked at.
enum class check { sizes, checksums };

/// Throws edl::error that says what is wrong with the checkpoint in `path` (a `version-N`), if anything is.
void verify_checkpoint(std::string const& path, check how = check::checksums);

/// The path of the newest valid checkpoint among the `version-N` of `directory`; none if it has none or does
/// not exist.
std::optional<std::string> newest_valid(std::string const& directory, check how = check::checksums);

/// Removes the oldest valid checkpoints until `keep` are left, and attempts that came to nothing and are
/// older than all that is kept. 0 keeps everything. Call it when the newest is valid (it looks for itself, by
/// size): the newest valid is never removed. A manifest goes first, so that what is half removed is no
/// checkpoint.
void prune(std::string const& directory, std::uint64_t keep);

}  // namespace edl::wire

#ifdef EDL_HEADER_ONLY
#include "edl/wire/checkpoint_directory.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "edl/base/checkpoint/checkpoint.hpp"

namespace edl::checkpoint {

/// How thoroughly a checkpoint is verified.
enum class check { sizes, checksums };

/// Throws edl::error, which names the fault, if the checkpoint in `path` (a `version-N`) is invalid. To
/// compute checksums of objects it makes a copy, which `bucket::place::copy` then finds.
void verify_checkpoint(bucket::place const& path, check how = check::checksums);

/// The result of a search among the `version-N` of a directory.
struct checkpoint_search {
  /// A checkpoint that was once complete, and the reason why it cannot be used.
  struct damage {
    std::string path, why;
  };

  std::optional<std::string> newest;  ///< valid one
  std::vector<damage> passed_over;    ///< damaged ones that may be newer, the newest first

  /// One line for a log: the skipped checkpoints, the reasons, and the one used instead. Empty if none was
  /// skipped.
  std::string warning() const;

  /// The same for the newest attempt without a manifest, if it may be newer than the one used. It is not
  /// damage; log it only if no writer can be working on it.
  std::string unfinished;
};

/// What to do if storage cannot be read for a temporary reason: throw storage_error, or treat the checkpoint
/// as damaged.
enum class unreadable { refused, passed_over };

/// Looks for the newest valid checkpoint among the `version-N` of `directory`, which need not exist: the
/// newest by `position`, not by version. An attempt without a manifest was never complete, and is not damage.
checkpoint_search find_checkpoint(bucket::place const& directory, check how = check::checksums,
                                  unreadable what = unreadable::refused);

/// The path of the newest valid checkpoint of `find_checkpoint`; empty if there is none. Throws storage_error
/// if one cannot be read for a temporary reason.
std::optional<std::string> newest_valid(bucket::place const& directory, check how = check::checksums);

/// The paths of all valid checkpoints of a directory, the newest first, without those that cannot be read
/// now.
std::vector<std::string> valid_checkpoints(bucket::place const& directory, check how = check::checksums);

/// Removes leftovers of ended attempts in the `version-N` of `directory`: temporaries whose writers have
/// ended, and, with `uncommitted`, servers' files that no manifest names and incomplete manifests, so that a
/// superseded master cannot complete them. In a bucket, with `uncommitted`, all incomplete uploads as well,
/// and nothing without. Call it only as the exclusive writer (`directory_lock`), before
/// writing. It does not change a checkpoint whose manifest is damaged.
void remove_litter(bucket::place const& directory, bool uncommitted);

/// Removes the oldest valid checkpoints by `position`, until `keep` are left, and failed attempts older than
/// all of these. 0 keeps everything. Call it when the newest is valid (it checks that itself, by size): it
/// never removes the newest valid one. It removes a manifest first, so that a partly removed directory is not
/// a checkpoint. Calls `allowed` before each removal. It does not remove what cannot be read now. Of the
/// checkpoints set aside it removes those that the newest valid one has passed.
void prune(bucket::place const& directory, std::uint64_t keep, permission const& allowed = {});

/// Moves checkpoints into `set-aside` in `directory`, which is never searched. In a bucket they stay, and an
/// object there names their versions and the tags of their manifests. `set_aside_newer` moves the
/// `version-N` with N above `newest`, which may be wrong. `set_aside_strays` moves those with a higher
/// version than the newest valid one by `position`: the job no longer descends from them. Returns one line
/// for a log; empty: there were none. Call it only as the exclusive writer (`directory_lock`). Throws error.
std::string set_aside_newer(bucket::place const& directory, std::uint64_t newest,
                            permission const& allowed = {});
std::string set_aside_strays(bucket::place const& directory, permission const& allowed = {});

/// What `.edl-epoch` in a directory says: the epoch that a master has claimed last, and which one it was.
struct claimed_epoch {
  std::uint64_t epoch = 0;  ///< 0: none
  std::string owner = {};   ///< as `directory_lock` draws it; empty: unknown
  std::string tag = {};     ///< of the object (`bucket::place::text`)
};

/// Reads it, or syncs it to disk. Throws storage_error. `what.tag`: of the claim that it replaces; false: in
/// a bucket somebody has claimed since.
claimed_epoch read_epoch(bucket::place const& directory);
bool write_epoch(bucket::place const& directory, claimed_epoch const& what);

/// The newest epoch that was claimed in `directory`, or of which there is a checkpoint; 0: none. Throws
/// storage_error.
std::uint64_t newest_epoch(bucket::place const& directory);

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/directory.ipp"
#endif

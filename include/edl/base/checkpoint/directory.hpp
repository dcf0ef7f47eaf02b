// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "edl/base/checkpoint/checkpoint.hpp"

namespace edl::checkpoint {

/// How closely a checkpoint is looked at.
enum class check { sizes, checksums };

/// Throws edl::error that says what is wrong with the checkpoint in `path` (a `version-N`), if anything is.
void verify_checkpoint(std::string const& path, check how = check::checksums);

/// What the `version-N` of a directory are good for.
struct checkpoint_search {
  /// A checkpoint that was complete once, and the reason why it cannot be used.
  struct damage {
    std::string path, why;
  };

  std::optional<std::string> newest;  ///< valid one
  std::vector<damage> passed_over;    ///< damaged ones that may be newer, the newest first

  /// One line for a log: which checkpoints were passed over, why, and what is taken instead. Empty when none
  /// was.
  std::string warning() const;

  /// The same of the newest attempt without a manifest, where it may be newer than what is taken: it is no
  /// damage, and is to be told where no writer can be at work on it.
  std::string unfinished;
};

/// What to do about storage that cannot be read for a reason that may pass: throw storage_error, or count the
/// checkpoint as damaged.
enum class unreadable { refused, passed_over };

/// Looks for the newest valid checkpoint among the `version-N` of `directory`, which need not exist: the
/// newest by `position`, not by version. An attempt without a manifest was never complete and is no damage.
checkpoint_search find_checkpoint(std::string const& directory, check how = check::checksums,
                                  unreadable what = unreadable::refused);

/// The path of the newest valid checkpoint of `find_checkpoint`; none if there is none. Throws storage_error
/// when one cannot be looked at for a reason that may pass.
std::optional<std::string> newest_valid(std::string const& directory, check how = check::checksums);

/// The paths of all valid checkpoints of a directory, the newest first. One that cannot be read now is left
/// out.
std::vector<std::string> valid_checkpoints(std::string const& directory, check how = check::checksums);

/// Removes what ended attempts have left in the `version-N` of `directory`: temporaries whose writers have
/// ended, and, with `uncommitted`, servers' files that no manifest names and manifests that are not complete
/// yet, so that a superseded master cannot complete them. For who alone writes there (`directory_lock`),
/// before it writes. A checkpoint whose manifest is damaged stays as it is.
void remove_litter(std::string const& directory, bool uncommitted);

/// Removes the valid checkpoints that are the oldest by `position`, until `keep` are left, and attempts that
/// came to nothing and are older than all that is kept. 0 keeps everything. Call it when the newest is valid
/// (it looks for itself, by size): the newest valid is never removed. A manifest goes first, so that what is
/// half removed is no checkpoint. `allowed` is asked before each removal. What cannot be read now is not
/// removed. Of those that were set aside it removes what the newest valid checkpoint has passed.
void prune(std::string const& directory, std::uint64_t keep, permission const& allowed = {});

/// Moves checkpoints into `set-aside` in `directory`, where none is looked for. `set_aside_newer` takes the
/// `version-N` with N above `newest`, which may be wrong. `set_aside_strays` takes those of a higher version
/// than the newest valid one by `position` has: the job has left their line. One line for a log; empty: there
/// were none. For who alone writes there (`directory_lock`). Throws error.
std::string set_aside_newer(std::string const& directory, std::uint64_t newest,
                            permission const& allowed = {});
std::string set_aside_strays(std::string const& directory, permission const& allowed = {});

/// What `.edl-epoch` in a directory says: the epoch that a master has claimed last, and which one it was.
struct claimed_epoch {
  std::uint64_t epoch = 0;  ///< 0: none
  std::string owner = {};   ///< as `directory_lock` draws it; empty: not told
};

/// Reads it, or forces it to the disk. Throws storage_error.
claimed_epoch read_epoch(std::string const& directory);
void write_epoch(std::string const& directory, claimed_epoch const& what);

/// The newest epoch that was claimed in `directory`, or of which there is a checkpoint; 0: none. Throws
/// storage_error.
std::uint64_t newest_epoch(std::string const& directory);

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/directory.ipp"
#endif

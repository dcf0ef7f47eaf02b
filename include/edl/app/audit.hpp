// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>

namespace edl::app {

/// What became of an epoch's records, in every variable of a model: the worst of all histories.
struct epoch_account {
  std::uint64_t records = 0;   ///< in the data set
  std::uint64_t applied = 0;   ///< counted one by one as they were applied, each as often as that
  std::uint64_t skipped = 0;   ///< damaged, and left out
  std::uint64_t left = 0;      ///< not applied yet
  std::uint64_t lost = 0;      ///< marked as applied, and not so
  std::uint64_t repeated = 0;  ///< applied more often than once
  friend bool operator==(epoch_account const&, epoch_account const&) = default;
};

struct audit {
  std::string path, job;
  std::string passed_over;  ///< what is wrong with newer checkpoints of the directory; empty: nothing
  std::uint64_t version = 0;
  std::map<std::uint32_t, epoch_account> epochs;
  bool exact() const;  ///< nothing is lost or repeated
};

/// The account of a checkpoint: `path` is a `version-N`, or a directory of these, whose newest valid one is
/// taken. A copy of what was printed of a checkpoint (its manifest.json) is accepted, too. Every file is read
/// and checked. Two counts that are kept apart are compared. One is of the marks that say which minibatches
/// need not be sent again, the other of the records that were really applied. Throws error when there is no
/// valid checkpoint, or it belongs to no data set.
audit audit_checkpoint(std::string const& path);

/// As a table.
void write(std::ostream& to, audit const& a);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/audit.ipp"
#endif

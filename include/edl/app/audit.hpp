// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>

namespace edl::app {

/// The account of an epoch's records over all variables of a model: the worst of all histories.
struct epoch_account {
  std::uint64_t records = 0;   ///< in the data set
  std::uint64_t applied = 0;   ///< counted one by one, once for each application
  std::uint64_t skipped = 0;   ///< damaged, and left out
  std::uint64_t left = 0;      ///< not applied yet
  std::uint64_t lost = 0;      ///< marked as applied, but not applied
  std::uint64_t repeated = 0;  ///< applied more often than once
  friend bool operator==(epoch_account const&, epoch_account const&) = default;
};

struct audit {
  std::string path, job;
  std::string passed_over;  ///< faults of newer checkpoints of the directory; empty: none
  std::uint64_t version = 0;
  std::map<std::uint32_t, epoch_account> epochs;
  bool exact() const;  ///< no record is lost or repeated
};

/// The account of a checkpoint: `path` is a `version-N`, or a directory of these; then the newest valid one
/// is used. A copy of a checkpoint's manifest.json is accepted, too. Reads and checks every file, and
/// compares two independent counts: the marks of minibatches that need not be sent again, and the records
/// that were really applied. Throws error if there is no valid checkpoint, or it belongs to no data set.
audit audit_checkpoint(std::string const& path);

/// Writes it as a table.
void write(std::ostream& to, audit const& a);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/audit.ipp"
#endif

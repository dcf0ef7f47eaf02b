// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/base/checkpoint/rows.hpp"
#include "edl/compute/sparse/table_snapshot.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/ledger.hpp"
#include "edl/core/partition.hpp"
#include "edl/job/ps/buffer.hpp"

namespace edl::ps {

/// One version of a store's variables, which no update changes. Thread safety: as `buffer`: copy, read and
/// drop it on any thread.
class snapshot {
 public:
  snapshot() = default;
  snapshot(std::uint64_t version, buffer values) : version_(version), values_(std::move(values)) {}

  std::uint64_t version() const { return version_; }
  view<float> variables() const { return values_.values(); }  ///< of the store's range

 private:
  std::uint64_t version_ = 0;
  buffer values_;
};

/// Everything of a store that a checkpoint needs, at one version. Thread safety: as `snapshot`.
struct full_snapshot {
  snapshot variables;
  buffer slots;  ///< one slot after the other, each `slot_stride` apart
  std::size_t slot_stride = 0;
  std::vector<std::string> slot_names;
  std::vector<std::string> row_slot_names{};  ///< of the tables' rows
  element_range elements;                     ///< of the arena
  std::size_t parameters = 0;                 ///< of these elements, from the first
  std::vector<checkpoint::segment> segments;  ///< with the ledgers that belong to the variables
  std::vector<std::shared_ptr<sparse::table_snapshot const>> tables{};
  element_range hash_slots{};                       ///< of the tables' rows
  std::vector<checkpoint::segment> row_segments{};  ///< of these
  std::shared_ptr<checkpoint::row_chain> chain{};   ///< the written files of the store's rows

  std::uint64_t version() const { return variables.version(); }

  /// The minibatches that all parts have applied.
  edl::ledger ledger() const;
};

/// The parts of a snapshot to write: its variables as the part of `server` among `servers`, and rows of its
/// tables.
struct written_parts {
  std::uint32_t server = 0, servers = 1;
  bool variables = true;
  std::size_t most_changes = 0;  ///< consecutive times that only changed rows are written

  /// Rows of fewer hash slots than the snapshot's, as a part with its own number.
  struct rows {
    element_range slots;
    std::uint32_t part = 0, parts = 1;
  };
  std::optional<rows> of_rows{};
};

/// Writes files of the checkpoint in `path`: `checkpoint::write_part`, and `checkpoint::write_rows` where
/// there are tables. May run on any thread, but on only one at a time for each store. Throws edl::error for
/// hash slots that the snapshot lacks.
std::vector<checkpoint::manifest::file> write_snapshot(full_snapshot const& what, bucket::place const& path,
                                                       parameter_layout const& layout,
                                                       written_parts const& parts);

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/job/ps/snapshot.ipp"
#endif

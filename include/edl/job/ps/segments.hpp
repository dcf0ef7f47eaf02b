// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/core/ledger.hpp"
#include "edl/core/partition.hpp"
#include "edl/job/ps/row_update.hpp"

namespace edl::ps {

struct full_snapshot;

/// The number of a task's minibatches that every element of the store has counted, and whether these are all.
struct task_position {
  std::uint32_t applied = 0;
  bool closed = false;
};

/// Elements of the arena, or hash slots, that have counted the same minibatches.
struct segment {
  element_range elements;  ///< of the arena, or hash slots
  bool of_rows = false;
  std::uint64_t steps = 0;
  edl::ledger counted{}, applied{};     ///< with, and without, accumulated minibatches
  std::vector<contribution> waiting{};  ///< accumulated
  float rate = 1;                       ///< of the accumulation: the least
  std::vector<row_update> rows{};       ///< accumulated, by table

  bool counts_next(minibatch_key const& m) const { return counted.check(m) == ledger::sequence_check::next; }
  void count(contribution const& c) {
    counted.apply(c);
    applied.apply(c);
  }
};

/// The minibatches that the elements of a store have counted. After a restore from servers with different
/// ledgers there are several segments, each with its own history, which are merged when their histories
/// agree. Thread safety: distinct objects: safe. Shared objects: unsafe.
class segments {
 public:
  /// Of these elements of the arena.
  explicit segments(element_range elements) : elements_(elements) {}

  /// Whether these are contiguous and cover all of these elements, or hash slots.
  static bool cover(std::vector<checkpoint::segment> const& some, element_range all);

  /// Begins with these segments, without accumulated minibatches. They must cover the elements; those of rows
  /// only if there are tables.
  void start(std::vector<checkpoint::segment> of_elements, std::vector<checkpoint::segment> of_rows);

  /// The least number of steps of a segment: all have applied the minibatches of that version.
  std::uint64_t steps() const;

  std::size_t size() const { return all_.size(); }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }

  /// Whether a segment has not yet counted the minibatch.
  bool counts_next(minibatch_key const& m) const;

  /// The minibatch of the same task that a segment must count first.
  std::optional<std::uint32_t> forerunner(minibatch_key const& m) const;

  /// Throws edl::error unless these minibatches can be counted together: each once, none before the one that
  /// it follows in its task.
  void check_step(std::span<contribution const> minibatches) const;

  /// Merges adjacent segments whose histories agree.
  void merge();

  /// Drops accumulated minibatches.
  void drop_waiting();

  /// Whether no element has counted a minibatch.
  bool not_yet_applied(contribution const& c) const;

  /// Zeroes the values of elements that have counted a minibatch.
  void leave_out(contribution const& c, std::span<float> values) const;

  /// The minibatches that need not be sent again for any element.
  ledger counted() const;

  /// Which minibatches of a task need not be sent again.
  task_position position(task_key const& task) const;

  /// Adds the segments, with what they have applied, to a snapshot.
  void snapshot_into(full_snapshot& all) const;

 private:
  element_range elements_;
  std::vector<segment> all_;
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/job/ps/segments.ipp"
#endif

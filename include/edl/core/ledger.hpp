// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>

#include "edl/core/intervals.hpp"
#include "edl/core/invariant.hpp"

namespace edl {

/// The identity of a task within a job: the epoch and the task's place in the data set (not in the shuffled
/// order).
struct task_key {
  std::uint32_t epoch = 0, index = 0;
  friend auto operator<=>(task_key const&, task_key const&) = default;
};

/// The identity of a minibatch: its index among its task's `count` minibatches. Order within a task is a
/// seeded permutation, so the identity determines its records.
struct minibatch_key {
  task_key task;
  std::uint32_t index = 0, count = 1;
  friend auto operator<=>(minibatch_key const&, minibatch_key const&) = default;
};

/// What a minibatch was computed from, and its results, as digests (`digest`). Equal digests mean equal bits.
struct checked_minibatch {
  std::uint32_t index = 0;     ///< in its task
  std::uint64_t version = 0;   ///< of the model
  std::uint64_t weights = 0;   ///< variables before the pass
  std::uint64_t gradient = 0;  ///< loss, gradients, change of the state; 0: only the weights are known
};

/// A minibatch to be counted, with the number of its records, and of those that it lacks because they are
/// damaged.
struct contribution {
  contribution(minibatch_key const& k, std::uint32_t has = 0, std::uint32_t skipped_records = 0,
               float rate_factor = 1)
      : key(k), records(has), skipped(skipped_records), rate(rate_factor) {}
  minibatch_key key;
  std::uint32_t records, skipped;
  float rate;  ///< factor of the learning rate, in (0, 1]
};

/// A record of what has been applied, minibatch by minibatch: the proof that every record counts once. A
/// task's minibatches are applied in order, so one mark per open task is enough. Closed tasks are stored as
/// intervals, one per epoch at its end. Independently of these marks, which say what should be counted, a
/// tally counts every application: the two must agree. Thread safety: distinct objects: safe. Shared objects:
/// unsafe.
class ledger {
 public:
  enum class sequence_check { next, repeat, gap };

  /// `next`: it is this minibatch's turn. `repeat`: it is already applied; acknowledge it. `gap`: an earlier
  /// minibatch of its task is missing, so its sender is in error.
  sequence_check check(minibatch_key const& m) const {
    if (closed(m.task)) return sequence_check::repeat;
    std::uint32_t const at = position(m.task);
    return m.index == at ? sequence_check::next : m.index < at ? sequence_check::repeat : sequence_check::gap;
  }

  /// What has been applied in an epoch, counted application by application.
  struct tally {
    std::uint64_t minibatches = 0, records = 0;
    friend bool operator==(tally const&, tally const&) = default;
  };

  /// Counts a minibatch that `check` called `next`.
  void apply(contribution const& c) {
    minibatch_key const& m = c.key;
    invariant(m.index > 0 || !closed(m.task), "a closed task counts no minibatch");
    tally& t = tallies_[m.task.epoch];
    ++t.minibatches;
    t.records += c.records;
    if (c.skipped > 0) skipped_[m.task] += c.skipped;
    if (m.index + 1 >= m.count) {
      auto const it = open_.find(m.task);
      invariant((it == open_.end() ? 0 : it->second) == m.index,
                "a task's last minibatch follows the others");
      if (it != open_.end()) open_.erase(it);
      closed_[m.task.epoch].insert(m.task.index);
    } else {
      std::uint32_t& at = open_[m.task];
      invariant(at == m.index, "a task's minibatches are counted in order, each once");
      at = m.index + 1;
    }
  }

  /// How many of an open task's minibatches have been applied; 0 if it is closed or was never seen.
  std::uint32_t position(task_key const& t) const {
    auto const it = open_.find(t);
    return it == open_.end() ? 0 : it->second;
  }

  bool closed(task_key const& t) const {
    auto const it = closed_.find(t.epoch);
    return it != closed_.end() && it->second.contains(t.index);
  }

  /// Keeps what both ledgers have applied: the ledger of a job whose servers hold these two. Each store
  /// counts its own tallies, so they are kept only where they are equal.
  void intersect(ledger const& other);

  std::map<task_key, std::uint32_t> const& open() const { return open_; }
  std::map<std::uint32_t, intervals> const& closed() const { return closed_; }

  /// The number of damaged records that the applied part of a task lacks; tasks that lack none have no entry.
  std::map<task_key, std::uint32_t> const& skipped() const { return skipped_; }

  /// By epoch.
  std::map<std::uint32_t, tally> const& tallies() const { return tallies_; }

  /// For restoring: an open task's mark, a run [begin, end) of closed tasks, and their counts.
  void set_open(task_key t, std::uint32_t applied) { open_[t] = applied; }
  void set_closed(std::uint32_t epoch, std::uint32_t begin, std::uint32_t end) {
    closed_[epoch].insert(begin, end);
  }
  void set_skipped(task_key t, std::uint32_t records) { skipped_[t] = records; }
  void set_tally(std::uint32_t epoch, tally t) { tallies_[epoch] = t; }

  friend bool operator==(ledger const&, ledger const&) = default;

 private:
  std::map<task_key, std::uint32_t> open_;
  std::map<std::uint32_t, intervals> closed_;
  std::map<task_key, std::uint32_t> skipped_;
  std::map<std::uint32_t, tally> tallies_;
};

inline void ledger::intersect(ledger const& other) {
  std::map<task_key, std::uint32_t> open;
  auto const keep = [&](std::map<task_key, std::uint32_t> const& marks, ledger const& against) {
    for (auto const& [task, mark] : marks) {
      std::uint32_t const theirs = against.closed(task) ? mark : against.position(task);
      if (std::uint32_t const both = mark < theirs ? mark : theirs; both > 0) open[task] = both;
    }
  };
  keep(open_, other);
  keep(other.open_, *this);
  std::map<std::uint32_t, intervals> closed;
  for (auto const& [epoch, runs] : closed_)
    if (auto const it = other.closed_.find(epoch); it != other.closed_.end())
      if (auto both = runs.intersection(it->second); !both.empty()) closed[epoch] = both;
  // The lesser part of a task is contained in the greater one, and so are the records that it lacks.
  std::map<task_key, std::uint32_t> skipped;
  for (auto const& [task, records] : skipped_)
    if (auto const it = other.skipped_.find(task); it != other.skipped_.end())
      skipped[task] = records < it->second ? records : it->second;
  std::erase_if(tallies_, [&](auto const& t) {
    auto const it = other.tallies_.find(t.first);
    return it == other.tallies_.end() || it->second != t.second;
  });
  open_ = open;
  closed_ = closed;
  skipped_ = skipped;
}

}  // namespace edl

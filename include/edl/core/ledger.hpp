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

/// The identity of a minibatch: which of its task's `count` minibatches it is. Order within a task is a
/// seeded permutation, so the identity says which records it holds.
struct minibatch_key {
  task_key task;
  std::uint32_t index = 0, count = 1;
  friend auto operator<=>(minibatch_key const&, minibatch_key const&) = default;
};

/// What a minibatch was computed with, and what came of it, as digests (`digest`). Equal ones are equal bit
/// for bit.
struct checked_minibatch {
  std::uint32_t index = 0;     ///< in its task
  std::uint64_t version = 0;   ///< of the model
  std::uint64_t weights = 0;   ///< variables before the pass
  std::uint64_t gradient = 0;  ///< loss, gradients, change of the state; 0: only the weights are told
};

/// A minibatch that is to count, with how many records it has, and how many it lacks because they are
/// damaged.
struct contribution {
  contribution(minibatch_key const& k, std::uint32_t has = 0, std::uint32_t skipped_records = 0)
      : key(k), records(has), skipped(skipped_records) {}
  minibatch_key key;
  std::uint32_t records, skipped;
};

/// What has been applied, minibatch by minibatch: the proof that every record counts once. A task's
/// minibatches are applied in order, so one mark per open task is enough. Closed tasks are kept as intervals,
/// one per epoch at its end. Beside these marks, which say what there is to count, every application is
/// counted for itself: the two must agree. Thread safety: distinct objects: safe. Shared objects: unsafe.
class ledger {
 public:
  enum class sequence_check { next, repeat, gap };

  /// `next`: not applied yet and it is its turn. `repeat`: already applied, acknowledge it. `gap`: an earlier
  /// minibatch of its task is missing, whoever sends it is in error.
  sequence_check check(minibatch_key const& m) const {
    if (closed(m.task)) return sequence_check::repeat;
    std::uint32_t const at = position(m.task);
    return m.index == at ? sequence_check::next : m.index < at ? sequence_check::repeat : sequence_check::gap;
  }

  /// What has been applied in an epoch, counted one by one.
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

  /// How many of an open task's minibatches have been applied; 0 for one never seen or closed.
  std::uint32_t position(task_key const& t) const {
    auto const it = open_.find(t);
    return it == open_.end() ? 0 : it->second;
  }

  bool closed(task_key const& t) const {
    auto const it = closed_.find(t.epoch);
    return it != closed_.end() && it->second.contains(t.index);
  }

  /// Keeps what both have applied: the ledger of a job whose servers hold these two. Tallies are a store's
  /// own: they stay only where they are the same.
  void intersect(ledger const& other);

  std::map<task_key, std::uint32_t> const& open() const { return open_; }
  std::map<std::uint32_t, intervals> const& closed() const { return closed_; }

  /// Damaged records that the applied part of a task lacks; tasks that lack none are not named.
  std::map<task_key, std::uint32_t> const& skipped() const { return skipped_; }

  /// By epoch.
  std::map<std::uint32_t, tally> const& tallies() const { return tallies_; }

  /// For restoring: an open task's mark, a run [begin, end) of closed tasks, and what belongs to them.
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
  // What a lesser part of a task lacks is no more than what the greater does.
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

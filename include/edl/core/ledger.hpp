// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>

#include "edl/core/intervals.hpp"

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

/// What has been applied, minibatch by minibatch: the proof that every record counts once. A task's
/// minibatches are applied in order, so one mark per open task is enough; closed tasks are kept as intervals,
/// one per epoch at its end. Thread safety: distinct objects: safe. Shared objects: unsafe.
class ledger {
 public:
  enum class verdict { next, repeat, gap };

  /// `next`: not applied yet and it is its turn. `repeat`: already applied, acknowledge it. `gap`: an earlier
  /// minibatch of its task is missing, whoever sends it is in error.
  verdict check(minibatch_key const& m) const {
    if (closed(m.task)) return verdict::repeat;
    std::uint32_t const at = position(m.task);
    return m.index == at ? verdict::next : m.index < at ? verdict::repeat : verdict::gap;
  }

  /// Counts a minibatch that `check` called `next`.
  void apply(minibatch_key const& m) {
    if (m.index + 1 >= m.count) {
      open_.erase(m.task);
      closed_[m.task.epoch].insert(m.task.index);
    } else {
      open_[m.task] = m.index + 1;
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

  /// Keeps what both have applied: the ledger of a job whose servers hold these two.
  void intersect(ledger const& other);

  std::map<task_key, std::uint32_t> const& open() const { return open_; }
  std::map<std::uint32_t, intervals> const& closed() const { return closed_; }

  /// For restoring: an open task's mark, and a run [begin, end) of closed tasks.
  void set_open(task_key t, std::uint32_t applied) { open_[t] = applied; }
  void set_closed(std::uint32_t epoch, std::uint32_t begin, std::uint32_t end) {
    closed_[epoch].insert(begin, end);
  }

  friend bool operator==(ledger const&, ledger const&) = default;

 private:
  std::map<task_key, std::uint32_t> open_;
  std::map<std::uint32_t, intervals> closed_;
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
  open_ = open;
  closed_ = closed;
}

}  // namespace edl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

namespace edl::sparse {

/// A bounded log of the ids that were removed from a table, in order. A writer of changes reads those between
/// two places, and forgets what it has written. `between` reports when the log no longer holds them. Thread
/// safety: safe.
class removals {
 public:
  static constexpr std::size_t most = std::size_t{1} << 22;

  explicit removals(bool remembers) : remembers_(remembers) {}

  void add(std::uint64_t id) {
    if (!remembers_) return;
    std::lock_guard const lock(mutex_);
    if (ids_.size() == most) forget_before(first_ + most);
    ids_.push_back(id);
  }

  /// The place after the newest id.
  std::uint64_t end() const {
    std::lock_guard const lock(mutex_);
    return first_ + ids_.size();
  }

  /// The ids between two places; nothing if some of them were forgotten, or were never recorded.
  std::optional<std::vector<std::uint64_t>> between(std::uint64_t from, std::uint64_t to) const {
    std::lock_guard const lock(mutex_);
    if (!remembers_ || from < first_ || to > first_ + ids_.size() || from > to) return std::nullopt;
    auto const begin = ids_.begin() + std::ptrdiff_t(from - first_);
    return std::vector(begin, begin + std::ptrdiff_t(to - from));
  }

  void forget(std::uint64_t before) {
    std::lock_guard const lock(mutex_);
    forget_before(before);
  }

 private:
  void forget_before(std::uint64_t place) {
    while (first_ < place && !ids_.empty()) ids_.pop_front(), ++first_;
  }

  bool const remembers_;
  mutable std::mutex mutex_;
  std::uint64_t first_ = 0;
  std::deque<std::uint64_t> ids_;
};

}  // namespace edl::sparse

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace edl {

/// A set of numbers as disjoint runs [begin, end), merged where they touch.
class intervals {
 public:
  void insert(std::uint32_t value) { insert(value, value + 1); }

  void insert(std::uint32_t begin, std::uint32_t end) {
    if (begin >= end) return;
    auto it = runs_.upper_bound(begin);
    if (it != runs_.begin() && std::prev(it)->second >= begin) --it;
    while (it != runs_.end() && it->first <= end) {
      begin = std::min(begin, it->first);
      end = std::max(end, it->second);
      it = runs_.erase(it);
    }
    runs_.emplace(begin, end);
  }

  bool contains(std::uint32_t value) const {
    auto const it = runs_.upper_bound(value);
    return it != runs_.begin() && value < std::prev(it)->second;
  }

  intervals intersection(intervals const& other) const {
    intervals both;
    auto a = runs_.begin(), b = other.runs_.begin();
    while (a != runs_.end() && b != other.runs_.end()) {
      both.insert(std::max(a->first, b->first), std::min(a->second, b->second));
      a->second < b->second ? ++a : ++b;
    }
    return both;
  }

  std::size_t count() const {
    std::size_t n = 0;
    for (auto const& [begin, end] : runs_) n += end - begin;
    return n;
  }

  bool empty() const { return runs_.empty(); }
  std::map<std::uint32_t, std::uint32_t> const& runs() const { return runs_; }

  friend bool operator==(intervals const&, intervals const&) = default;

 private:
  std::map<std::uint32_t, std::uint32_t> runs_;  // begin → end
};

}  // namespace edl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace edl::ps {

/// Frozen versions of one kind, at most `most` at a time. A new one replaces the oldest one that is not in
/// use. If all are in use, the new one is not kept, so that current uses can complete. Thread safety: unsafe.
template <class Version>
class frozen {
 public:
  explicit frozen(std::size_t most) : most_(most) {}

  /// Whether there is room for one more.
  bool keep(std::uint64_t version, Version value) {
    if (kept_.size() >= most_) {
      auto it = kept_.begin();
      while (it != kept_.end() && it->second.in_use) ++it;
      if (it == kept_.end()) return false;
      kept_.erase(it);
    }
    kept_.insert_or_assign(version, entry{std::move(value), false});
    return true;
  }

  /// The version, which is in use until it is released; empty if it is not kept (any more).
  std::optional<Version> find(std::uint64_t version) {
    auto const it = kept_.find(version);
    if (it == kept_.end()) return std::nullopt;
    it->second.in_use = true;
    return it->second.value;
  }

  /// The version, without marking it as in use; null: it is not kept.
  Version const* look(std::uint64_t version) const {
    auto const it = kept_.find(version);
    return it == kept_.end() ? nullptr : &it->second.value;
  }

  bool keeps(std::uint64_t version) const { return kept_.contains(version); }
  void release(std::uint64_t version) { kept_.erase(version); }
  void clear() { kept_.clear(); }
  std::size_t size() const { return kept_.size(); }

 private:
  struct entry {
    Version value;
    bool in_use;
  };

  std::size_t most_;
  std::map<std::uint64_t, entry> kept_;
};

}  // namespace edl::ps

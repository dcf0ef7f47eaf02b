// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "edl/core/inline.hpp"
#include "edl/job/master/checkpoint_queue.hpp"

namespace edl::master {

EDL_INLINE checkpoint_queue::step checkpoint_queue::add(write_checkpoint const& c) {
  if (newest_ == c.version) {
    if (!c.final) return {.dropped = c.version};
    final_ = c.version;
    return {};
  }
  for (auto const& one : {current_, next_})
    if (one && one->version == c.version && one->final >= c.final)
      return one->final == c.final ? step{} : step{.dropped = c.version};
  if (!current_) return {.start = current_ = c};
  // Writing is slower than training: of the waiting checkpoints the newest is worth the most.
  if (!next_) {
    next_ = c;
    return {};
  }
  write_checkpoint const dropped = next_->final && !c.final ? c : std::exchange(*next_, c);
  if (dropped.final) return {};
  return {.dropped = dropped.version};
}

EDL_INLINE std::optional<write_checkpoint> checkpoint_queue::current(std::uint64_t version) const {
  return current_ && current_->version == version ? current_ : std::nullopt;
}

EDL_INLINE std::optional<write_checkpoint> checkpoint_queue::ended(bool good) {
  if (good && current_->final) final_ = current_->version;
  if (good) newest_ = current_->version;
  if (next_ && next_->final && newest_ == next_->version) {
    final_ = newest_;
    next_.reset();
  }
  current_ = std::exchange(next_, std::nullopt);
  return current_;
}

EDL_INLINE std::optional<std::uint64_t> checkpoint_queue::drop_waiting() {
  if (!next_ || next_->final) return std::nullopt;
  return std::exchange(next_, std::nullopt)->version;
}

EDL_INLINE std::vector<std::uint64_t> checkpoint_queue::clear() {
  std::vector<std::uint64_t> frozen;
  for (auto const& c : {std::exchange(current_, std::nullopt), std::exchange(next_, std::nullopt)})
    if (c && !c->final) frozen.push_back(c->version);
  return frozen;
}

EDL_INLINE void checkpoint_queue::go_back_to(std::uint64_t version) {
  if (final_ != version) final_.reset();
  if (newest_ && *newest_ > version) newest_.reset();
}

}  // namespace edl::master

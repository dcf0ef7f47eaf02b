// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "edl/core/inline.hpp"
#include "edl/job/master/lineage.hpp"

namespace edl::master {

EDL_INLINE lineages::lineages(options o) : options_(o), next_id_(o.count) {
  for (std::uint32_t id = 0; id < o.count; ++id) lines_.emplace_hint(lines_.end(), id, line{});
}

EDL_INLINE lineages::lineages(options o, record const& before, time_point now)
    : options_(o), next_id_(before.next) {
  for (auto const& l : before.lines) {
    line& mine = lines_[l.id] = {.failures = l.failures, .ended = l.ended};
    if (!l.ended) mine.due = now + o.grace;
    ended_ += l.ended;
  }
}

EDL_INLINE lineages::record lineages::now() const {
  record r{.next = next_id_, .lines = {}};
  for (auto const& [id, l] : lines_) r.lines.push_back({id, l.failures, l.ended});
  return r;
}

EDL_INLINE std::uint32_t lineages::add() {
  std::uint32_t const id = next_id_++;
  lines_[id];
  ++changes_;
  return id;
}

EDL_INLINE std::uint32_t lineages::drop_newest() {
  std::uint32_t const id = std::prev(lines_.end())->first;
  drop(id);
  return id;
}

EDL_INLINE bool lineages::drop(std::uint32_t id) {
  auto const it = lines_.find(id);
  if (it == lines_.end()) return false;
  ++changes_;
  ended_ -= it->second.ended;
  lines_.erase(it);
  if (options_.same_id) next_id_ = lines_.empty() ? 0 : std::prev(lines_.end())->first + 1;
  return true;
}

EDL_INLINE void lineages::joined(std::uint32_t id) {
  if (options_.closed && !lines_.contains(id)) return;
  ++changes_;
  line& l = lines_[id];
  if (l.ended) --ended_;
  l.ended = l.waits = false;
  l.due.reset();
  next_id_ = std::max(next_id_, id + 1);
}

EDL_INLINE void lineages::lost(std::uint32_t id, time_point now) {
  auto const it = lines_.find(id);
  if (it != lines_.end() && !it->second.ended && !it->second.waits) it->second.due = now + options_.grace;
}

EDL_INLINE lineages::replacement lineages::replace(std::map<std::uint32_t, line>::iterator it) {
  ++changes_;
  std::uint32_t const id = it->first;
  it->second.waits = false;
  it->second.due.reset();
  if (options_.same_id) return {id, id};
  line const heir = it->second;
  lines_.erase(it);
  lines_[next_id_] = heir;
  return {id, next_id_++};
}

EDL_INLINE std::optional<lineages::replacement> lineages::given_up(std::uint32_t id) {
  auto const it = lines_.find(id);
  if (it == lines_.end() || it->second.ended) return std::nullopt;
  return replace(it);
}

EDL_INLINE std::optional<lineages::replacement> lineages::exited(std::uint32_t id, exit_kind kind,
                                                                 std::string const& why, time_point now) {
  auto const it = lines_.find(id);
  if (it == lines_.end() || it->second.ended || it->second.waits) return std::nullopt;
  if (kind == exit_kind::preempted) return replace(it);
  same_reason_ = failures_ == 0 || (same_reason_ && why == last_reason_);
  last_reason_ = why;
  ++failures_;
  ++changes_;
  if (++it->second.failures <= options_.budget) {
    duration const pause = pause_after(it->second.failures);
    if (pause == duration::zero()) return replace(it);
    it->second.waits = true;
    it->second.due = now + pause;
    return std::nullopt;
  }
  it->second.ended = true;
  it->second.due.reset();
  ++ended_;
  return std::nullopt;
}

EDL_INLINE duration lineages::pause_after(std::uint32_t failures) const {
  if (failures < 2) return {};
  return std::min<duration>(options_.pause * (1u << std::min(failures - 2, 6u)), std::chrono::minutes(1));
}

EDL_INLINE std::optional<duration> lineages::pauses(std::uint32_t id) const {
  auto const it = lines_.find(id);
  if (it == lines_.end() || !it->second.waits) return std::nullopt;
  return pause_after(it->second.failures);
}

EDL_INLINE std::vector<lineages::replacement> lineages::overdue(time_point now) {
  std::vector<std::uint32_t> ids;
  for (auto const& [id, l] : lines_)
    if (l.due && now > *l.due) ids.push_back(id);
  std::vector<replacement> out;
  for (std::uint32_t const id : ids) out.push_back(replace(lines_.find(id)));
  return out;
}

EDL_INLINE std::string lineages::reason() const {
  if (failures_ == 0) return {};
  if (failures_ == 1) return last_reason_;
  return same_reason_ ? fmt::format("{} failures, all of them: {}", failures_, last_reason_)
                      : fmt::format("{} failures, the last of them: {}", failures_, last_reason_);
}

}  // namespace edl::master

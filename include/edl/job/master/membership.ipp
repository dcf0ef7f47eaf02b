// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/core/inline.hpp"
#include "edl/job/master/membership.hpp"

namespace edl::master {
namespace detail {

inline constexpr std::chrono::seconds talkative{3};  // a member heard this recently has left

}  // namespace detail

EDL_INLINE membership::standing membership::check(std::uint32_t id, std::uint64_t incarnation) const {
  if (given_up_.contains({id, incarnation})) return standing::given_up;
  auto const it = members_.find(id);
  return it != members_.end() && it->second.incarnation == incarnation ? standing::repeated : standing::fresh;
}

EDL_INLINE membership::standing membership::join(std::uint32_t id, std::uint64_t incarnation,
                                                 std::vector<std::string> addresses, time_point now,
                                                 std::string kind) {
  standing const v = check(id, incarnation);
  if (v == standing::given_up) return v;
  if (v == standing::repeated) {
    member& m = members_.at(id);
    m.addresses = std::move(addresses);
    m.seen = now;
    return v;
  }
  if (member const* old = find(id)) lose(id, old->incarnation);
  left_.erase(id);
  members_[id] = {.id = id,
                  .incarnation = incarnation,
                  .addresses = std::move(addresses),
                  .kind = std::move(kind),
                  .joined = now,
                  .seen = now,
                  .measured = now,
                  .moved = now,
                  .last = {}};
  return v;
}

EDL_INLINE bool membership::seen(std::uint32_t id, std::uint64_t incarnation, time_point now) {
  if (!known(id, incarnation)) return false;
  members_.at(id).seen = now;
  return true;
}

EDL_INLINE bool membership::heartbeat(std::uint32_t id, std::uint64_t incarnation, vitals const& v,
                                      time_point now) {
  if (!known(id, incarnation)) return false;
  member& m = members_.at(id);
  time_point const beat_before = m.measured;
  // Work done before the first heartbeat was reported to a previous master: do not count it again.
  if (m.measured == m.joined && m.trained.minibatches == 0) m.trained = v.trained;
  double const seconds = std::chrono::duration<double>(now - m.measured).count();
  if (seconds > 0 && v.records >= m.last.records) {
    double const rate = double(v.records - m.last.records) / seconds;
    m.rate = m.measured == m.joined ? rate : 0.7 * m.rate + 0.3 * rate;
    m.measured = now;
  }
  if (v.position != m.last.position) {
    // The previous heartbeat came from within this pass. Cap its length, so that a silence does not count as
    // part of it.
    if (m.last.position % 2 == 1)
      longest_pass_ = std::max(longest_pass_, std::min(now, beat_before + silence_ / 2) - m.moved);
    m.moved = now;
  }
  announced(id, v.trained);
  m.last = v;
  if (v.records > 0) last_loss_ = v.loss;
  m.seen = now;
  return true;
}

EDL_INLINE void membership::announced(std::uint32_t id, edl::trained const& all) {
  auto const it = members_.find(id);
  if (it == members_.end() || all.minibatches <= it->second.trained.minibatches) return;
  auto const& before = it->second.trained;
  if (all.records < before.records || all.words < before.words || all.unknown < before.unknown) return;
  trained_ += all - it->second.trained;
  it->second.trained = all;
}

EDL_INLINE bool membership::lose(std::uint32_t id, std::uint64_t incarnation, time_point now) {
  // Remember only members, so that strangers' ids cannot fill the memory.
  if (!known(id, incarnation)) return false;
  if (now - members_.at(id).seen < detail::talkative) left_.insert(id);
  members_.erase(id);
  given_up_.emplace(id, incarnation);
  return true;
}

EDL_INLINE void membership::excuse(duration pause, time_point now) {
  for (auto& [id, m] : members_) {
    m.seen = std::min(m.seen + pause, now);
    m.moved = std::min(m.moved + pause, now);
  }
}

EDL_INLINE std::vector<member> membership::silent(time_point now) const {
  std::vector<member> out;
  for (auto const& [id, m] : members_)
    if (now - m.seen > silence_) out.push_back(m);
  return out;
}

EDL_INLINE std::vector<member> membership::hanging(time_point now) const {
  std::vector<member> out;
  duration const limit = std::max(pass_, 20 * longest_pass_);
  for (auto const& [id, m] : members_)
    if (m.last.position % 2 == 1 && m.last.position > 1 && now - m.moved > limit) out.push_back(m);
  return out;
}

EDL_INLINE member const* membership::find(std::uint32_t id) const {
  auto const it = members_.find(id);
  return it == members_.end() ? nullptr : &it->second;
}

}  // namespace edl::master

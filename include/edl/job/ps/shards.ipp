// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <utility>

#include "edl/core/clock.hpp"
#include "edl/core/generation.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/ps/shards.hpp"

namespace edl::ps {

EDL_INLINE void shard::begin(std::uint64_t generation) {
  if (since != generation) {
    since_before = std::exchange(since, generation);
    applied_before = std::exchange(applied, 0);
  }
  safe = 0;
  cut_off = false;
  backup.reset();
}

EDL_INLINE std::vector<std::uint32_t> shards::held() const {
  std::vector<std::uint32_t> all;
  for (auto const& [range, s] : all_)
    if (s.since == generation_) all.push_back(range);
  return all;
}

EDL_INLINE std::uint64_t shards::version() const {
  auto const ranges = held();
  return ranges.empty() ? 0 : all_.at(ranges.front()).state->version();
}

EDL_INLINE void shards::check(std::uint64_t generation) const {
  invariant(generation_ == 0 || generation_ == heard_, "a server serves the newest generation that it knows");
  if (generation_ == 0)
    throw net::call_error(net::status::not_ready, fmt::format("{} is not configured yet", name_));
  if (generation != generation_)
    throw net::call_error(
        net::status::stale_generation,
        fmt::format("{} is at generation {}, not {}", name_, count_of(generation_), count_of(generation)));
}

EDL_INLINE shard* shards::find(std::uint32_t range) {
  auto const it = all_.find(range);
  return it == all_.end() ? nullptr : &it->second;
}

EDL_INLINE shard& shards::of(std::uint64_t generation, std::uint32_t range, bool primary) {
  check(generation);
  shard* const s = find(range);
  if (!s || s->primary != primary)
    throw net::call_error(
        net::status::invalid,
        fmt::format("{} {} range {}", name_, primary ? "does not serve" : "is not the backup of", range));
  invariant(s->state != nullptr, "a range that is served has a state");
  return *s;
}

EDL_INLINE store const& shards::source(std::uint64_t generation, std::uint32_t range) {
  shard const* const s = find(range);
  if (heard_ != generation || !s)
    throw net::call_error(net::status::not_ready, fmt::format("{} does not have range {} in generation {}",
                                                              name_, range, count_of(generation)));
  return *s->state;
}

EDL_INLINE asio::awaitable<void> shards::reach(std::uint64_t generation, std::uint32_t range,
                                               std::uint64_t version, time_point until) {
  for (;;) {
    if (of(generation, range).state->version() >= version) co_return;
    bool const in_time = co_await changed_.wait_until(until);
    if (!in_time) break;
  }
  throw net::call_error(net::status::not_ready, fmt::format("{} is at version {}, not yet {}", name_,
                                                            of(generation, range).state->version(), version));
}

EDL_INLINE void shards::hear(std::uint64_t generation,
                             std::function<bool(std::uint32_t range)> const& keeps) {
  if (generation < heard_) throw overtaken();
  if (generation == heard_) return;
  heard_ = generation;
  generation_ = 0;  // nothing but this call changes the state from here on
  changed_.notify();
  std::erase_if(all_, [&](auto const& s) { return !keeps(s.first); });
}

EDL_INLINE net::call_error shards::overtaken() const {
  return {net::status::stale_generation,
          fmt::format("{} is already at generation {}", name_, count_of(heard_))};
}

EDL_INLINE void shards::configured(std::uint64_t generation, std::uint32_t range,
                                   std::shared_ptr<store> state) {
  generation_ = heard_ = generation;
  all_[range] = shard{.state = std::move(state), .backup = {}, .since = generation};
}

EDL_INLINE void shards::withdraw() {
  generation_ = 0;
  all_.clear();
  changed_.notify();
}

EDL_INLINE void shards::offers(std::uint64_t generation, std::uint32_t range, std::shared_ptr<store> state) {
  configured(generation, range, std::move(state));
  generation_ = 0;
  changed_.notify();
}

}  // namespace edl::ps

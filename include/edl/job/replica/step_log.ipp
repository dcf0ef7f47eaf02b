// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/base/net/status.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/replica/step_log.hpp"

namespace edl::replica {
namespace detail {

inline constexpr std::size_t least_steps = 8;
// How many bytes of steps a world may wait for: forming a world takes longer than sending them.
inline constexpr std::size_t near_bytes = 2u << 20;

EDL_INLINE std::string to_message(step_log::step const& s, bool last = false) {
  wire::FollowReply reply;
  reply.set_generation(s.world);
  reply.set_version(s.version);
  reply.set_last(last);
  for (contribution const& c : s.minibatches) {
    auto& out = *reply.add_minibatches();
    out.mutable_task()->set_epoch(c.key.task.epoch);
    out.mutable_task()->set_index(c.key.task.index);
    out.set_minibatch(c.key.index);
    out.set_minibatches(c.key.count);
    out.set_records(c.records);
    out.set_skipped(c.skipped);
    if (c.rate != 1) out.set_rate(c.rate);
  }
  return wire::pack(reply);
}

}  // namespace detail

EDL_INLINE step_log::step_log(asio::any_io_executor on, options o)
    : options_(std::move(o)), changed_(std::move(on)) {}

EDL_INLINE void step_log::begin(std::uint64_t world, std::uint64_t version) {
  if (world == 0 || version != version_) forget();
  for (std::uint32_t const worker : brought_) followers_.erase(worker);
  brought_.clear();
  world_ = world;
  version_ = version;
  look();
}

EDL_INLINE void step_log::forget() {
  followers_.clear();
  near_.clear();
  brought_.clear();
  look();
}

// Drops the steps that all followers have.
EDL_INLINE void step_log::look() {
  std::uint64_t least = ~std::uint64_t{0};
  for (auto const& [worker, version] : followers_) least = std::min(least, version);
  while (!steps_.empty() && steps_.front()->version <= least) steps_.pop_front();
  invariant(near_.size() <= followers_.size(), "only a worker with a recent copy follows");
  invariant(steps_.empty() || steps_.back()->version <= version_,
            "no step is kept that the copy has not made");
  wanted_ = !followers_.empty();
  wants_end_ = !near_.empty();
  changed_.notify();
}

EDL_INLINE void step_log::add(step s) {
  invariant(s.version >= version_, "a step leads no copy back");
  version_ = s.version;
  if (followers_.empty()) return;
  invariant(world_ != 0, "only a copy of a world is followed");
  if (s.last) brought_.merge(std::exchange(near_, {}));
  steps_.push_back(std::make_shared<step const>(std::move(s)));
  if (steps_.size() >
      std::max(detail::least_steps, options_.most_bytes / std::max(options_.step_bytes, std::size_t{1})))
    return forget();
  look();
}

EDL_INLINE std::shared_ptr<step_log::step const> step_log::next(std::uint32_t worker) const {
  auto const it = followers_.find(worker);
  if (it == followers_.end())
    throw net::call_error(net::status::invalid,
                          fmt::format("worker {} no longer follows {}", worker, options_.name));
  auto const step = std::ranges::find(steps_, it->second + 1, [](auto const& s) { return s->version; });
  return step == steps_.end() ? nullptr : *step;
}

EDL_INLINE asio::awaitable<void> step_log::handle(net::request& r) {
  auto const request = wire::unpack<wire::FollowRequest>(r.message(), r.peer());
  std::uint32_t const worker = request.worker();
  if (request.begin()) {
    if (world_ == 0)
      throw net::call_error(net::status::invalid, fmt::format("{} cannot be followed now", options_.name));
    followers_[worker] = version_;
    look();
    std::string const answer = detail::to_message({.world = world_, .version = version_});
    co_await r.reply(answer);
    co_return;
  }
  if (auto const it = followers_.find(worker); it != followers_.end()) {
    it->second = std::max(it->second, request.version());
    std::uint64_t const behind = version_ - std::min(version_, it->second);
    bool const near = behind <= 1 || behind * options_.step_bytes <= detail::near_bytes;
    if (near && !brought_.contains(worker)) near_.insert(worker);
    look();
  }
  auto const until = clock::now() + r.time_left();
  std::shared_ptr<step const> found;
  // `next` throws once the worker no longer follows, so this loop ends.
  while (!(found = next(worker)))
    if (!co_await changed_.wait_until(until))
      throw net::call_error(net::status::not_ready, fmt::format("{} makes no step", options_.name));
  bool const last = found->last && brought_.contains(worker);
  std::string const message = detail::to_message(*found, last);
  co_await r.reply(message, std::as_bytes(std::span(found->sums)));
  // The worker may have started over on another connection while this reply was in flight.
  if (auto const it = followers_.find(worker);
      last && it != followers_.end() && it->second < found->version) {
    followers_.erase(it);
    look();
  }
}

}  // namespace edl::replica

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <utility>

#include "edl/core/inline.hpp"
#include "edl/core/storage_error.hpp"
#include "edl/net/address.hpp"
#include "edl/net/status.hpp"
#include "edl/ps/copy.hpp"
#include "edl/ps/server.hpp"
#include "edl/wire/edl.pb.h"
#include "edl/wire/ledger_message.hpp"
#include "edl/wire/message.hpp"
#include "edl/wire/method.hpp"

namespace edl::ps {
namespace detail {

inline constexpr std::chrono::seconds copy_in{600};
inline constexpr std::chrono::milliseconds copy_pause{2};

}  // namespace detail

EDL_INLINE void server::configured(std::uint64_t generation, std::uint32_t range,
                                   std::shared_ptr<store> state) {
  generation_ = configuring_ = generation;
  shards_[range] = shard{.state = std::move(state), .backup = {}, .since = generation};
}

EDL_INLINE void server::withdraw() {
  generation_ = 0;
  shards_.clear();
  advanced_.notify();
}

EDL_INLINE void server::offers(std::uint64_t generation, std::uint32_t range, std::shared_ptr<store> state) {
  configured(generation, range, std::move(state));
  generation_ = 0;
  advanced_.notify();
}

// Everything of a store, for another that becomes its copy. While generations change, from one that rests.
EDL_INLINE asio::awaitable<void> server::copy(net::request& r) {
  auto const request = wire::unpack<wire::CopyRequest>(r.message(), r.peer());
  auto const it = shards_.find(request.range());
  if (configuring_ != request.generation() || it == shards_.end())
    throw net::call_error(net::status::not_ready,
                          fmt::format("{} does not have range {} in generation {}", options_.name,
                                      request.range(), request.generation()));
  full_snapshot const now = it->second.state->full_snapshot();
  std::string const message = describe_copy(now);
  bytes const parts[]{std::as_bytes(now.variables.variables()), std::as_bytes(now.slots.values())};
  co_await r.reply(message, parts);
}

EDL_INLINE asio::awaitable<void> server::compare(net::request& r) {
  auto const request = wire::unpack<wire::CompareRequest>(r.message(), r.peer());
  auto const it = shards_.find(request.range());
  if (configuring_ != request.generation() || it == shards_.end())
    throw net::call_error(net::status::not_ready,
                          fmt::format("{} is not in generation {}", options_.name, request.generation()));
  shard const& s = it->second;
  bool const begun = s.since == request.generation();
  wire::CompareReply reply;
  reply.set_since(begun ? s.since_before : s.since);
  reply.set_applied(begun ? s.applied_before : s.applied);
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

// Asks the holder of a range, again as long as it has not heard of the generation.
EDL_INLINE asio::awaitable<std::string> server::ask_holder(net::channel& holder, std::uint64_t generation,
                                                           net::outgoing what) {
  asio::steady_timer timer(node_.executor());
  for (;;) {
    try {
      net::reply answer = co_await holder.call(what);
      co_return std::move(answer.message);
    } catch (net::call_error const& e) {
      if (e.code() != net::status::not_ready || configuring_ != generation) throw;
    }
    timer.expires_after(detail::copy_pause);
    co_await timer.async_wait(asio::use_awaitable);
  }
}

// A store with the state of the holder's; null: the one that is here has it.
EDL_INLINE asio::awaitable<std::shared_ptr<store>> server::fetch(std::uint64_t generation,
                                                                 std::uint32_t range,
                                                                 std::vector<std::string> const& from) {
  net::channel holder(node_, net::parse_addresses(from), fmt::format("the holder of range {}", range));
  if (auto const it = shards_.find(range); it != shards_.end()) {
    wire::CompareRequest request;
    request.set_generation(generation);
    request.set_range(range);
    net::outgoing what{.method = wire::method::compare, .message = wire::pack(request), .idempotent = true};
    std::uint64_t const since = it->second.since, applied = it->second.applied;
    std::string const answer = co_await ask_holder(holder, generation, std::move(what));
    auto const theirs = wire::unpack<wire::CompareReply>(answer, holder.name());
    if (theirs.since() == since && theirs.applied() == applied) co_return nullptr;
  }
  auto const fresh = options_.make(range);
  std::vector<float> values(fresh->copy_size());
  wire::CopyRequest request;
  request.set_generation(generation);
  request.set_range(range);
  net::outgoing what{.method = wire::method::copy,
                     .message = wire::pack(request),
                     .timeout = detail::copy_in,
                     .idempotent = true};
  what.into.push_back(std::as_writable_bytes(std::span(values)));
  std::string const answer = co_await ask_holder(holder, generation, std::move(what));
  auto [segments, row_segments] = segments_of_copy(answer, holder.name());
  fresh->restore(std::move(segments), std::move(row_segments), values);
  co_await fetch_rows(*fresh, holder, generation, range);
  co_return fresh;
}

EDL_INLINE net::call_error server::overtaken() const {
  return {net::status::stale_generation,
          fmt::format("{} is already at generation {}", options_.name, configuring_)};
}

EDL_INLINE asio::awaitable<void> server::configure(net::request& r) {
  auto const request = wire::unpack<wire::ConfigureRequest>(r.message(), r.peer());
  std::uint64_t const generation = request.generation();
  if (generation < configuring_) throw overtaken();
  if (generation > configuring_) {
    configuring_ = generation;
    generation_ = 0;  // nothing changes any more, but by this
    advanced_.notify();
    std::erase_if(shards_, [&](auto const& s) {
      return !request.keep() || std::ranges::find(request.holds(), s.first) == request.holds().end();
    });
  }
  std::string ranges;
  for (auto const& a : request.assignments()) {
    if (a.range() >= options_.ranges)
      throw net::call_error(net::status::invalid,
                            fmt::format("there is no range {} of {}", a.range(), options_.ranges));
    ranges += fmt::format("{}{}{}", ranges.empty() ? "" : ", ", a.range(), a.primary() ? "" : " (backup)");
    if (generation_ == generation) continue;  // asked again
    std::shared_ptr<store> fresh;
    std::vector<std::string> const from(a.from().begin(), a.from().end());
    if (!request.keep()) {
      fresh = options_.make(a.range());
      std::function<void()> const restore = [&] { options_.configure(*fresh, request.restore()); };
      try {
        co_await disk_.run(std::string(), restore);
      } catch (storage_error const& e) {
        // It is asked again, and the storage may have come back.
        if (!e.may_pass()) throw;
        throw net::call_error(net::status::not_ready, fmt::format("{}: {}", options_.name, e.what()));
      }
      if (configuring_ != generation) throw overtaken();
      if (generation_ == generation) continue;  // asked twice, and the other call was the faster
    } else if (!from.empty()) {
      fresh = co_await fetch(generation, a.range(), from);
      if (configuring_ != generation) throw overtaken();
      if (generation_ == generation) continue;  // asked twice, and the other call was the faster
    } else if (!shards_.contains(a.range())) {
      throw net::call_error(net::status::invalid,
                            fmt::format("{} has no state of range {} to keep", options_.name, a.range()));
    }
    shard& s = shards_[a.range()];
    if (fresh) s.state = std::move(fresh);
    s.state->drop_waiting();  // a copy that another has made lacks it
    s.primary = a.primary();
    if (s.since != generation) {
      s.since_before = std::exchange(s.since, generation);
      s.applied_before = std::exchange(s.applied, 0);
    }
    s.safe = 0;
    s.cut_off = false;
    s.backup.reset();
    s.state->forget_frozen();
    s.state->freeze(a.primary());
    if (a.backup_size() > 0)
      s.backup = std::make_shared<net::channel>(node_, net::parse_addresses(a.backup()),
                                                fmt::format("the backup of range {}", a.range()));
  }
  generation_ = generation;
  wire::ConfigureReply reply;
  bool first = true;
  ledger counted;
  for (auto const& a : request.assignments()) {
    if (!a.primary()) continue;
    store const& s = *shards_.at(a.range()).state;
    reply.set_version(first ? s.version() : std::min<std::uint64_t>(reply.version(), s.version()));
    first ? void(counted = s.counted()) : counted.intersect(s.counted());
    first = false;
  }
  reply.set_serves(!first);
  wire::to_message(counted, *reply.mutable_ledger());
  if (ranges.empty())
    log_.info(
        fmt::format("generation {}: this server has no range of {} any more", generation, options_.ranges));
  else if (log_.detailed())
    log_.info(fmt::format("generation {}: ranges {} of {}, {}", generation, ranges, options_.ranges,
                          request.keep()              ? fmt::format("going on at version {}", version())
                          : request.restore().empty() ? "from the seed"
                                                      : "from " + request.restore()));
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

}  // namespace edl::ps

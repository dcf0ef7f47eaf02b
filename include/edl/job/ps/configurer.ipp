// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <utility>

#include "edl/base/net/address.hpp"
#include "edl/base/net/status.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/ledger_message.hpp"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/base/wire/row_copy.hpp"
#include "edl/core/generation.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/storage_error.hpp"
#include "edl/job/ps/configurer.hpp"
#include "edl/job/ps/copy.hpp"

namespace edl::ps {
namespace detail {

inline constexpr std::chrono::seconds copy_in{600};
inline constexpr std::chrono::milliseconds copy_pause{2};

}  // namespace detail

EDL_INLINE asio::awaitable<void> configurer::copy(net::request& r) {
  auto const request = wire::unpack<wire::CopyRequest>(r.message(), r.peer());
  full_snapshot const now =
      use(options_, [&] { return shards_.source(request.generation(), request.range()).full_snapshot(); });
  std::string const message = describe_copy(now);
  bytes const parts[]{std::as_bytes(now.variables.variables()), std::as_bytes(now.slots.values())};
  co_await r.reply(message, parts);
}

EDL_INLINE asio::awaitable<void> configurer::compare(net::request& r) {
  auto const request = wire::unpack<wire::CompareRequest>(r.message(), r.peer());
  shard const* const s = shards_.find(request.range());
  if (shards_.heard() != request.generation() || !s)
    throw net::call_error(net::status::not_ready, fmt::format("{} is not in generation {}", options_.name,
                                                              count_of(request.generation())));
  bool const begun = s->since == request.generation();
  wire::CompareReply reply;
  reply.set_since(begun ? s->since_before : s->since);
  reply.set_applied(begun ? s->applied_before : s->applied);
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

// Asks the holder of a range, and repeats that until the holder knows of the generation.
EDL_INLINE asio::awaitable<std::string> configurer::ask_holder(net::channel& holder, std::uint64_t generation,
                                                               net::outgoing what) {
  asio::steady_timer timer(node_.executor());
  for (;;) {
    try {
      net::reply answer = co_await holder.call(what);
      co_return std::move(answer.message);
    } catch (net::call_error const& e) {
      if (e.code() != net::status::not_ready || shards_.heard() != generation) throw;
    }
    timer.expires_after(detail::copy_pause);
    co_await timer.async_wait(asio::use_awaitable);
  }
}

// Makes a store with the holder's state; null: the server's own store already has that state.
EDL_INLINE asio::awaitable<std::shared_ptr<store>> configurer::fetch(std::uint64_t generation,
                                                                     std::uint32_t range,
                                                                     std::vector<std::string> const& from) {
  net::channel holder(node_, net::parse_addresses(from), fmt::format("the holder of range {}", range));
  if (shard const* const s = shards_.find(range)) {
    wire::CompareRequest request;
    request.set_generation(generation);
    request.set_range(range);
    net::outgoing what{.method = wire::method::compare, .message = wire::pack(request), .idempotent = true};
    std::uint64_t const since = s->since, applied = s->applied;
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

EDL_INLINE asio::awaitable<void> configurer::fetch_rows(store& into, net::channel& holder,
                                                        std::uint64_t generation, std::uint32_t range) {
  for (std::uint32_t t = 0; t < into.rows().tables(); ++t)
    for (wire::row_copy copy(generation, range, t, into.rows().slots()); !copy.done();) {
      net::outgoing what{.method = wire::method::copy_rows, .message = copy.request(), .idempotent = true};
      std::string const answer = co_await ask_holder(holder, generation, std::move(what));
      copy.take(answer, holder.name(),
                [&](bytes rows, std::size_t, bytes candidates) { into.rows().put(t, rows, candidates); });
    }
}

// Makes a store with the state of a checkpoint, or with the initial state.
EDL_INLINE asio::awaitable<std::shared_ptr<store>> configurer::restored(std::uint32_t range,
                                                                        std::string const& from) {
  std::shared_ptr<store> const fresh = options_.make(range);
  std::function<void()> const restore = [&] { options_.configure(*fresh, from); };
  try {
    co_await disk_.run(std::string(), restore);
  } catch (storage_error const& e) {
    // The master will ask again, and the storage may have recovered by then.
    if (!e.may_pass()) throw;
    throw net::call_error(net::status::not_ready, fmt::format("{}: {}", options_.name, e.what()));
  }
  co_return fresh;
}

// Handles one assignment. Does nothing if the generation is already served: the master has repeated the call,
// or a concurrent call was faster.
EDL_INLINE asio::awaitable<void> configurer::take(wire::ConfigureRequest const& request, int number) {
  std::uint64_t const generation = request.generation();
  auto const& a = request.assignments(number);
  if (a.range() >= options_.ranges)
    throw net::call_error(net::status::invalid, fmt::format("no range {} of {}", a.range(), options_.ranges));
  if (shards_.generation() == generation) co_return;
  std::shared_ptr<store> fresh;
  if (!request.keep())
    fresh = co_await restored(a.range(), request.restore());
  else if (a.from_size() > 0)
    fresh = co_await fetch(generation, a.range(), {a.from().begin(), a.from().end()});
  else if (!shards_.find(a.range()))
    throw net::call_error(net::status::invalid,
                          fmt::format("{} has no state of range {} to keep", options_.name, a.range()));
  if (shards_.heard() != generation) throw shards_.overtaken();
  if (shards_.generation() == generation) co_return;
  shard& s = shards_.place(a.range());
  if (fresh) s.state = std::move(fresh);
  s.state->drop_waiting();  // a copy on another server lacks these minibatches
  s.primary = a.primary();
  s.begin(generation);
  s.state->frozen().forget();
  s.state->frozen().freeze(a.primary());
  if (a.backup_size() > 0)
    s.backup = std::make_shared<net::channel>(node_, net::parse_addresses(a.backup()),
                                              fmt::format("the backup of range {}", a.range()));
}

EDL_INLINE asio::awaitable<void> configurer::configure(net::request& r) {
  auto const request = wire::unpack<wire::ConfigureRequest>(r.message(), r.peer());
  std::uint64_t const generation = request.generation();
  shards_.hear(generation, [&](std::uint32_t range) {
    return request.keep() && std::ranges::find(request.holds(), range) != request.holds().end();
  });
  if (request.training_steps() > 0) options_.plan(request.training_steps());
  for (int i = 0; i < request.assignments_size(); ++i) co_await take(request, i);
  shards_.serve();
  wire::ConfigureReply reply;
  std::string ranges;
  ledger counted;
  for (auto const& a : request.assignments()) {
    ranges += fmt::format("{}{}{}", ranges.empty() ? "" : ", ", a.range(), a.primary() ? "" : " (backup)");
    if (!a.primary()) continue;
    store const& s = *shards_.of(generation, a.range()).state;
    bool const first = !reply.serves();
    reply.set_version(first ? s.version() : std::min<std::uint64_t>(reply.version(), s.version()));
    first ? void(counted = s.segments().counted()) : counted.intersect(s.segments().counted());
    reply.set_serves(true);
  }
  wire::to_message(counted, *reply.mutable_ledger());
  if (ranges.empty())
    log_.info(fmt::format("generation {}: this server no longer has any range of {}", count_of(generation),
                          options_.ranges));
  else if (log_.detailed())
    log_.info(fmt::format("generation {}: ranges {} of {}, {}", count_of(generation), ranges, options_.ranges,
                          request.keep() ? fmt::format("going on at version {}", shards_.version())
                          : request.restore().empty() ? "from the seed"
                                                      : "from " + request.restore()));
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

}  // namespace edl::ps

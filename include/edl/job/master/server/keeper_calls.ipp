// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/base/net/status.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/ledger_message.hpp"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/master/server/keeper_calls.hpp"

namespace edl::master {
namespace detail {

/// Is an element of a set during its lifetime.
struct one_more {
  std::multiset<std::uint64_t>& all;
  std::multiset<std::uint64_t>::iterator const self;
  one_more(std::multiset<std::uint64_t>& of, std::uint64_t version) : all(of), self(of.insert(version)) {}
  one_more(one_more const&) = delete;
  ~one_more() { all.erase(self); }
};

}  // namespace detail

EDL_INLINE void keeper_calls::configure(configure_servers const& c) {
  for (std::uint32_t const id : c.servers)
    loop_.carry(fmt::format("server {} cannot be configured", id),
                [this, id, c] { return configure(id, c); });
}

EDL_INLINE wire::ConfigureRequest keeper_calls::configuration(std::uint32_t id,
                                                              configure_servers const& c) const {
  wire::ConfigureRequest request;
  request.set_generation(c.generation);
  request.set_restore(c.restore);
  request.set_keep(c.keep);
  request.set_training_steps(options_.job.steps);
  auto const tell = [&](std::uint32_t of, auto add) {
    if (member const* const m = coordinator_.servers().find(of))
      for (std::string const& a : m->addresses) add(a);
  };
  for (std::uint32_t range = 0; range < c.places.size(); ++range) {
    range_place const& place = c.places[range];
    auto const held = c.holders.find(range);
    bool const holds = held != c.holders.end() && held->second.contains(id);
    if (holds) request.add_holds(range);
    if (place.primary != id && place.backup != id) continue;
    auto* const a = request.add_assignments();
    a->set_range(range);
    a->set_primary(place.primary == id);
    if (place.primary == id && place.backup)
      tell(*place.backup, [&](std::string const& x) { a->add_backup(x); });
    if (c.keep && c.sources[range] != id)
      tell(c.sources[range], [&](std::string const& x) { a->add_from(x); });
  }
  return request;
}

EDL_INLINE asio::awaitable<void> keeper_calls::configure(std::uint32_t id, configure_servers c) {
  auto const found = keepers_.find(id);
  if (!found) co_return;  // lost already: another generation follows
  keeper k = *found;      // a copy, because it may be replaced during the call
  std::string failed;
  std::optional<copy_position> kept;
  bool ahead = false;
  try {
    wire::ConfigureRequest const request = configuration(id, c);
    net::outgoing const what{
        .method = wire::method::configure, .message = wire::pack(request), .timeout = disk_timeout};
    order_terms const terms{
        .name = "configure", .generation = c.generation, .timeout = options_.order_timeout};
    std::string const answer = co_await orders_.order(k, what, terms);
    auto const reply = wire::unpack<wire::ConfigureReply>(answer, k.to->name());
    if (c.keep && reply.serves()) kept = copy_position{reply.version(), wire::from_message(reply.ledger())};
  } catch (net::call_error const& e) {
    // A lost server is detected by its exit or its silence, and another generation begins.
    if (e.code() == net::status::cancelled) co_return;
    ahead = e.code() == net::status::stale_generation;
    failed = e.what();
  }
  auto const now = clock::now();
  if (ahead)
    coordinator_.server_ahead(id, k.incarnation, c.generation, now);
  else
    coordinator_.server_configured(id, k.incarnation, c.generation, failed, now, std::move(kept));
  loop_.run_commands();
}

EDL_INLINE asio::awaitable<void> keeper_calls::commit(std::uint64_t generation) {
  wire::CommitRequest request;
  request.set_generation(generation);
  std::optional<std::uint64_t> version;
  auto const since = clock::now();
  // Members of a world may not know of it yet, and one may have made the last step before the others. The
  // loss of a member begins another generation.
  while (!version && coordinator_.generation() == generation && !coordinator_.over()) {
    try {
      order_terms const terms{.name = "settle", .generation = generation, .timeout = options_.order_timeout};
      auto const replies =
          co_await orders_.ask_all(keepers_.all(), wire::method::commit, request, control_timeout, terms);
      version = 0;
      for (std::string const& reply : replies)
        version = std::max(*version, wire::unpack<wire::CommitReply>(reply, "a server").version());
    } catch (error const& e) {
      log_.debug(fmt::format("cannot bring the servers to one state: {}", e.what()));
      bool const late = clock::now() - since >= options_.order_timeout;
      if (late && coordinator_.generation() == generation)
        coordinator_.fail(fmt::format("cannot announce the last version: {}", e.what()));
    }
    if (!version) co_await orders_.pause();
  }
  if (version) coordinator_.version_announced(generation, *version, clock::now());
  loop_.run_commands();
}

EDL_INLINE asio::awaitable<void> keeper_calls::claim(version_report r) {
  detail::one_more const under_way(claims_, r.version);
  wire::ClaimRequest request;
  request.set_generation(r.generation);
  request.set_version(r.version);
  // The next world reports a version being evaluated again; it has been claimed already.
  evaluation const& evaluations = coordinator_.versions().evaluations();
  bool claimed = evaluations.wants_frozen(r.version);
  for (int tries = 0; !claimed && coordinator_.generation() == r.generation; ++tries) {
    bool again = false;
    try {
      auto const all = keepers_.holders(r.version);
      order_terms const terms{
          .name = "claim", .generation = r.generation, .timeout = options_.order_timeout, .waits = false};
      co_await orders_.ask_all(all, wire::method::claim, request, control_timeout, terms);
      claimed = true;
    } catch (net::call_error const& e) {
      // A member of a world may not know of it yet, and a newcomer of none.
      bool const behind = e.code() == net::status::not_ready ||
                          (e.code() == net::status::stale_generation && options_.job.replicas);
      again = behind && tries < 100;
      if (!again) log_.warning(fmt::format("version {} is not evaluated: {}", r.version, e.what()));
    }
    if (again)
      co_await orders_.pause();
    else
      break;
  }
  if (!claimed) {
    r.evaluate = false;
    // Leave a version to the next world if that world knows of it or may still learn of it: a release that
    // arrived afterwards would drop a version being evaluated.
    bool const over = coordinator_.generation() != r.generation;
    if (!over && !evaluations.wants_frozen(r.version) && claims_.count(r.version) == 1) {
      release_frozen const nothing{r.version, true};
      co_await release(nothing);
    }
  }
  coordinator_.version_reached(r, clock::now());
  loop_.run_commands();
}

EDL_INLINE asio::awaitable<void> keeper_calls::release(release_frozen c) {
  wire::ReleaseRequest request;
  request.set_version(c.version);
  request.set_evaluation(c.evaluation);
  try {
    order_terms const terms{.name = "release", .timeout = options_.order_timeout};
    co_await orders_.ask_all(keepers_.all(), wire::method::release, request, control_timeout, terms);
  } catch (error const& e) {
    log_.debug(fmt::format("could not release version {} everywhere: {}", c.version, e.what()));
  }
}

}  // namespace edl::master

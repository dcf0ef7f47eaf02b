// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <exception>
#include <utility>

#include "edl/checkpoint/directory.hpp"
#include "edl/core/inline.hpp"
#include "edl/master/server.hpp"
#include "edl/net/carry.hpp"
#include "edl/net/status.hpp"
#include "edl/wire/edl.pb.h"
#include "edl/wire/ledger_message.hpp"
#include "edl/wire/message.hpp"
#include "edl/wire/method.hpp"

// What the master orders is ordered again until it is answered, or void.
namespace edl::master {
namespace detail {

inline constexpr std::chrono::milliseconds first_order_pause{50}, longest_order_pause{1'000};

/// Whether a call says nothing about what it asks for: it is made again.
inline bool unanswered(net::status code) {
  return code == net::status::unavailable || code == net::status::deadline_exceeded ||
         code == net::status::unauthenticated || code == net::status::not_ready;
}

}  // namespace detail

EDL_INLINE void server::carry(std::string what, std::function<asio::awaitable<void>()> work) {
  net::carry(node_, std::move(work), [this, what = std::move(what)](std::string const& why) {
    fail(fmt::format("{}: {}", what, why));
  });
}

EDL_INLINE void server::stop(std::uint64_t at) {
  coordinator_.stop(now(), at);
  run_commands();
}

EDL_INLINE void server::fail(std::string const& reason) {
  coordinator_.fail(reason);
  run_commands();
}

EDL_INLINE asio::awaitable<void> server::pause(std::chrono::milliseconds d) {
  asio::steady_timer timer(node_.executor(), d);
  co_await timer.async_wait(asio::use_awaitable);
}

EDL_INLINE bool server::takes_part(keeper const& k) const {
  membership const& all = options_.job.replicas ? coordinator_.workers() : coordinator_.servers();
  return all.known(k.id, k.incarnation);
}

EDL_INLINE asio::awaitable<std::string> server::order(keeper to, net::outgoing what, order_terms terms) {
  waiting_entry const shown(waiting_, {to, terms.name, {}, std::chrono::steady_clock::now()});
  for (auto rest = detail::first_order_pause;; rest = std::min(2 * rest, detail::longest_order_pause)) {
    std::optional<net::call_error> failed;
    try {
      net::reply answer = co_await to.to->call(what);
      co_return std::move(answer.message);
    } catch (net::call_error const& e) {
      failed.emplace(e);
    }
    bool const current = !terms.generation || coordinator_.generation() == *terms.generation;
    if (!current || !takes_part(to))
      throw net::call_error(net::status::cancelled,
                            fmt::format("{} is not wanted of {} any more", terms.name, to.to->name()));
    bool const late =
        terms.timeout.count() > 0 && std::chrono::steady_clock::now() - shown->since > terms.timeout;
    bool const again =
        detail::unanswered(failed->code()) && (terms.waits || failed->code() != net::status::not_ready);
    if (late || !again) throw *failed;
    shown->why = failed->what();
    co_await pause(rest);
  }
}

EDL_INLINE std::string server::waits(std::chrono::steady_clock::time_point now) const {
  std::string all = coordinator_.waits_for(now);
  for (waiting const& w : waiting_) {
    if (w.target.to && !takes_part(w.target)) continue;
    all += fmt::format("{}{} to answer '{}' (for {} s{}{})", all.empty() ? "" : "; ",
                       w.target.to ? w.target.to->name() : std::string("the storage"), w.what,
                       std::chrono::duration_cast<std::chrono::seconds>(now - w.since).count(),
                       w.why.empty() ? "" : ": ", w.why);
  }
  if (!keeper_.kept()) all += all.empty() ? "the journal to be written" : "; the journal to be written";
  return all.empty() ? "nothing that it knows of" : all;
}

EDL_INLINE void server::watch_steps(std::chrono::steady_clock::time_point now) {
  std::string shown = shown_.value_or("");
  if (bool const tell = watchdog_.look(coordinator_.steps(), now); tell) {
    shown = fmt::format("no step for {} s: waits for {}",
                        std::chrono::duration_cast<std::chrono::seconds>(watchdog_.still(now)).count(),
                        waits(now));
    log_.warning(fmt::format("the job has made {}", shown));
  } else if (!watchdog_.stuck(now)) {
    shown.clear();
  }
  if (shown_ == shown) return;
  shown_ = shown;
  if (around_.waits) around_.waits(shown);
}

// ---- Restore points ----

EDL_INLINE server::finding server::look_for_checkpoint() const try {
  finding f;
  if (options_.checkpoint_dir.empty()) return f;
  bool const tolerant = options_.ignore_damaged_checkpoints;
  auto const search = checkpoint::find_checkpoint(
      options_.checkpoint_dir, checkpoint::check::checksums,
      tolerant ? checkpoint::unreadable::passed_over : checkpoint::unreadable::refused);
  if (!search.passed_over.empty()) f.warning = search.warning();
  if (!search.newest && !search.passed_over.empty() && !tolerant)
    f.unusable = fmt::format(
        "no checkpoint in {} can be used to go on from; the same command with "
        "--ignore_damaged_checkpoints starts anew",
        options_.checkpoint_dir);
  if (!search.passed_over.empty()) f.point = options_.anew;
  if (search.newest) {
    checkpoint::manifest const m = checkpoint::read_manifest(*search.newest);
    f.point = restore_point{*search.newest, m.version, m.applied()};
  }
  return f;
} catch (std::exception const& e) {
  finding f;
  f.why = e.what();
  return f;
}

EDL_INLINE void server::execute(find_restore_point const& c) {
  carry("the search for a checkpoint ended", [this, c] { return find(c); });
}

EDL_INLINE asio::awaitable<void> server::find(find_restore_point c) {
  auto const since = std::chrono::steady_clock::now();
  waiting_entry const shown(waiting_, {{}, options_.checkpoint_dir, {}, since});
  for (;;) {
    finding f;
    std::function<void()> const look = [&] { f = look_for_checkpoint(); };
    co_await checkpoints_.run(std::string(), look);  // large ones take their time
    if (coordinator_.generation() != c.generation || coordinator_.over()) co_return;
    if (!f.warning.empty()) log_.warning(f.warning);
    if (f.why.empty() && f.unusable.empty()) {
      coordinator_.restore_point_found(c.generation, f.point, std::chrono::steady_clock::now());
      break;
    }
    bool const late = std::chrono::steady_clock::now() - since >= options_.order_timeout;
    if (!f.unusable.empty() || late) {
      coordinator_.fail(f.unusable.empty() ? fmt::format("no checkpoint in {} can be looked for: {}",
                                                         options_.checkpoint_dir, f.why)
                                           : f.unusable);
      break;
    }
    if (shown->why.empty())
      log_.warning(fmt::format("no checkpoint can be looked for yet, it is tried again: {}", f.why));
    shown->why = f.why;
    co_await pause(options_.storage_pause);
  }
  run_commands();
}

// ---- Servers ----

EDL_INLINE void server::execute(configure_servers const& c) {
  for (std::uint32_t const id : c.servers)
    carry(fmt::format("server {} cannot be configured", id), [this, id, c] { return configure(id, c); });
}

EDL_INLINE wire::ConfigureRequest server::configuration(std::uint32_t id, configure_servers const& c) const {
  wire::ConfigureRequest request;
  request.set_generation(c.generation);
  request.set_restore(c.restore);
  request.set_keep(c.keep);
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

EDL_INLINE asio::awaitable<void> server::configure(std::uint32_t id, configure_servers c) {
  auto const it = servers_.find(id);
  if (it == servers_.end()) co_return;  // lost already: another generation follows
  keeper const k{.to = it->second.to, .range = 0, .id = id, .incarnation = it->second.incarnation};
  std::string failed;
  std::optional<copy_position> kept;
  bool ahead = false;
  try {
    wire::ConfigureRequest const request = configuration(id, c);
    net::outgoing const what{
        .method = wire::method::configure, .message = wire::pack(request), .timeout = disk_timeout};
    order_terms const terms{
        .name = "configure", .generation = c.generation, .timeout = options_.order_timeout};
    std::string const answer = co_await order(k, what, terms);
    auto const reply = wire::unpack<wire::ConfigureReply>(answer, k.to->name());
    if (c.keep && reply.serves()) kept = copy_position{reply.version(), wire::from_message(reply.ledger())};
  } catch (net::call_error const& e) {
    // A server that is gone is found by its exit or its silence, and another generation begins.
    if (e.code() == net::status::cancelled) co_return;
    ahead = e.code() == net::status::stale_generation;
    failed = e.what();
  }
  auto const now = std::chrono::steady_clock::now();
  if (ahead)
    coordinator_.server_ahead(id, k.incarnation, c.generation, now);
  else
    coordinator_.server_configured(id, k.incarnation, c.generation, failed, now, std::move(kept));
  run_commands();
}

}  // namespace edl::master

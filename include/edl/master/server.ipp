// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <exception>
#include <functional>
#include <map>
#include <optional>

#include "edl/core/inline.hpp"
#include "edl/core/partition.hpp"
#include "edl/master/server.hpp"
#include "edl/net/event.hpp"
#include "edl/net/status.hpp"
#include "edl/wire/checkpoint.hpp"
#include "edl/wire/checkpoint_directory.hpp"
#include "edl/wire/edl.pb.h"
#include "edl/wire/layout_digest.hpp"
#include "edl/wire/ledger_message.hpp"
#include "edl/wire/message.hpp"
#include "edl/wire/method.hpp"
#include "edl/wire/model_file.hpp"

namespace edl::master {
namespace detail {

inline constexpr std::chrono::seconds control_timeout{30}, disk_timeout{600};
inline constexpr std::chrono::milliseconds longest_watch{5'000}, longest_entry{1'000}, call_again{200};

inline role role_of(wire::JoinRequest::Role r) {
  return r == wire::JoinRequest::SERVER ? role::server : role::worker;
}

inline wire::Task to_message(task_reply const& r, job_options const& o) {
  wire::Task t;
  static_assert(int(task_kind::finished) == wire::Task::FINISHED);
  t.set_kind(wire::Task::Kind(r.kind));
  t.set_generation(r.generation);
  if (!is_work(r.kind)) return t;
  t.set_lease(r.lease);
  t.mutable_key()->set_epoch(r.key.epoch);
  t.mutable_key()->set_index(r.key.index);
  t.set_shard(r.range.shard);
  t.set_shard_name(o.shards(r.kind)[r.range.shard].name);
  t.set_begin(r.range.begin);
  t.set_end(r.range.end);
  t.set_version(r.version);
  t.set_applied(r.applied);
  t.set_resumed(r.resumed);
  return t;
}

/// Calls to all servers under way.
struct gathering {
  explicit gathering(asio::any_io_executor on, std::size_t n) : replies(n), left(n), changed(on) {}
  std::vector<std::string> replies;
  std::exception_ptr failed;
  std::size_t left;
  net::event changed;
};

}  // namespace detail

EDL_INLINE server::server(net::node& on, server_options options, callbacks around, logger log)
    : node_(on),
      options_(std::move(options)),
      around_(std::move(around)),
      log_(std::move(log)),
      coordinator_(options_.job, std::chrono::steady_clock::now(), options_.before),
      changed_(on.executor()),
      events_(options_.before ? options_.before->events : 0) {}

EDL_INLINE void server::listens_at(std::vector<std::string> addresses) {
  addresses_ = std::move(addresses);
  obey();
}

EDL_INLINE asio::awaitable<void> server::handle(net::request& r) {
  auto const now = std::chrono::steady_clock::now();
  std::string reply;
  switch (r.method()) {
    case wire::method::join: {
      auto const m = wire::unpack<wire::JoinRequest>(r.message(), r.peer());
      join_request const request{detail::role_of(m.role()),
                                 m.id(),
                                 m.incarnation(),
                                 {m.addresses().begin(), m.addresses().end()},
                                 m.layout(),
                                 m.held(),
                                 {m.ranges().begin(), m.ranges().end()}};
      std::vector<net::address> where;
      for (std::string const& a : request.addresses) where.push_back(net::parse_address(a));
      join_reply const answer = coordinator_.join(request, now);
      bool const keeps = request.of == role::server || options_.job.replicas;
      if (answer.accepted && keeps && servers_[m.id()].incarnation != m.incarnation())
        servers_[m.id()] = {
            m.incarnation(),
            std::make_shared<net::channel>(
                node_, where, fmt::format("{}-{}", request.of == role::server ? "ps" : "worker", m.id()))};
      wire::JoinReply out;
      out.set_accepted(answer.accepted);
      out.set_reason(answer.reason);
      reply = wire::pack(out);
      break;
    }
    case wire::method::cluster: {
      wire::Cluster out;
      out.set_generation(coordinator_.generation());
      out.set_ready(coordinator_.ready());
      for (range_place const& place : coordinator_.places()) {
        auto* range = out.add_ranges();
        range->set_server(place.primary);
        if (member const* const m = coordinator_.servers().find(place.primary))
          for (std::string const& a : m->addresses) range->add_addresses(a);
      }
      reply = wire::pack(out);
      break;
    }
    case wire::method::heartbeat: {
      auto const m = wire::unpack<wire::Heartbeat>(r.message(), r.peer());
      heartbeat_reply const answer =
          coordinator_.heartbeat(detail::role_of(m.role()), m.id(), m.incarnation(),
                                 {.version = m.version(),
                                  .records = m.records(),
                                  .loss = m.loss(),
                                  .resident_bytes = m.resident_bytes()},
                                 now);
      wire::HeartbeatReply out;
      out.set_known(answer.known);
      out.set_stranger(answer.stranger);
      out.set_finished(answer.finished && ended_);  // not before the model has been taken from the servers
      reply = wire::pack(out);
      break;
    }
    case wire::method::leave: {
      auto const m = wire::unpack<wire::LeaveRequest>(r.message(), r.peer());
      coordinator_.left(detail::role_of(m.role()), m.id(), m.incarnation(), now);
      reply = wire::pack(wire::Empty{});
      break;
    }
    case wire::method::cut_off: {
      auto const m = wire::unpack<wire::CutOffRequest>(r.message(), r.peer());
      coordinator_.backup_cut_off(m.server(), m.generation(), m.range(), now);
      reply = wire::pack(wire::Empty{});
      break;
    }
    case wire::method::watch:
      reply = co_await watch(r);
      break;
    case wire::method::enter:
      reply = co_await enter(r);
      break;
    case wire::method::task: {
      auto const m = wire::unpack<wire::TaskRequest>(r.message(), r.peer());
      task_reply work = coordinator_.request_task(m.worker(), m.incarnation(), now);
      // The model is still to be taken from the workers that keep it.
      if (work.kind == task_kind::finished && options_.job.replicas && !ended_) work.kind = task_kind::wait;
      reply = wire::pack(detail::to_message(work, options_.job));
      break;
    }
    case wire::method::report: {
      auto const m = wire::unpack<wire::TaskReport>(r.message(), r.peer());
      wire::TaskReportReply out;
      out.set_accepted(coordinator_.report_task({.worker = m.worker(),
                                                 .incarnation = m.incarnation(),
                                                 .lease = m.lease(),
                                                 .error = m.error(),
                                                 .metrics = {m.metrics().begin(), m.metrics().end()},
                                                 .returned = m.returned(),
                                                 .applied = m.applied(),
                                                 .skipped = m.skipped()},
                                                now));
      reply = wire::pack(out);
      break;
    }
    case wire::method::version: {
      auto const m = wire::unpack<wire::VersionReport>(r.message(), r.peer());
      version_report const report{m.generation(), m.version(), m.evaluate(), m.checkpoint()};
      if (report.evaluate)
        node_.spawn([this, report] { return claim(report); });
      else
        coordinator_.version_reached(report, now);
      reply = wire::pack(wire::Empty{});
      break;
    }
    default:
      throw net::call_error(net::status::unknown_method,
                            fmt::format("the master knows no method {}", r.method()));
  }
  obey();
  co_await r.reply(reply);
}

EDL_INLINE bool server::stranger(role of, std::uint32_t id, std::uint64_t incarnation) const {
  membership const& all = of == role::worker ? coordinator_.workers() : coordinator_.servers();
  return all.check(id, incarnation) == membership::verdict::fresh && !coordinator_.over();
}

EDL_INLINE asio::awaitable<std::string> server::watch(net::request& r) {
  auto const m = wire::unpack<wire::WatchRequest>(r.message(), r.peer());
  role const of = detail::role_of(m.role());
  ++calls_[{of, m.id()}];
  auto const until = std::chrono::steady_clock::now() + std::min(r.time_left(), detail::longest_watch);
  try {
    while (coordinator_.generation() == m.generation() && !stranger(of, m.id(), m.incarnation())) {
      bool const in_time = co_await changed_.wait_until(until);
      if (!in_time) break;
    }
  } catch (asio::system_error const&) {
    hung_up(of, m.id(), m.incarnation());
    throw;
  }
  wire::WatchReply out;
  out.set_stranger(stranger(of, m.id(), m.incarnation()));
  out.set_generation(coordinator_.generation());
  co_return wire::pack(out);
}

// Its connection ended while it waited. Another process' reset may have caused that, so it has a moment to
// call again.
EDL_INLINE void server::hung_up(role of, std::uint32_t id, std::uint64_t incarnation) {
  std::uint64_t const calls = calls_[{of, id}];
  node_.spawn([this, of, id, incarnation, calls]() -> asio::awaitable<void> {
    asio::steady_timer timer(node_.executor(), detail::call_again);
    co_await timer.async_wait(asio::use_awaitable);
    if (calls_[{of, id}] != calls) co_return;
    coordinator_.hung_up(of, id, incarnation, std::chrono::steady_clock::now());
    obey();
  });
}

EDL_INLINE asio::awaitable<std::string> server::enter(net::request& r) {
  auto const m = wire::unpack<wire::EnterRequest>(r.message(), r.peer());
  entry e{.incarnation = m.incarnation(), .last = m.last(), .copy = {}, .suspect = {}};
  if (m.copy()) e.copy = copy_position{m.version(), wire::from_message(m.ledger()), m.of()};
  if (m.suspect_size() > 0) e.suspect = m.suspect(0);
  coordinator_.enter(m.worker(), std::move(e), std::chrono::steady_clock::now());
  obey();
  // Known to the master before this one, it may ask to enter before it has joined here.
  bool const came_early = stranger(role::worker, m.worker(), m.incarnation());
  auto const until = std::chrono::steady_clock::now() + std::min(r.time_left(), detail::longest_entry);
  wire::World out;
  for (;;) {
    bool const known = coordinator_.workers().known(m.worker(), m.incarnation());
    out.set_known(known || stranger(role::worker, m.worker(), m.incarnation()));
    out.set_over(coordinator_.over() && ended_);
    if (!out.known() || out.over() || (known && came_early)) break;
    if (world const* const w =
            coordinator_.over() ? nullptr : coordinator_.world_of(m.worker(), m.incarnation())) {
      out.set_number(w->number);
      out.set_version(w->version);
      out.set_restore(w->restore);
      for (world::member const& one : w->members) {
        auto* const member = out.add_members();
        member->set_id(one.id);
        member->set_incarnation(one.incarnation);
        member->set_current(one.current);
        for (std::string const& a : one.addresses) member->add_addresses(a);
      }
      break;
    }
    if (!co_await changed_.wait_until(until)) break;
  }
  co_return wire::pack(out);
}

EDL_INLINE asio::awaitable<void> server::tick() {
  asio::steady_timer timer(node_.executor());
  while (!coordinator_.over()) {
    coordinator_.tick(std::chrono::steady_clock::now());
    obey();
    timer.expires_after(std::chrono::milliseconds(250));
    co_await timer.async_wait(asio::use_awaitable);
  }
}

EDL_INLINE void server::exited(role of, std::uint32_t id, exit_kind kind, std::string const& why,
                               std::uint64_t number) {
  events_ = number;
  coordinator_.exited(of, id, kind, why, std::chrono::steady_clock::now());
  obey();
}

EDL_INLINE void server::obey() {
  // Before anybody hears of it.
  memory now = coordinator_.remembered();
  now.events = events_;
  now.addresses = addresses_;
  options_.journal.write(now);
  for (auto commands = coordinator_.take_commands(); !commands.empty();
       commands = coordinator_.take_commands())
    for (command const& c : commands) std::visit([this](auto const& one) { execute(one); }, c);
  changed_.notify();
}

EDL_INLINE void server::execute(find_restore_point const& c) {
  std::optional<restore_point> found;
  if (!options_.checkpoint_dir.empty()) {
    if (auto const path = wire::newest_valid(options_.checkpoint_dir)) {
      wire::manifest const m = wire::read_manifest(*path);
      found = restore_point{*path, m.version, m.applied()};
    }
  }
  coordinator_.restore_point_found(c.generation, found, std::chrono::steady_clock::now());
}

EDL_INLINE void server::execute(configure_servers const& c) {
  for (std::uint32_t const id : c.servers) node_.spawn([this, id, c] { return configure(id, c); });
}

EDL_INLINE void server::execute(ask_version const& c) {
  node_.spawn([this, g = c.generation] { return settle(g); });
}

EDL_INLINE void server::execute(write_checkpoint const& c) {
  node_.spawn([this, c] { return checkpoint(c); });
}

EDL_INLINE void server::execute(release_frozen const& c) {
  node_.spawn([this, c] { return release(c); });
}

EDL_INLINE void server::execute(replace_process const& c) { around_.replace(c.of, c.id, c.with); }

EDL_INLINE void server::execute(evaluation_done const& c) { around_.evaluated(c.result); }

EDL_INLINE void server::execute(finish_job const&) {
  node_.spawn([this] { return finish(); });
}

EDL_INLINE void server::execute(fail_job const& c) {
  if (!std::exchange(ended_, true)) around_.ended(c.reason);
}

EDL_INLINE void server::execute(log_line const& c) { log_.log(c.level, c.text); }

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
  peer const p = servers_[id];
  std::string failed;
  std::optional<copy_position> kept;
  try {
    wire::ConfigureRequest const request = configuration(id, c);
    net::outgoing const what{
        .method = wire::method::configure, .message = wire::pack(request), .timeout = detail::disk_timeout};
    net::reply const answer = co_await p.to->call(what);
    auto const reply = wire::unpack<wire::ConfigureReply>(answer.message, p.to->name());
    if (c.keep && reply.serves()) kept = copy_position{reply.version(), wire::from_message(reply.ledger())};
  } catch (net::call_error const& e) {
    // A server that is gone is found by its exit or its silence, and another generation begins.
    if (e.code() != net::status::internal && e.code() != net::status::invalid) co_return;
    failed = e.what();
  }
  coordinator_.server_configured(id, p.incarnation, c.generation, failed, std::chrono::steady_clock::now(),
                                 std::move(kept));
  obey();
}

EDL_INLINE std::vector<server::keeper> server::keepers(bool one) const {
  std::vector<keeper> all;
  auto const add = [&](std::uint32_t id, std::uint32_t range) {
    if (auto const it = servers_.find(id); it != servers_.end()) all.push_back({it->second.to, range});
  };
  if (options_.job.replicas) {
    auto members = coordinator_.current_world().members;
    if (one) std::ranges::stable_partition(members, [](world::member const& m) { return m.current; });
    for (world::member const& m : members) add(m.id, 0);
    if (one && all.size() > 1) all.resize(1);
  } else {
    for (std::uint32_t r = 0; r < coordinator_.places().size(); ++r) add(coordinator_.places()[r].primary, r);
  }
  return all;
}

template <class Request>
asio::awaitable<std::vector<std::string>> server::ask_all(std::vector<keeper> whom, std::uint16_t method,
                                                          Request request,
                                                          std::chrono::milliseconds timeout) {
  auto const g = std::make_shared<detail::gathering>(node_.executor(), whom.size());
  for (std::size_t place = 0; place < whom.size(); ++place) {
    request.set_range(whom[place].range);
    node_.spawn([g, to = whom[place].to,
                 what = net::outgoing{.method = method, .message = wire::pack(request), .timeout = timeout},
                 place]() -> asio::awaitable<void> {
      try {
        net::reply answer = co_await to->call(what);
        g->replies[place] = std::move(answer.message);
      } catch (...) {
        g->failed = std::current_exception();
      }
      --g->left;
      g->changed.notify();
    });
  }
  while (g->left > 0) co_await g->changed.wait();
  if (g->failed) std::rethrow_exception(g->failed);
  co_return g->replies;
}

EDL_INLINE asio::awaitable<void> server::pause() {
  asio::steady_timer timer(node_.executor(), std::chrono::milliseconds(50));
  co_await timer.async_wait(asio::use_awaitable);
}

EDL_INLINE asio::awaitable<void> server::settle(std::uint64_t generation) {
  wire::SettleRequest request;
  request.set_generation(generation);
  std::optional<std::uint64_t> version;
  // Members of a world may not have heard of it yet, and one of them may have made the last step before the
  // others. The loss of one begins another generation.
  while (!version && coordinator_.generation() == generation && !coordinator_.over()) {
    try {
      auto const replies =
          co_await ask_all(keepers(), wire::method::settle, request, detail::control_timeout);
      version = 0;
      for (std::string const& reply : replies)
        version = std::max(*version, wire::unpack<wire::SettleReply>(reply, "a server").version());
    } catch (error const& e) {
      log_.debug(fmt::format("the servers could not be settled: {}", e.what()));
    }
    if (!version) co_await pause();
  }
  if (version) coordinator_.version_told(generation, *version, std::chrono::steady_clock::now());
  obey();
}

EDL_INLINE std::vector<server::keeper> server::claimants(std::uint64_t version) const {
  if (!options_.job.replicas) return keepers();
  std::vector<keeper> all;
  for (std::uint32_t const id : coordinator_.holders(version))
    if (auto const it = servers_.find(id); it != servers_.end()) all.push_back({it->second.to, 0});
  return all;
}

EDL_INLINE asio::awaitable<void> server::claim(version_report r) {
  wire::ClaimRequest request;
  request.set_generation(r.generation);
  request.set_version(r.version);
  // One that is being evaluated is told again by the next world, and has been claimed.
  bool claimed = coordinator_.evaluations().wants_frozen(r.version);
  for (int tries = 0; !claimed && coordinator_.generation() == r.generation; ++tries) {
    bool again = false;
    try {
      auto const all = claimants(r.version);
      co_await ask_all(all, wire::method::claim, request, detail::control_timeout);
      claimed = true;
    } catch (net::call_error const& e) {
      // A member of a world may not have heard of it yet.
      again = e.code() == net::status::stale_generation && options_.job.replicas && tries < 100;
      if (!again) log_.warning(fmt::format("version {} is not evaluated: {}", r.version, e.what()));
    }
    if (again)
      co_await pause();
    else
      break;
  }
  if (!claimed) {
    r.evaluate = false;
    release_frozen const nothing{r.version, true};
    co_await release(nothing);
  }
  coordinator_.version_reached(r, std::chrono::steady_clock::now());
  obey();
}

EDL_INLINE asio::awaitable<void> server::release(release_frozen c) {
  wire::ReleaseRequest request;
  request.set_version(c.version);
  request.set_evaluation(c.evaluation);
  try {
    co_await ask_all(keepers(), wire::method::release, request, detail::control_timeout);
  } catch (error const& e) {
    log_.debug(fmt::format("version {} could not be released everywhere: {}", c.version, e.what()));
  }
}

EDL_INLINE asio::awaitable<void> server::checkpoint(write_checkpoint c) {
  std::string failed;
  bool again = false;
  std::string const path = wire::checkpoint_path(options_.checkpoint_dir, c.version);
  try {
    wire::begin_checkpoint(path);
    wire::CheckpointRequest request;
    request.set_generation(c.generation);
    request.set_version(c.version);
    request.set_path(path);
    request.set_final(c.final);
    wire::manifest m = options_.manifest;
    m.version = c.version;
    m.layout = wire::layout_digest(options_.layout);
    auto const replies =
        co_await ask_all(keepers(true), wire::method::checkpoint, request, detail::disk_timeout);
    for (std::string const& reply : replies) {
      auto const f = wire::unpack<wire::CheckpointReply>(reply, "a server");
      m.files.push_back({f.file(), f.bytes(), f.crc32(), f.version(), wire::from_message(f.ledger())});
    }
    wire::commit_checkpoint(path, m);
    wire::prune(options_.checkpoint_dir, options_.keep_checkpoint_max);
  } catch (net::call_error const& e) {
    // Of a final one, another generation is asked for when who was to write it is lost.
    if (e.code() == net::status::unavailable && c.final && options_.job.replicas) again = true;
    failed = e.what();
  } catch (error const& e) {
    failed = e.what();
  }
  if (again) {
    co_await pause();
    if (coordinator_.generation() == c.generation) execute(c);
    co_return;
  }
  coordinator_.checkpoint_written(c.generation, c.version, failed, std::chrono::steady_clock::now());
  obey();
}

/// From the newest copy that can be reached: one member may have made the last step before the others.
EDL_INLINE asio::awaitable<std::uint64_t> server::pull_copy(std::span<float> variables) {
  wire::SettleRequest settle;
  settle.set_generation(coordinator_.generation());
  wire::PullRequest request;
  request.set_generation(coordinator_.generation());
  net::outgoing const ask{
      .method = wire::method::settle, .message = wire::pack(settle), .timeout = detail::control_timeout};
  std::multimap<std::uint64_t, keeper, std::greater<>> newest;
  std::string why = "no worker has it";
  for (auto const& k : keepers()) try {
      net::reply const reply = co_await k.to->call(ask);
      newest.emplace(wire::unpack<wire::SettleReply>(reply.message, k.to->name()).version(), k);
    } catch (net::call_error const& e) {
      why = e.what();
    }
  for (auto const& [version, k] : newest) try {
      net::outgoing what{
          .method = wire::method::pull, .message = wire::pack(request), .timeout = detail::disk_timeout};
      what.into.push_back(std::as_writable_bytes(variables));
      co_await k.to->call(what);
      co_return version;
    } catch (net::call_error const& e) {
      why = e.what();
    }
  throw error(fmt::format("the model cannot be had: {}", why));
}

EDL_INLINE asio::awaitable<void> server::export_variables() {
  std::vector<float> variables(options_.layout.size());
  std::uint64_t version = 0;
  if (options_.job.replicas) {
    version = co_await pull_copy(variables);
  } else {
    auto const from = keepers();
    for (std::size_t i = 0; i < from.size(); ++i) {
      element_range const range = partition(variables.size(), std::uint32_t(from.size()), std::uint32_t(i));
      wire::PullRequest request;
      request.set_range(from[i].range);
      request.set_generation(coordinator_.generation());
      net::outgoing what{
          .method = wire::method::pull, .message = wire::pack(request), .timeout = detail::disk_timeout};
      what.into.push_back(std::as_writable_bytes(std::span(variables).subspan(range.first, range.size())));
      net::reply const reply = co_await from[i].to->call(what);
      version = wire::unpack<wire::PullReply>(reply.message, from[i].to->name()).version();
    }
  }
  std::string const path = options_.output + "/model.safetensors";
  wire::export_model(path, options_.layout, variables, version);
  log_.info(fmt::format("model written to {}", path));
}

EDL_INLINE asio::awaitable<void> server::finish() {
  std::string failed;
  try {
    if (!options_.output.empty()) co_await export_variables();
  } catch (error const& e) {
    failed = e.what();
  }
  if (!std::exchange(ended_, true)) around_.ended(failed);
  changed_.notify();
}

}  // namespace edl::master

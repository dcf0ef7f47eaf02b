// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <atomic>
#include <charconv>
#include <fstream>
#include <functional>
#include <mutex>
#include <random>

#include "edl/app/progress.hpp"
#include "edl/app/roles.hpp"
#include "edl/app/setup.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/partition.hpp"
#include "edl/master/server.hpp"
#include "edl/net/channel.hpp"
#include "edl/net/listener.hpp"
#include "edl/net/node.hpp"
#include "edl/net/status.hpp"
#include "edl/platform/process.hpp"
#include "edl/ps/server.hpp"
#include "edl/wire/edl.pb.h"
#include "edl/wire/layout_digest.hpp"
#include "edl/wire/message.hpp"
#include "edl/wire/method.hpp"
#include "edl/worker/remote.hpp"
#include "edl/worker/session.hpp"

namespace edl::app {
namespace detail {

using namespace std::chrono_literals;

inline std::string variable(char const* name) {
  char const* value = std::getenv(name);
  return value ? value : "";
}

inline std::uint64_t draw() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

inline net::node_options node_options_of(surroundings const& s, logger const& log) {
  return {.job = s.job_name, .secret = net::token(s.token), .log = log};
}

/// Where a process listens: a port for other machines, and a Unix socket for this one's.
inline std::vector<net::address> listen_at(std::string const& host, std::uint16_t port) {
  return {net::address{net::address::transport::local, fmt::format("edl-{}-{:016x}", ::getpid(), draw()), 0},
          net::address{net::address::transport::tcp, host, port}};
}

inline std::vector<net::address> master_addresses(std::string const& text) {
  std::vector<net::address> out;
  for (std::size_t at = 0; at <= text.size();) {
    auto const end = std::min(text.find(',', at), text.size());
    std::string one = text.substr(at, end - at);
    if (one.rfind("tcp:", 0) != 0 && one.rfind("unix:", 0) != 0) one = "tcp:" + one;
    out.push_back(net::parse_address(one));
    at = end + 1;
  }
  return out;
}

inline std::string joined(std::vector<net::address> const& addresses) {
  std::string text;
  for (net::address const& a : addresses) text += (text.empty() ? "" : ",") + net::to_string(a);
  return text;
}

inline std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * std::uint64_t(::sysconf(_SC_PAGESIZE));
}

/// Membership of a worker or a server: joins, and tells the master once a second that it lives.
class member {
 public:
  member(net::node& on, net::channel& master, wire::JoinRequest::Role role, std::uint32_t id)
      : node_(on), master_(master), role_(role), id_(id), incarnation_(draw()) {}

  /// Throws error when the master does not take this process.
  void join(std::uint64_t layout, std::vector<net::address> const& listening) {
    wire::JoinRequest request;
    request.set_role(role_);
    request.set_id(id_);
    request.set_incarnation(incarnation_);
    request.set_layout(layout);
    for (net::address const& a : listening) request.add_addresses(net::to_string(a));
    net::outgoing what{.method = wire::method::join,
                       .message = wire::pack(request),
                       .timeout = worker::master_patience,
                       .idempotent = true};
    auto const reply =
        wire::unpack<wire::JoinReply>(net::wait(master_, std::move(what)).message, master_.name());
    if (!reply.accepted())
      throw error(fmt::format("the master does not take this process: {}", reply.reason()));
    node_.spawn([this] { return beat(); });
  }

  /// Where the heartbeats' numbers come from.
  void watch(worker::progress const& of) { seen_ = &of; }
  /// The same for a server; `version` is called on the node's thread. Before `join`.
  void watch(std::function<std::uint64_t()> version) { version_ = std::move(version); }

  std::uint64_t incarnation() const { return incarnation_; }
  bool finished() const { return finished_; }

  /// The master has given this process up, or cannot be reached any more.
  bool lost() const { return lost_; }

 private:
  asio::awaitable<void> beat() {
    asio::steady_timer timer(node_.executor());
    for (;;) {
      wire::Heartbeat beat;
      beat.set_role(role_);
      beat.set_id(id_);
      beat.set_incarnation(incarnation_);
      if (worker::progress const* seen = seen_) {
        beat.set_version(seen->version);
        beat.set_records(seen->records);
        beat.set_loss(seen->loss);
      }
      if (version_) beat.set_version(version_());
      beat.set_resident_bytes(resident_bytes());
      try {
        net::outgoing what{.method = wire::method::heartbeat,
                           .message = wire::pack(beat),
                           .timeout = worker::master_patience,
                           .idempotent = true};
        net::reply const answer = co_await master_.call(what);
        auto const reply = wire::unpack<wire::HeartbeatReply>(answer.message, master_.name());
        if (!reply.known()) lost_ = true;
        if (reply.finished()) finished_ = true;
      } catch (net::call_error const&) {
        lost_ = true;
      }
      timer.expires_after(1s);
      co_await timer.async_wait(asio::use_awaitable);
    }
  }

  net::node& node_;
  net::channel& master_;
  wire::JoinRequest::Role role_;
  std::uint32_t id_;
  std::uint64_t incarnation_;
  std::function<std::uint64_t()> version_;
  std::atomic<worker::progress const*> seen_{nullptr};
  std::atomic<bool> finished_{false}, lost_{false};
};

inline master::exit_kind kind_of(platform::ending const& e, bool over) {
  if (over) return master::exit_kind::completed;
  // Told to stop, or killed, from outside: nobody's fault. A crash is.
  bool const from_outside =
      e.asked || e.signal == SIGKILL || e.signal == SIGTERM || (e.signal == 0 && e.code == 0);
  return from_outside ? master::exit_kind::preempted : master::exit_kind::failed;
}

inline std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline");
  std::vector<std::string> command;
  for (std::string part; std::getline(file, part, '\0');) command.push_back(part);
  if (command.empty()) throw error("cannot read this process's own command line from /proc/self/cmdline");
  return command;
}

}  // namespace detail

EDL_INLINE surroundings read_environment() {
  surroundings s{.role = detail::variable("EDL_ROLE"),
                 .job_name = detail::variable("EDL_JOB_NAME"),
                 .token = detail::variable("EDL_JOB_TOKEN"),
                 .master = detail::variable("MASTER_ADDR"),
                 .host = detail::variable("MY_POD_IP"),
                 .platform = detail::variable("EDL_PLATFORM")};
  if (s.role.empty()) return s;
  if (s.role != "master" && s.role != "ps" && s.role != "worker")
    throw usage_error(fmt::format("EDL_ROLE={}: expected master, ps or worker", s.role));
  if (s.token.empty())
    throw usage_error("EDL_JOB_TOKEN is not set: all processes of a job need the same secret");
  if (s.role == "master") return s;
  if (s.master.empty()) throw usage_error("MASTER_ADDR is not set: where is the master? (host:port)");
  char const* const name = s.role == "ps" ? "PS_ID" : "WORKER_ID";
  std::string const id = detail::variable(name);
  auto const [end, bad] = std::from_chars(id.data(), id.data() + id.size(), s.id);
  if (bad != std::errc{} || end != id.data() + id.size())
    throw usage_error(fmt::format("{}='{}': expected a number", name, id));
  return s;
}

EDL_INLINE int run_master(program& p, arguments const& a, surroundings const& s, logger const& log,
                          signals const& stop) {
  using namespace detail;
  for (auto const& [name, value] : a.given) log.info(fmt::format("{} = {}", name, value));
  job const& j = a.job;
  make_directories(j);
  records const r = open_records(j, log);
  master::job_options const options = master_options(j, r, log);

  std::atomic<bool> over{false};
  std::mutex mutex;
  std::string failure;
  net::node node(node_options_of(s, log));
  std::unique_ptr<platform::processes> processes;
  progress_view view(log, ::isatty(2) == 1);
  std::string address;
  auto const start = [&](platform::instance who) {
    processes->start(who,
                     {{"EDL_ROLE", who.what == platform::role::server ? "ps" : "worker"},
                      {"EDL_JOB_NAME", s.job_name},
                      {"EDL_JOB_TOKEN", s.token},
                      {"MASTER_ADDR", address},
                      {who.what == platform::role::server ? "PS_ID" : "WORKER_ID", std::to_string(who.id)},
                      {"WORKER_NUM", std::to_string(j.num_workers)}});
  };
  auto const platform_role = [](master::role of) {
    return of == master::role::server ? platform::role::server : platform::role::worker;
  };
  master::server server(node,
                        {.job = options,
                         .layout = p.layout,
                         .checkpoint_dir = j.what == command::train ? j.checkpoint_dir : "",
                         .keep_checkpoint_max = std::uint64_t(j.keep_checkpoint_max),
                         .output = j.output,
                         .manifest = describe(j, r)},
                        {.replace =
                             [&](master::role of, std::uint32_t id, std::uint32_t with) {
                               if (!processes || over) return;
                               processes->stop({platform_role(of), id}, 0ms);
                               start({platform_role(of), with});
                             },
                         .evaluated =
                             [&](master::evaluation_result const& result) {
                               view.clear(), log.info(evaluation_line(p, result));
                             },
                         .ended =
                             [&](std::string const& error) {
                               std::lock_guard const lock(mutex);
                               failure = error;
                               over = true;
                             }},
                        log);
  net::listener listener(node, listen_at(s.host.empty() ? j.host : s.host, j.port),
                         [&](net::request& q) { return server.handle(q); });
  address = joined(listener.addresses());
  log.info(fmt::format("master of job '{}' listens at {}", s.job_name, address));
  if (s.platform == "process") {
    processes = std::make_unique<platform::processes>(
        "/proc/self/exe", own_command(), [&](platform::ending const& e) {
          if (!over && e.failed())
            log.warning(fmt::format("{} {}", platform::name(e.who), platform::describe(e)));
          node.post([&, e] {
            server.exited(e.who.what == platform::role::server ? master::role::server : master::role::worker,
                          e.who.id, kind_of(e, over), platform::describe(e));
          });
        });
    for (int i = 0; i < j.num_ps_pods; ++i) start({platform::role::server, std::uint32_t(i)});
    for (int i = 0; i < j.num_workers; ++i) start({platform::role::worker, std::uint32_t(i)});
  }
  node.spawn([&] { return server.tick(); });
  node.spawn([&]() -> asio::awaitable<void> {
    asio::steady_timer timer(node.executor());
    while (!over) {
      view.update(server.decisions().progress(), std::chrono::steady_clock::now());
      timer.expires_after(200ms);
      co_await timer.async_wait(asio::use_awaitable);
    }
  });

  std::optional<int> signal;
  while (!over && !signal) signal = stop.wait(50ms);
  if (!signal && failure.empty() && processes) {
    // Workers ask once more, hear that the job is finished, and leave by themselves.
    for (auto waited = 0ms; waited < 5s && processes->running(platform::role::worker) > 0; waited += 10ms)
      std::this_thread::sleep_for(10ms);
  } else if (!signal && failure.empty()) {
    std::this_thread::sleep_for(2s);  // somebody else started them: let them hear of it
  }
  over = true;
  if (processes) processes->stop_all(2s);
  node.stop();
  processes.reset();
  view.clear();
  for (std::string const& line : account_lines(server.decisions())) log.info(line);
  if (signal) {
    log.warning(fmt::format("stopped by {}; the newest checkpoint is where a new start goes on",
                            ::strsignal(*signal)));
    return 128 + *signal;
  }
  if (!failure.empty()) throw error(failure);
  log.info(fmt::format("job '{}' is finished", s.job_name));
  return 0;
}

EDL_INLINE int run_server(program& p, arguments const& a, surroundings const& s, logger const& log,
                          signals const& stop) {
  using namespace detail;
  job const& j = a.job;
  auto const count = std::uint32_t(j.num_ps_pods);
  if (s.id >= count)
    throw usage_error(fmt::format("PS_ID={}: there are --num_ps_pods={} servers", s.id, count));
  auto const when = policy_of(j);
  ps::store store(store_options_of(j, p, *when, partition(p.layout.size(), count, s.id)));
  net::node node(node_options_of(s, log));
  net::channel master(node, master_addresses(s.master), "the master");
  auto const frozen = [&](std::uint64_t generation, ps::push_result const& r) {
    if (s.id != 0) return;
    wire::VersionReport report;
    report.set_generation(generation);
    report.set_version(r.version);
    report.set_evaluate(r.evaluate);
    report.set_checkpoint(r.checkpoint);
    node.spawn([&, message = wire::pack(report)]() -> asio::awaitable<void> {
      net::outgoing what{.method = wire::method::version, .message = message, .idempotent = true};
      co_await master.call(what);
    });
  };
  ps::server server(
      node, store,
      {.id = s.id,
       .servers = count,
       .layout = p.layout,
       .configure = [&](ps::store& into, std::string const& path) { configure(into, j, p, path); },
       .frozen = frozen},
      log);
  net::listener listener(node, listen_at(s.host.empty() ? j.host : s.host, 0),
                         [&](net::request& q) { return server.handle(q); });
  member self(node, master, wire::JoinRequest::SERVER, s.id);
  self.watch([&store] { return store.version(); });
  self.join(wire::layout_digest(p.layout), listener.addresses());
  log.info(fmt::format("keeps {} of {} variables (process {}), listens at {}", store.elements().size(),
                       p.layout.size(), ::getpid(), joined(listener.addresses())));
  std::optional<int> signal;
  while (!signal && !self.lost() && !self.finished()) signal = stop.wait(100ms);
  node.stop();
  if (signal || self.finished()) return 0;
  throw error("the master has given this server up or cannot be reached");
}

EDL_INLINE int run_worker(program& p, arguments const& a, surroundings const& s, logger const& log,
                          signals const& stop) {
  using namespace detail;
  job const& j = a.job;
  records const r = open_records(j, log);
  auto const trainer = p.make_trainer(j.minibatch_size, j.seed);
  net::node node(node_options_of(s, log));
  net::channel master(node, master_addresses(s.master), "the master");
  member self(node, master, wire::JoinRequest::WORKER, s.id);
  self.join(wire::layout_digest(p.layout), {});
  log.info(fmt::format("joined the job (process {})", ::getpid()));
  worker::remote_parameters parameters(node, master, p.layout.size(), p.layout.parameters);
  worker::remote_master work(master, {s.id, self.incarnation()}, parameters);
  worker::session session(j, *trainer, *p.rule, r.view(), work, parameters, log,
                          predictions_of(j, p, int(s.id)));
  self.watch(session.seen());
  session.stop_when([&] { return self.lost() || stop.wait(0ms).has_value(); });
  bool complete = false;
  try {
    complete = session.run();
  } catch (...) {
    node.stop();
    throw;
  }
  node.stop();
  if (!complete && self.lost()) throw error("the master has given this worker up or cannot be reached");
  log.info(complete ? "the job is finished" : "told to stop: what was leased has been handed back");
  return 0;
}

EDL_INLINE int run_cluster(arguments const& a, logger const& log, signals const& stop) {
  using namespace detail;
  std::atomic<int> code{-1};
  platform::processes processes("/proc/self/exe", own_command(), [&](platform::ending const& e) {
    code = e.signal ? 128 + e.signal : e.code;
  });
  platform::instance const master{platform::role::master, 0};
  processes.start(master, {{"EDL_ROLE", "master"},
                           {"EDL_PLATFORM", "process"},
                           {"EDL_JOB_NAME", a.job.name},
                           {"EDL_JOB_TOKEN", net::token::random().secret()}});
  std::optional<int> asked;
  while (code < 0) {
    std::optional<int> const signal = stop.wait(50ms);
    if (!signal) continue;
    // A terminal's Ctrl-C reaches the master by itself, too; to be told twice changes nothing.
    asked = signal;
    processes.stop(master, 10s);
  }
  if (asked) return 128 + *asked;
  if (code > 128)
    log.error(fmt::format("the master was killed by signal {}; every process of the job has ended with it",
                          code.load() - 128));
  return code;
}

}  // namespace edl::app

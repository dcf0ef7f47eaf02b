// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "edl/app/environment.hpp"
#include "edl/app/job_directory.hpp"
#include "edl/app/job_metrics.hpp"
#include "edl/app/machine_check.hpp"
#include "edl/app/machine_speed.hpp"
#include "edl/app/master_role.hpp"
#include "edl/app/member.hpp"
#include "edl/app/roles.hpp"
#include "edl/app/running.hpp"
#include "edl/base/checkpoint/layout_digest.hpp"
#include "edl/base/net/channel.hpp"
#include "edl/base/net/listener.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/net/status.hpp"
#include "edl/base/platform/launcher.hpp"
#include "edl/base/platform/line_reader.hpp"
#include "edl/base/platform/notice_watch.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/compute/device/cpu/choices.hpp"
#include "edl/compute/device/cpu/team.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/partition.hpp"
#include "edl/core/storage_error.hpp"
#include "edl/job/collective/meeting.hpp"
#include "edl/job/ps/server.hpp"
#include "edl/job/replica/replica.hpp"
#include "edl/job/train/prediction/hard_records.hpp"
#include "edl/job/train/setup/outputs.hpp"
#include "edl/job/train/setup/records.hpp"
#include "edl/job/train/setup/setup.hpp"
#include "edl/job/train/setup/start.hpp"
#include "edl/job/worker/local_rounds.hpp"
#include "edl/job/worker/remote.hpp"
#include "edl/job/worker/session.hpp"

namespace edl::app {
namespace detail {

using namespace std::chrono_literals;

/// Calls the master without waiting for the reply. The master may be away for minutes.
inline void tell(net::node& node, net::channel& master, std::uint16_t method, std::string message) {
  node.spawn([&master, method, message]() -> asio::awaitable<void> {
    net::outgoing const what{.method = method, .message = message, .idempotent = true};
    for (;;) {
      try {
        co_await master.call(what);
        co_return;
      } catch (net::call_error const& e) {
        if (!worker::is_away(e)) throw;
      }
    }
  });
}

/// Reports to the master a version that all have frozen. Runs on the node's thread.
inline void report_frozen(net::node& node, net::channel& master, std::uint64_t generation,
                          ps::push_result const& r) {
  wire::VersionReport report;
  report.set_generation(generation);
  report.set_version(r.version);
  report.set_evaluate(r.evaluate);
  report.set_checkpoint(r.checkpoint);
  tell(node, master, wire::method::version, wire::pack(report));
}

/// Where a server or worker listens.
inline std::vector<net::address> own_addresses(job const& j, process_environment const& s) {
  return listen_at(s.host.empty() ? j.processes.host : s.host, s.port);
}

/// The log line of a member that has joined. Its address interests few readers.
inline std::string joined_line(logger const& log, net::listener const* at = nullptr) {
  std::string const line = fmt::format("joined the job (process {})", ::getpid());
  return at && log.detailed() ? fmt::format("{}, listens at {}", line, joined(at->addresses())) : line;
}

/// Forwards the output of the job's processes.
inline void put(std::string_view text) {
  while (!text.empty()) {
    auto const n = ::write(2, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // ignored, like any failure to log
    text.remove_prefix(std::size_t(n));
  }
}

/// Retries while storage fails for a while. Returns a signal if one arrived before the work was done.
template <class Work>
std::optional<int> unless_stopped(Work const& work, signals const& stop, logger const& log) {
  std::optional<int> signal;
  when_storage_allows(work, [&](auto pause) { return !(signal = stop.wait(pause)); }, log);
  return signal;
}

/// The watch for a notice that this process's machine is about to be taken away. Null: none is wanted, or all
/// processes of the job are on this machine.
inline std::unique_ptr<platform::notice_watch> watch_notices(job const& j, process_environment const& s,
                                                             logger const& log) {
  auto from = platform::make_notice_source(j.processes.preemption_notice);
  if (!from || s.platform == "process") return nullptr;
  return std::make_unique<platform::notice_watch>(std::move(from), log);
}

/// Tells the master of it.
inline void pass_on(std::unique_ptr<platform::notice_watch> const& notices, member& self) {
  if (notices) self.notices([&of = *notices] { return of.notice(); });
}

// A pod has 30 s after SIGTERM, unless asked otherwise.
inline constexpr std::chrono::seconds longest_drain{20};

inline constexpr std::size_t most_masters = 5;              // killed within a minute
inline constexpr std::chrono::milliseconds latecomer{500};  // for a signal that others have already received

}  // namespace detail

EDL_INLINE int run_master(train::program& p, arguments const& a, process_environment const& s,
                          logger const& log, signals const& stop, cli::status_sink const& show) {
  if (log.detailed())
    for (auto const& [name, value] : a.given) log.info(fmt::format("{} = {}", name, value));
  // This may be the successor of a master. It must not begin with less than the existing state, and an error
  // of it would end the job.
  std::optional<master_role> role;
  std::optional<early_stop> early;
  early.emplace(stop, log, [](int signal) { return 128 + signal; });
  if (auto const signal = detail::unless_stopped([&] { role.emplace(p, a.job, s, log, show); }, stop, log))
    return 128 + *signal;
  early.reset();
  return role->run(stop);
}

EDL_INLINE int run_server(train::program& p, arguments const& a, process_environment const& s,
                          logger const& log, signals const& stop) {
  using namespace detail;
  job const& j = a.job;
  auto const count = std::uint32_t(j.processes.ps_ranges);
  // A platform may start one more, which stands in for another.
  if (s.id >= count && s.platform.empty())
    throw usage_error(
        fmt::format("PS_ID={}: the job has --num_ps_pods={} servers, and at most --ps_ranges={}", s.id,
                    j.processes.num_ps_pods, count));
  auto const notices = watch_notices(j, s, log);
  auto const when = train::policy_of(j);
  // Steps of whole variables are bound by computation; the others are bound by memory.
  int const side_by_side = s.platform == "process" ? j.processes.num_ps_pods : 1;
  thread_team team(p.layout.borders.empty() ? 1 : train::threads_of(j, side_by_side));
  p.rule->share([&team](std::function<void(int)> const& work) { team.run(team.size(), work); });
  net::node node(node_options_of(s, j, log));
  net::channel master(node, master_addresses(s.master), "the master");
  ps::server server(
      node,
      {.name = fmt::format("ps-{}", s.id),
       .ranges = count,
       .layout = p.layout,
       .delta_checkpoints = j.checkpoints.delta_checkpoints,
       .checkpoints = train::checkpoints_of(j),
       .make =
           [&](std::uint32_t range) {
             return std::make_shared<ps::store>(train::store_options_of(j, p, *when, range, count));
           },
       .configure = [&](ps::store& into, std::string const& path) { train::configure(into, j, p, path); },
       .plan = [&](std::uint64_t steps) { p.rule->train_for(steps); },
       .frozen = [&](std::uint64_t generation,
                     ps::push_result const& r) { report_frozen(node, master, generation, r); },
       .cut_off =
           [&](std::uint64_t generation, std::uint32_t range) {
             wire::CutOffRequest request;
             request.set_server(s.id);
             request.set_generation(generation);
             request.set_range(range);
             tell(node, master, wire::method::cut_off, wire::pack(request));
           },
       .failed =
           [&](std::string const& why) {
             log.log(severity::critical,
                     fmt::format("{}; this server ends, and another takes its place", why));
             std::_Exit(1);  // at once: no peer may receive what this store holds
           }},
      log);
  net::listener listener(node, own_addresses(j, s), [&](net::request& q) { return server.handle(q); });
  auto const metrics = serve_metrics(node, j, s, [&](metric_registry& to) { collect(to, server); }, log);
  std::atomic<bool> drained = false;
  member self(node, master, role::server, s.id, std::chrono::seconds(j.processes.master_timeout));
  self.started_with(train::shared_flags(j, false));
  self.watch([&server] { return server.version(); });
  self.watch_generation([&server] { return server.generation(); }, [](std::uint64_t) {});
  self.hold([&server] { return server.held(); }, [&server] { return server.heard(); });
  self.notices([&] {
    if (drained) return std::string("Kubernetes stops its pod");
    return notices ? notices->notice() : std::string();
  });
  std::optional<int> signal;
  if (!self.join(checkpoint::layout_digest(p.layout), listener.addresses(),
                 [&] { return (signal = signal ? signal : stop.wait(0ms)).has_value(); }))
    return 0;
  log.info(joined_line(log, &listener));
  auto const needed = [&] { return !self.lost() && !self.finished(); };
  while (!signal && needed()) signal = stop.wait(100ms);
  // Its node may be drained: others copy what it has, and the master then tells that it is not needed any
  // more.
  drained = signal && s.platform == "kubernetes";
  for (auto const end = clock::now() + longest_drain;
       drained && needed() && self.reaches_master() && clock::now() < end && !stop.wait(100ms);) {
  }
  if (!self.lost()) self.leave();
  node.stop();
  if (signal || self.finished()) return 0;
  self.explain_loss("server");
}

namespace detail {

/// The parts of a worker's process that do not depend on where the variables are. All of them outlive the
/// worker.
struct worker_process {
  train::program& p;
  edl::job const& j;
  process_environment const& s;
  train::records const& r;
  worker::trainer& trainer;
  net::node& node;
  net::channel& master;
  logger const& log;
  signals const& stop;
  std::string kind;  // of its processor
  std::unique_ptr<platform::notice_watch> const& notices;
  double disk = 0, network = 0;  // bytes a second, as it began
  worker::kept_minibatch kept{};

  /// Sends all this to the master.
  void introduce(member& self) const {
    self.computes_as(kind);
    self.began_with(disk, network);
    pass_on(notices, self);
    self.started_with(train::shared_flags(j, true, &p));
  }
};

/// The main loop of a worker that has joined.
template <class Parameters>
int work_as(worker_process& w, member& self, Parameters& parameters) {
  job const& j = w.j;
  logger const& log = w.log;
  std::uint32_t const id = w.s.id;
  worker::remote_master work(w.master, {id, self.incarnation()}, parameters);
  worker::session session(train::session_options_of(j, w.p), w.trainer, *w.p.rule, w.r.view(), work,
                          parameters, log, train::predictions_of(j, w.p, w.r.prediction.get(), int(id)));
  if (j.training.verify_gradients > 0)
    session.check_with(w.kept, [&](worker::assignment const& check, std::span<float> variables,
                                   std::span<std::span<float> const> rows) {
      return w.kept.fetch(w.node, id, check, variables, rows);
    });
  self.watch(session.seen());
  std::optional<train::hard_records> hard;
  if (train::hard_records::wanted(j)) {
    hard.emplace(j, w.p, *w.r.evaluation);
    session.inspect_with([&](data::batch const& b) { hard->look(w.trainer, b); },
                         [&](task_key const& done) { return hard->end_task(done); });
  }
  train::call_on_step(session, j, w.p, int(id), log);
  auto const metrics =
      serve_metrics(w.node, j, w.s, [&](metric_registry& to) { collect(to, session.seen()); }, log);
  std::atomic<bool> stop_requested = false;  // a signal arrives once; any thread may read this
  // A suspended job is over although a worker still holds a lease.
  auto const stopping = [&] {
    if (self.lost() || self.finished() || self.leaves() || w.stop.wait(0ms)) stop_requested = true;
    return stop_requested.load();
  };
  work.stop_when(stopping);
  session.stop_when(stopping);
  parameters.stop_when(stopping);
  bool lost = false;  // before its goodbye: a heartbeat that crosses it gets the reply of a stranger
  bool const complete = [&] {
    // Heartbeats read the session's progress, so they must end before the session, however it ends.
    struct last_word {
      net::node& node;
      ~last_word() { node.stop(); }
    } const stopped{w.node};
    bool done = false;
    try {
      done = session.run();
    } catch (worker::interrupted const& e) {
      // The leases could not be handed back; other workers get them when this process is gone.
      if (!self.lost() && !self.finished()) log.warning(e.what());
    }
    try {
      // Measured while the job waits for this worker.
      train::write_profile(j, w.trainer, session, fmt::format("worker-{}", id), log);
    } catch (error const& e) {
      log.error(e.what());
    }
    lost = self.lost();
    if (!lost) self.leave();
    return done || self.finished();
  }();
  if (!complete && lost) self.explain_loss("worker");
  // Finished or stopped: the master tells which.
  log.info(complete ? "the job is over" : "shutting down: returned the lease");
  return 0;
}

/// A pass over the first records whose result is discarded: it chooses kernels and touches memory. Errors in
/// these records are reported when they are trained.
EDL_INLINE void try_pass(job const& j, worker::trainer& trainer, data::source const& from) try {
  if (from.shards().empty() || from.shards().front().records == 0) return;
  data::loader once(
      from, {.threads = 0, .ring = 2, .minibatch_size = j.data.minibatch_size, .skip_damaged = true},
      [&] { return trainer.make_batch(); },
      [&](example const& record, data::batch& b, int row, mode m) { trainer.feed(record, b, row, m); });
  std::uint64_t const n = std::min(from.shards().front().records, std::uint64_t(j.data.minibatch_size));
  once.submit({.shard = 0, .begin = 0, .end = n, .m = mode::training});
  data::batch* const b = once.next();
  if (b->error.empty()) trainer.train(*b, 0, {});
  once.recycle(b);
} catch (std::exception const&) {
}

EDL_INLINE int run_replica(worker_process& w) {
  train::program& p = w.p;
  job const& j = w.j;
  process_environment const& s = w.s;
  net::node& node = w.node;
  logger const& log = w.log;
  ps::asynchronous const when(false);
  auto const store = std::make_shared<ps::store>(train::store_options_of(j, p, when, 0, 1));
  ps::server server(node,
                    {.name = fmt::format("worker-{}", s.id),
                     .layout = p.layout,
                     .delta_checkpoints = j.checkpoints.delta_checkpoints,
                     .checkpoints = train::checkpoints_of(j),
                     .make = [](std::uint32_t) -> std::shared_ptr<ps::store> {
                       throw error("a worker's copy of the model is not made by a call");
                     },
                     .configure = {},
                     .frozen = {},
                     .cut_off = {}},
                    log);
  collective::meeting meeting(node);
  member self(node, w.master, role::worker, s.id, std::chrono::seconds(j.processes.master_timeout));
  replica::replica parameters({s.id, self.incarnation()},
                              {.node = node,
                               .master = w.master,
                               .meeting = meeting,
                               .store = store,
                               .server = server,
                               .model = p,
                               .job = j,
                               // All parameters are trained there.
                               .there = j.training.freeze.empty() ? w.trainer.arena() : nullptr,
                               .log = log,
                               .frozen =
                                   [&](std::uint64_t generation, ps::push_result const& result) {
                                     if (result.evaluate || result.checkpoint)
                                       report_frozen(node, w.master, generation, result);
                                   },
                               .warm_up = [&] { try_pass(j, w.trainer, *w.r.training); }});
  net::listener listener(
      node, own_addresses(j, s),
      [&](net::request& q) {
        if (q.method() == wire::method::follow) return parameters.handle(q);
        return q.method() == wire::method::kept ? w.kept.handle(q) : server.handle(q);
      },
      net::listener_options{.streams = meeting.handler()});
  w.introduce(self);
  if (parameters.may_follow()) self.follows();
  self.watch_generation([&] { return parameters.generation(); },
                        [&](std::uint64_t now) { parameters.world_is_over(now); });
  if (!self.join(checkpoint::layout_digest(p.layout), listener.addresses(),
                 [&] { return w.stop.wait(0ms).has_value(); }))
    return 0;
  log.info(joined_line(log, &listener));
  return work_as(w, self, parameters);
}

}  // namespace detail

EDL_INLINE int run_worker(train::program& p, arguments const& a, process_environment const& s,
                          logger const& log, signals const& stop) {
  using namespace detail;
  job const& j = a.job;
  std::optional<early_stop> early;
  early.emplace(stop, log, [](int) { return 0; });
  auto const notices = watch_notices(j, s, log);
  if (j.training.leave_bad_nodes) check_machine(s.platform == "kubernetes", log);
  train::records r;
  if (unless_stopped([&] { r = train::open_records(j, p.open, log, train::trained_reading(j)); }, stop, log))
    return 0;
  train::plan_training(*p.rule, j, r);
  bool const side_by_side = s.platform == "process";
  worker::trainer_options options =
      train::trainer_options_of(j, p, side_by_side ? j.processes.num_workers : 1, int(s.id));
  options.cuda.alone = side_by_side;
  auto const trainer = p.make_trainer(options);
  if (!trainer->device().empty()) log.info(fmt::format("computes on {}", trainer->device()));
  // Logged once for all workers of a machine.
  if (std::string const note = train::precision_note(j, *trainer);
      !note.empty() && (!side_by_side || s.id == 0))
    log.warning(note);
  p.rule->share([&trainer](std::function<void(int)> const& work) { trainer->share(work); });
  net::node node(node_options_of(s, j, log));
  net::channel master(node, master_addresses(s.master), "the master");
  std::string kind =
      fmt::format("{}, {} threads, {}", processor_name(), options.device.threads, trainer->device());
  early.reset();
  worker_process w{p, j, s, r, *trainer, node, master, log, stop, std::move(kind), notices};
  // Only if the worker can be restarted on another node.
  if (j.training.leave_bad_nodes && s.platform == "kubernetes" && may_measure(master)) {
    std::error_code none;
    std::string const place =
        on_disk({std::filesystem::temp_directory_path(none), "/var/tmp", j.checkpoints.checkpoint_dir});
    w.disk = disk_speed(place);
    w.network = network_speed(master);
    log.info(speeds_in_words(w.disk, place, w.network));
  }
  if (j.strategy == strategy::allreduce) return run_replica(w);
  worker::identity const me{s.id, node.options().self.incarnation};
  worker::remote_parameters parameters(node, master, me, p.layout,
                                       j.training.gradients == gradient_format::bfloat16);
  member self(node, master, role::worker, s.id, std::chrono::seconds(j.processes.master_timeout));
  w.introduce(self);
  self.watch_generation([&] { return parameters.generation(); },
                        [&](std::uint64_t now) { parameters.generation_is_over(now); });
  std::optional<net::listener> listener;
  if (j.training.verify_gradients > 0) {
    listener.emplace(node, own_addresses(j, s), [&](net::request& q) { return w.kept.handle(q); });
  }
  if (!self.join(checkpoint::layout_digest(p.layout),
                 listener ? listener->addresses() : std::vector<net::address>(),
                 [&] { return stop.wait(0ms).has_value(); }))
    return 0;
  log.info(joined_line(log));
  if (j.training.outer_steps == 1) return work_as(w, self, parameters);
  worker::local_rounds rounds(parameters, w.trainer);
  return work_as(w, self, rounds);
}

EDL_INLINE int run_local_job(arguments const& a, logger const& log, signals const& stop,
                             std::shared_ptr<cli::screen> const& terminal) {
  using namespace detail;
  train::make_directories(a.job);
  auto const lock = train::lock_outputs(a.job, checkpoint::lock_options::part::command, log);
  if (a.job.processes.preemption_notice != "off")
    log.info("--preemption_notice has no effect: all processes of this job are on this machine");
  std::string const token = net::token::random().secret();
  job_directory const own;
  std::string const journal = journal_in(own);
  net::node node({.job = a.job.name, .secret = net::token(token), .log = log});
  try {
    announce(own, a.job.name, token, a.job.checkpoints.checkpoint_dir);
  } catch (error const& e) {
    log.warning(fmt::format("`scale` cannot find this job: {}", e.what()));
  }
  std::mutex mutex;
  std::optional<platform::ending> ended;  // of the master
  platform::line_reader said([&terminal](std::string_view line) {
    if (!terminal)
      put(std::string(line) + '\n');
    else if (auto status = cli::decode(line))
      terminal->show(std::move(*status));
    else
      terminal->write(std::string(line) + '\n');
  });
  platform::launcher launcher(
      node, own.path(), "/proc/self/exe", own_command(),
      [&](platform::ending const& e) {
        std::lock_guard const hold(mutex);
        ended = e;
      },
      &said);
  auto const start = [&] {
    launcher.start_master({{"EDL_ROLE", "master"},
                           {"EDL_PLATFORM", "process"},
                           {"EDL_LAUNCHER", launcher.address()},
                           {"EDL_LAUNCHER_TOKEN", launcher.credential().secret()},
                           {"EDL_JOB_DIR", own.path()},
                           {"EDL_JOURNAL", journal},
                           {"EDL_LOCK", lock ? lock->name() : ""},
                           {"EDL_STATUS_LINE", terminal ? "1" : "0"},
                           {"EDL_JOB_NAME", a.job.name},
                           {"EDL_JOB_TOKEN", token}});
  };
  start();
  std::optional<int> stop_signal;
  std::vector<time_point> deaths;
  std::vector<pid_t> leave_requests;
  time_point heeded, signalled_at;
  for (;;) {
    auto const came = stop.next(50ms);
    auto const now = clock::now();
    // A signal to all processes of the job reaches this one, too, perhaps last, and the master decides.
    if (stop_signal || now >= heeded)
      for (pid_t const who : std::exchange(leave_requests, {}))
        launcher.let_leave(who, stop_signal.has_value());
    if (came && came->signal == leave_signal()) {
      if (leave_requests.empty()) heeded = now + latecomer;
      leave_requests.push_back(came->from);
    } else if (came && stop_signal) {
      if (ends_at_once(came->signal, now - signalled_at)) {
        log.warning("every process of the job ends at once");
        launcher.stop_all(0s);
        return 128 + came->signal;
      }
    } else if (came) {
      stop_signal = came->signal;
      signalled_at = now;
      bool const keeps = train::keeps_state(a.job);
      if (keeps) log.warning("stopping: a checkpoint is written first; the next Ctrl-C ends the job at once");
      // The time of a checkpoint is unknown, and the user can end it.
      launcher.stop_master(keeps ? std::chrono::hours(24) : 10s);
    }
    if (auto const lost = lock ? lock->lost() : std::nullopt) {
      launcher.stop_all(2s);
      throw error(*lost);
    }
    auto const how = [&] {
      std::lock_guard const hold(mutex);
      return std::exchange(ended, std::nullopt);
    }();
    if (!how) continue;
    if (how->signal == 0 || stop_signal) {
      launcher.stop_all(2s);
      return stop_signal ? 128 + *stop_signal : how->code;
    }
    std::string const death = platform::describe(*how);
    std::erase_if(deaths, [&](auto at) { return now - at > 60s; });
    deaths.push_back(now);
    if (deaths.size() > most_masters) {
      log.error(fmt::format(
          "the master {}, for the {}th time within a minute; every process of the job ends with it", death,
          deaths.size()));
      launcher.stop_all(2s);
      return 128 + how->signal;
    }
    log.warning(fmt::format("the master {}: another takes its place", death));
    start();
  }
}

}  // namespace edl::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <sstream>
#include <thread>

#include "edl/app/job_metrics.hpp"
#include "edl/app/job_report.hpp"
#include "edl/app/master_absence.hpp"
#include "edl/app/master_role.hpp"
#include "edl/base/net/carry.hpp"
#include "edl/base/platform/launcher.hpp"
#include "edl/cluster/kubernetes/cluster.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/train/observe/summary.hpp"
#include "edl/job/train/prediction/hard_records.hpp"
#include "edl/job/train/setup/onnx_model.hpp"
#include "edl/job/train/setup/outputs.hpp"
#include "edl/job/train/setup/records.hpp"
#include "edl/job/train/setup/setup.hpp"
#include "edl/job/train/setup/start.hpp"

namespace edl::app {
namespace detail {

using namespace std::chrono_literals;

/// The path of the journal that a master keeps for its successor: as the platform says, or beside the
/// checkpoints, unless these are in a bucket.
inline std::string journal_path(job const& j, process_environment const& s) {
  if (!s.journal.empty()) return s.journal;
  return j.command == command::train && !j.checkpoints.checkpoint_dir.empty() &&
                 !bucket::names_objects(j.checkpoints.checkpoint_dir)
             ? j.checkpoints.checkpoint_dir + "/master.json"
             : "";
}

/// Identifies this run of a job without revealing its token.
inline std::string run_of(process_environment const& s) {
  std::string text;
  for (std::byte const b : net::token(s.token).derive("edl 2 journal", s.job_name))
    text += fmt::format("{:02x}", unsigned(b));
  return text;
}

/// The job as the cluster stores it, with those environment variables of this process that all its processes
/// need.
inline std::optional<kubernetes::job_spec> cluster_job(process_environment const& s) {
  if (s.platform != "kubernetes") return std::nullopt;
  if (s.cluster.empty())
    throw usage_error(
        "EDL_JOB is not set: start a job in a cluster with `edl train`, or with the output of `edl train "
        "--yaml`");
  auto spec = kubernetes::job_from_json(s.cluster);
  platform::environment mine;
  for (char** one = environ; *one; ++one) {
    std::string const text = *one;
    if (auto const end = text.find('='); end != text.npos)
      mine.emplace_back(text.substr(0, end), text.substr(end + 1));
  }
  for (auto& variable : kubernetes::populated(spec.populate_env_names, mine))
    spec.variables.push_back(std::move(variable));
  return spec;
}

inline master::job_options options_of(job const& j, train::program const& p, train::records const& r,
                                      process_environment const& s,
                                      std::optional<kubernetes::job_spec> const& cluster,
                                      checkpoint::directory_lock* lock, logger const& log) {
  std::uint64_t const epoch = train::begin_epoch(j, lock, log);  // all later reads see the newest state
  train::plan_training(*p.rule, j, r);
  master::job_options o = train::master_options(j, p, r, log);
  o.epoch = epoch;
  o.starts_all = cluster || !s.launcher.empty();
  if (cluster && !cluster->relaunch) o.worker_failures = 0;
  if (cluster && cluster->initial_workers) o.num_workers = cluster->initial_workers;
  return o;
}

/// A user knows the token of a job in a cluster or of a job started by hand; of a job on this machine only
/// the command knows it.
inline train::dashboard_context page_of(process_environment const& s,
                                        std::optional<kubernetes::job_spec> const& cluster) {
  train::dashboard_context c{.token = is_of_a_command(s) ? std::string() : s.token,
                             .reports = cluster.has_value()};
  if (cluster) c.place = [name = cluster->name](process_id who) { return kubernetes::pod_name(name, who); };
  return c;
}

inline constexpr std::chrono::seconds lock_timeout{60};

/// If a launcher starts the master, the launcher holds the directory for as long as the job lives.
inline checkpoint::lock_options::part lock_of(process_environment const& s) {
  using part = checkpoint::lock_options::part;
  return s.launcher.empty() ? part::whole : part::master;
}

/// Locks a job's directory. The last master of a job that a controller owns may still run, on an unreachable
/// node. This master waits for a while, and then ends without a failure so that it is started again.
inline std::unique_ptr<checkpoint::directory_lock> lock_when_free(job const& j, process_environment const& s,
                                                                  bool owned, logger const& log) {
  for (auto const until = clock::now() + lock_timeout;; std::this_thread::sleep_for(lock_timeout / 12)) try {
      return train::lock_outputs(j, lock_of(s), log, s.lock);
    } catch (checkpoint::directory_taken const& e) {
      if (!owned) throw;
      if (clock::now() > until) throw master_away(e.what());
      log.warning(
          fmt::format("{} (it may be the previous master of this job; this one waits for it)", e.what()));
    }
}

/// The state in the previous master's journal.
inline std::optional<master::persisted_state> read_journal(master::journal& from, logger const& log) {
  auto found = from.read();
  if (!from.trouble().empty())
    log.warning(fmt::format(
        "{}: this master {}", from.trouble(),
        found ? "goes by the journal before" : "begins anew, as no journal of this run is whole"));
  return found;
}

/// An evaluation's result is in the list of evaluations before it is in the journal.
inline std::optional<master::persisted_state> with_evaluations(std::optional<master::persisted_state> before,
                                                               train::reporter const& judged) {
  if (auto const newest = judged.newest_judged(); before && newest) before->evaluated = newest;
  return before;
}

inline std::string text_of_signal(int signal) {
  return signal == SIGINT ? "Ctrl-C" : signal == SIGTERM ? "SIGTERM" : ::strsignal(signal);
}

inline constexpr std::chrono::seconds report_pause{10}, resize_pause{1};  // between reports; after resizes
inline constexpr std::chrono::seconds goodbye{30};                        // for members to leave

}  // namespace detail

EDL_INLINE master_role::master_role(train::program& p, job const& j, process_environment const& s,
                                    logger const& log, cli::status_sink show)
    : program_(p),
      job_(j),
      environment_(s),
      log_(log),
      cluster_(detail::cluster_job(s)),
      lock_((train::make_directories(j), detail::lock_when_free(j, s, owned(), log))),
      records_(train::open_records(j, p.open, log, train::trained_reading(j))),
      options_(detail::options_of(j, p, records_, s, cluster_, lock_.get(), log)),
      // A launcher, and everything that it has started, ends with the machine.
      journal_(detail::journal_path(j, s), detail::run_of(s),
               s.launcher.empty() ? forced::name : forced::nothing),
      before_(detail::read_journal(journal_, log)),
      // A successor continues with versions above the newest checkpoint's.
      reporter_(p, j, before_ ? ~std::uint64_t{0} : options_.start.version, std::move(show), log,
                detail::page_of(s, cluster_)),
      worst_(j.evaluation.worst),
      node_(node_options_of(s, j, log)),
      server_(node_,
              {.job = options_,
               .files = train::files_of(j, p, records_,
                                        [this] {
                                          if (lock_) lock_->check();
                                        }),
               .output = j.outputs.output,
               .best = train::best_path(j),
               .journal = journal_,
               .before = detail::with_evaluations(before_, reporter_),
               .ignore_damaged_checkpoints = j.checkpoints.ignore_damaged_checkpoints,
               .relaunch = !cluster_ || cluster_->relaunch,
               .anew = j.checkpoints.ignore_damaged_checkpoints ? train::beginning(j, log)
                                                                : master::restore_point()},
              {.evaluated =
                   [this](master::evaluation_result const& r) {
                     if (job_.evaluation.worst > 0) reporter_.worst(r.evaluated.version, worst_.take());
                     return reporter_.evaluated(r, server_.decisions());
                   },
               .judged = [this](master::evaluation_result const& r) { return reporter_.judged(r); },
               .said = [this](master::log_line const& c) { reporter_.say(c); },
               // Running members continue with the existing state, although no journal lists them.
               .adopted = owned() && !before_ ? [this](bool any) { train::clean_outputs(job_, any, log_); }
                                              : std::function<void(bool)>(),
               .inspected = [this](std::uint32_t task, std::string const& told) { worst_.add(task, told); }},
              log),
      ended_(server_.processes().result()) {
  train::tell_of(records_, j, *p.rule, log_);
  if (!before_) reporter_.view().goes_on_from(options_.start.applied);
  // Validate what workers would refuse before anything is removed.
  train::hard_records::check(j, p);
  train::predictions_of(j, p, records_.prediction.get(), 0);
  if (std::ostringstream untold; j.compute.memory_budget > 0)
    p.explain(untold, train::trainer_options_of(j, p, std::max(1, j.processes.num_workers), 0));
  if (!owned() || before_) train::clean_outputs(j, before_.has_value(), log);
  if (before_)
    reporter_.say({severity::warning, "the previous master ended before its job: this one takes its place",
                   master::topic::replaced});
  metrics_ =
      serve_metrics(node_, j, s, [this](metric_registry& to) { collect(to, server_.decisions()); }, log);
}

EDL_INLINE master_role::~master_role() { node_.stop(); }

EDL_INLINE void master_role::listen() {
  process_environment const& s = environment_;
  auto where = listen_at(s.host.empty() ? job_.processes.host : s.host,
                         job_.processes.port ? job_.processes.port : s.port, s.directory);
  if (before_ && !before_->addresses.empty()) where = net::parse_addresses(before_->addresses);
  // Another process may have taken a port that was free for a moment: members then find this master by its
  // other addresses.
  listener_ = std::make_unique<net::listener>(
      node_, where, [this](net::request& q) { return server_.handle(q); },
      net::listener_options{.some_suffice = before_.has_value()});
}

EDL_INLINE std::unique_ptr<platform::platform> master_role::make_platform() {
  process_environment const& s = environment_;
  if (cluster_) {
    kubernetes::job_spec spec = *cluster_;
    spec.server_copies = std::uint32_t(job_.processes.ps_replicas);
    return std::make_unique<kubernetes::cluster>(
        node_, kubernetes::find_access(), std::move(spec), kubernetes::owner{s.pod_name, s.pod_uid},
        server_.processes(), log_,
        kubernetes::retry_limits{.allowed_before = before_ && before_->members > 0},
        before_ ? before_->avoided : std::vector<std::string>());
  }
  if (s.launcher.empty()) return nullptr;
  return std::make_unique<platform::launched>(
      node_, s.launcher, net::token(s.launcher_token),
      platform::environment{{"EDL_JOB_NAME", s.job_name},
                            {"EDL_JOB_TOKEN", s.token},
                            {"EDL_PLATFORM", "process"},
                            {"MASTER_ADDR", joined(listener_->addresses())},
                            {"WORKER_NUM", std::to_string(job_.processes.num_workers)}},
      before_ ? before_->events : 0, server_.processes());
}

EDL_INLINE asio::awaitable<void> master_role::watch() {
  asio::steady_timer timer(node_.executor());
  master::coordinator const& decisions = server_.decisions();
  show("Running", {});
  while (!alone_) {
    bool const over = server_.processes().over();
    if (!over) {
      auto const now = clock::now();
      if (std::string const line = reporter_.view().update(decisions.progress(), now); !line.empty())
        show("Running", line);
      report();
      reporter_.history().look(decisions, decisions.progress(), now);
      reporter_.look(decisions, decisions.progress(), now);
    }
    // The launcher ends servers on this machine. Processes started by hand that have not yet learnt of the
    // end from the previous master still connect.
    bool const awaited = !platform_ && before_ && before_->finished;
    alone_ = over && !awaited && decisions.workers().all().empty() &&
             (!environment_.launcher.empty() || decisions.servers().all().empty()) &&
             // A launcher would wait for this master, and no other process ends it.
             (platform_ || !decisions.untold());
    timer.expires_after(std::chrono::milliseconds(over ? 10 : 200));
    co_await timer.async_wait(asio::use_awaitable);
  }
}

EDL_INLINE void master_role::report() {
  if (!cluster_ || !platform_) return;
  auto const now = clock::now();
  auto const workers = server_.decisions().workers().all().size();
  auto const pause = workers == reported_workers_ ? detail::report_pause : detail::resize_pause;
  if (reported_ != master::time_point{} && now - reported_ < pause) return;
  reported_ = now;
  reported_workers_ = workers;
  platform_->report(job_report(
      server_.decisions(),
      {.epochs = job_.data.num_epochs, .evaluation = reporter_.evaluation(), .history = reporter_.recent()}));
}

EDL_INLINE void master_role::show(std::string const& status, std::string const& line) {
  if (platform_) platform_->show(status, line);
}

// Returns true when there is a checkpoint or the job has ended otherwise, false after another signal.
EDL_INLINE bool master_role::suspend_until(signals const& stop) {
  using namespace std::chrono_literals;
  node_.post([this] { server_.processes().suspend(); });
  // A second signal to a command's master is meant for the command, and was sent to the whole process group.
  while (!over() && !(stop.wait(50ms) && !is_of_a_command(environment_))) {
  }
  return over();
}

/// The command that a person can repeat; empty: no command on this machine started this process.
EDL_INLINE std::vector<std::string> master_role::users_command() const {
  return is_of_a_command(environment_) ? own_command() : std::vector<std::string>();
}

EDL_INLINE int master_role::run(signals const& stop) {
  using namespace std::chrono_literals;
  // This runs on the node's thread: a request that arrived before the rest exists would be answered by a
  // master that starts no processes, and whose journal does not contain its address.
  std::packaged_task<void()> begin([this] {
    listen();
    if (log_.detailed())
      log_.info(fmt::format("master of job '{}' listens at {}", environment_.job_name,
                            joined(listener_->addresses())));
    std::vector<std::string> names;
    for (net::address const& one : listener_->addresses()) names.push_back(net::to_string(one));
    server_.listens_at(names);
    server_.set_rates(reporter_.rates());
    if (auto const at = reporter_.stopped_at()) server_.stop(*at);
    platform_ = make_platform();
    if (platform_) server_.processes().use(*platform_);
  });
  node_.post([&begin] { begin(); });
  begin.get_future().get();
  auto const failed = [this](std::string const& why) {
    server_.fail(fmt::format("the master cannot continue: {}", why));
  };
  net::carry(node_, [this] { return server_.tick(); }, failed);
  net::carry(node_, [this] { return watch(); }, failed);
  std::optional<int> came;
  while (!over() && !came) {
    came = stop.wait(50ms);
    // Members continue with a successor. If the directory belongs to another job, they must be told.
    if (auto const lost = lock_ ? lock_->lost() : std::nullopt)
      node_.post([this, why = *lost] {
        lock_->superseded() ? server_.processes().superseded(why) : server_.fail(why);
      });
  }
  // If roles were started by hand, a person who stops only the master may start its successor.
  bool const ends_all = came && !cluster_ && (platform_ || *came == SIGINT);
  bool const kept = ends_all && train::keeps_state(job_) && suspend_until(stop);
  bool const is_over = over();
  master::job_end const end = is_over ? ended_.get() : master::job_end();
  // A controller needs to know that the job has ended, even if a signal arrived at the same moment.
  int const signal = is_over && owned() ? 0 : came.value_or(0);  // 0: none
  if ((signal && owned()) || !end.superseded.empty()) {
    log_.warning(fmt::format(
        "this master leaves: {}{}",
        signal ? fmt::format("it was stopped by {}", detail::text_of_signal(signal)) : end.superseded,
        owned() ? "; the others go on with the next" : ""));
    node_.stop();
    return signal ? 128 + signal : platform::gave_up_waiting;
  }
  // The other processes ask once more, learn that the job is finished, and leave. In a cluster their nodes
  // may be busy, and a pod that has to be deleted cannot be inspected any more. A process started by hand
  // learns of the end only here, and may be cut off for longer than it takes to detect that.
  bool const good = end.failure.empty();
  bool const by_hand = !platform_;
  std::chrono::milliseconds const timeout = by_hand     ? detail::goodbye
                                            : !cluster_ ? good ? 5s : 0s
                                            : good      ? detail::goodbye
                                                        : 5s;
  for (auto waited = 0ms; (!signal || kept) && !alone_ && waited < timeout; waited += 10ms) {
    if (by_hand && stop.wait(0ms)) break;
    std::this_thread::sleep_for(10ms);
  }
  node_.post([this] { server_.processes().end({}); });
  if (platform_) platform_->stop_all(2s);
  node_.stop();
  reporter_.history().close(server_.decisions(), server_.decisions().progress(), clock::now());
  reporter_.close(server_.decisions());
  if (signal) {
    // A user who repeats the command continues from the checkpoint, with all that this master knows.
    if (server_.decisions().suspended()) journal_.remove();
    // The user knows what stopped the command; the command only tells its own master to stop.
    reporter_.stopped(is_of_a_command(environment_)
                          ? "stopped"
                          : fmt::format("stopped by {}", detail::text_of_signal(signal)),
                      users_command());
    return 128 + signal;
  }
  // Anyone who shows the job's progress later sees this last report.
  if (cluster_ && platform_)
    platform_->report(job_report(server_.decisions(), {.epochs = job_.data.num_epochs,
                                                       .evaluation = reporter_.evaluation(),
                                                       .history = reporter_.recent(),
                                                       .over = good && !server_.decisions().suspended()}));
  if (server_.decisions().suspended()) {
    std::string const how = train::way_on(job_);
    show("Suspended", how);
    // The next run begins with the files, which contain all that this master knows.
    journal_.remove();
    log_.warning(fmt::format("job '{}' is suspended; {}", environment_.job_name, how));
    return platform::suspended;
  }
  show(good ? "Finished" : "Failed", good ? train::outcome(server_.decisions().progress()) : end.failure);
  if (!good) throw error(end.failure);
  // If this process is killed meanwhile, its successor does only this.
  if (!job_.outputs.export_onnx.empty())
    log_.info(train::export_onnx(program_, job_, job_.outputs.output + "/model.safetensors", log_));
  // A user who repeats the command with the same token begins anew.
  journal_.remove();
  reporter_.complete(server_.decisions(), users_command(),
                     fmt::format("job '{}' is finished", environment_.job_name));
  return 0;
}

}  // namespace edl::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "edl/master/checkpoint_queue.hpp"
#include "edl/master/command.hpp"
#include "edl/master/evaluation.hpp"
#include "edl/master/isolation.hpp"
#include "edl/master/job.hpp"
#include "edl/master/journal.hpp"
#include "edl/master/lineage.hpp"
#include "edl/master/membership.hpp"
#include "edl/master/placement.hpp"
#include "edl/master/roll_call.hpp"
#include "edl/master/server_generations.hpp"
#include "edl/master/speed_log.hpp"
#include "edl/master/task_queue.hpp"
#include "edl/master/worker_worlds.hpp"

namespace edl::master {

/// A job in numbers.
struct job_progress {
  task_counters done;
  std::optional<std::uint64_t> total_tasks, total_records;
  std::uint32_t epoch = 0;    ///< the newest that was begun
  std::uint64_t version = 0;  ///< of the model, the newest heard of
  std::size_t workers = 0, servers = 0, leased = 0;
  double rate = 0;  ///< records a second, over all workers
  double loss = 0;  ///< mean of what the workers last saw
};

/// The master: events and the time go in, replies and commands come out. After each event, `take_commands`
/// and execute them in order.
///
/// A generation is one common state of all servers. When a server is lost the next one begins. All leases are
/// void, the newest checkpoint is found, and the tasks start over from its ledger. Once all servers are there
/// and configured, tasks are leased again. Events of an older generation are ignored.
///
/// With `replicas` every worker has a copy of the model, and a generation is a world: the workers that train
/// together. When one is lost or comes, all leave their world, `enter` the next, and go on from the newest
/// copy among them. Only if none has one, they go on from a checkpoint.
///
/// At the end of training the last version is asked for, also where it is only to be told to a person. It is
/// written (with `final_checkpoint`), and evaluated, if versions are and it has not been. Then the job is
/// finished.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class coordinator {
 public:
  /// Throws usage_error when the job has no data to work on, and error when `start` belongs to other data.
  /// `before`: what the master before this one has left. Servers that still have its generation's state, and
  /// workers' copies, go on from there.
  coordinator(job_options o, time_point now, std::optional<persisted_state> const& before = {});

  /// What a successor needs to know, but for what concerns addresses and the platform.
  persisted_state remembered() const;

  /// Another value whenever `remembered` is: cheap to ask after each event.
  std::array<std::uint64_t, 6> remembers() const;

  join_reply join(join_request const& r, time_point now);
  heartbeat_reply heartbeat(role of, std::uint32_t id, std::uint64_t incarnation, vitals const& v,
                            time_point now);

  /// The process said goodbye: it is lost at once. Ignored for what is no member.
  void left(role of, std::uint32_t id, std::uint64_t incarnation, time_point now);

  /// The process' connection ended, and it does not call again: it is lost, too, or cut off.
  void hung_up(role of, std::uint32_t id, std::uint64_t incarnation, time_point now);

  /// The platform saw the newest process of this id end. Not to be told of processes that `replace_process`
  /// ended. Who ends after it has been given up is replaced, whatever its exit says.
  void exited(role of, std::uint32_t id, exit_kind kind, std::string const& why, time_point now);

  /// The platform takes a worker away, which hands back what it has leased: another is started meanwhile.
  void leaving(std::uint32_t worker, std::string const& why);

  /// Recovered training tasks go first, then evaluation, then training; in a job with lanes, of that lane.
  /// Who is not a member, or too early, waits. `rests_at`: the version that the worker has come to, where it
  /// is to be evaluated before the next step.
  task_reply request_task(std::uint32_t worker, std::uint64_t incarnation, time_point now,
                          std::uint32_t lane = 0, std::uint64_t rests_at = 0);

  /// Whether workers rest at this version, and nobody has told of it yet.
  bool unannounced(std::uint64_t version) const { return options_.rests_to_evaluate && version > announced_; }

  /// False: the lease had been given up, and the report does not count.
  bool report_task(task_report const& r, time_point now);

  /// A worker with a copy of the model asks for the next world: it has joined, its world is over, or broken.
  /// Ignored for who is no member.
  void enter(std::uint32_t worker, entry e, time_point now);

  /// The world that a member is in; null while it is being formed, and for who is no member.
  world const* world_of(std::uint32_t worker, std::uint64_t incarnation) const;

  /// Workers of the world that have frozen a version, if the world has. They are all of them, or those that
  /// it has the version from, as it has begun with that version or a newer one.
  std::vector<std::uint32_t> holders(std::uint64_t version) const { return worlds_.holders(version); }

  void version_reached(version_report const& r, time_point now);

  /// `error`: why the server could not; the job fails with it.
  /// `kept`: what it has applied, if it was to keep its state.
  void server_configured(std::uint32_t id, std::uint64_t incarnation, std::uint64_t generation,
                         std::string const& error, time_point now, std::optional<copy_position> kept = {});

  /// The server knows of a newer generation than the one that it was told to take: the next is above both.
  void server_ahead(std::uint32_t id, std::uint64_t incarnation, std::uint64_t generation, time_point now);

  /// The server of a range cannot reach its backup, and so acknowledges nothing.
  void backup_cut_off(std::uint32_t server, std::uint64_t generation, std::uint32_t range, time_point now);

  /// Nothing: there is no checkpoint, the job goes back to `job_options::start`.
  void restore_point_found(std::uint64_t generation, std::optional<restore_point> point, time_point now);

  void version_announced(std::uint64_t generation, std::uint64_t version, time_point now);

  /// `error`: why it could not be written; a warning, but for the final one the job fails with it.
  void checkpoint_written(std::uint64_t generation, std::uint64_t version, std::string const& error,
                          time_point now);

  /// With `job_options::judges`: what follows from the result of `evaluation_done` has been done.
  void judged(std::uint64_t version, time_point now);

  /// Changes how many processes there are to be while the job runs. More are started, or the newest stop when
  /// they have handed over what they hold. Returns why not; empty: it is being done.
  std::string scale(scale_request const& r, time_point now);

  /// The platform has found what runs, of a job whose master has left no journal: it goes on, with the ids
  /// that it has. Before any member has joined.
  void adopt(found_processes const& those, time_point now);

  /// Ends the job so that it can go on later. Nothing is leased any more, and the state that all have in
  /// common is written where there are checkpoints. Then comes `suspend_job`. What is trained that cannot be
  /// had in time, or cannot be written, is left to the checkpoint before, and a log line says so.
  void suspend(time_point now);

  /// Begins no more tasks; what has been begun is finished, then the job ends as usual. Where workers rest
  /// for evaluations it ends where they are. `at`: the version that decided it. A job that goes back to an
  /// older one trains on, until that is decided again.
  void stop(time_point now, std::uint64_t at = 0);

  /// Ends the job with a reason that the world around it found.
  void fail(std::string const& reason);

  /// Call about once a second: finds who is silent or slow. When it is not called for longer than that, the
  /// master itself was held up (a paused machine, a starved process). Its pause is held against nobody. Nor
  /// is a time in which it has heard of no member at all, of several, up to `job_options::isolation`.
  void tick(time_point now);

  std::vector<command> take_commands();

  std::uint64_t generation() const { return generation_; }
  /// Of the variables' ranges, on servers.
  std::vector<range_place> const& places() const { return generations_.places(); }
  /// With `replicas`; of no member before the first.
  world const& current_world() const { return worlds_.current(); }
  /// All servers have the generation's state.
  bool ready() const { return phase_ != phase::forming && phase_ != phase::configuring; }
  bool finished() const { return phase_ == phase::finished; }
  bool failed() const { return phase_ == phase::failed; }
  bool suspending() const { return suspending_.has_value(); }
  bool suspended() const { return phase_ == phase::suspended; }
  bool over() const { return finished() || failed() || suspended(); }
  std::string const& reason() const { return reason_; }  ///< of a job that failed
  /// Why the last version could not be evaluated, of a job that is finished but for that; empty: it was.
  std::string const& unevaluated() const { return unevaluated_; }
  membership const& workers() const { return workers_; }
  membership const& servers() const { return servers_; }
  bool all_workers_gone() const { return workers_.all_gone(); }
  job_progress progress() const;

  /// Another value whenever the job has made a step, of whatever kind.
  std::uint64_t steps() const;

  /// What the next step waits for, in words, as far as is known here; empty: nothing that is known.
  std::string waits_for(time_point now) const;

  /// Records a second at each number of workers that the job had.
  std::map<std::uint32_t, double> const& speeds() const { return speeds_.all(); }

  /// How long nothing was leased when the members of a generation changed the last time.
  duration standstill() const { return standstill_; }

  /// Training's or prediction's tasks; null for a job that only evaluates.
  task_queue const* tasks() const { return tasks_ ? &*tasks_ : nullptr; }
  evaluation const& evaluations() const { return evaluation_; }

 private:
  static constexpr std::uint32_t most_workers = 1u << 24;  // bounds what a stranger's id can do
  static constexpr std::uint64_t newest_generation = std::uint64_t{1} << 62;

  enum class phase { forming, configuring, running, closing, finished, suspended, failed };

  bool trains() const {
    return options_.type == job_type::training_only || options_.type == job_type::training_with_evaluation;
  }
  bool leasing() const { return phase_ == phase::running || phase_ == phase::closing; }
  membership& members(role of) { return of == role::worker ? workers_ : servers_; }
  lineages& lines(role of) { return of == role::worker ? worker_lines_ : server_lines_; }

  void say(severity level, std::string text);
  void lose(role of, std::uint32_t id, std::string const& how, time_point now);
  std::size_t present() const { return workers_.all().size() + servers_.all().size(); }
  void excuse(time_point now);
  void rise_above(join_request const& r, time_point now);
  void give_up(role of, std::uint32_t id, std::string const& why, time_point now);
  void find_point();
  void go_on_from(copy_position kept);
  void void_leases();
  void go_back_to(restore_point point, time_point now);
  bool keeps_model(role of) const { return of == role::server || options_.replicas; }
  void keeper_joined(join_request const& r, time_point now);
  void regroup(time_point now);
  void regroup_workers(time_point now);
  void form_world(time_point now);
  void begin_world(time_point now);
  void find_absent(time_point now);
  void configure_if_complete();
  void configure();
  std::set<std::uint32_t> servers_there() const;
  void scale_workers(std::uint32_t wanted, std::vector<std::uint32_t> const& leave);
  void scale_servers(std::uint32_t wanted, time_point now);
  void stop_spare_servers(time_point now);
  void server_lost(std::uint32_t id, time_point now);
  void server_joined(join_request const& r, time_point now);
  void regroup_servers(time_point now);
  void recover_servers(time_point now);
  void begin(time_point now);
  void advance();
  void close();
  void finish();
  void keep_state(time_point now);
  void suspended_with(std::string const& reason);
  bool state_may_come(time_point now) const;
  void evaluate(evaluated_version v, time_point now);
  void restore_tasks(std::uint64_t version, ledger const& applied);
  void stop_tasks();
  void enqueue(write_checkpoint const& c);
  void enqueue_when_judged(std::uint64_t version);
  void recover_slow(time_point now);
  void conclude(task_fate fate, std::string const& reason);
  std::string damage_of(task_queue const& of) const;
  void fail_evaluation(std::string const& why);
  void release(evaluated_version of);
  bool report_evaluation(task_report const& r, time_point now);
  bool report_work(task_report const& r, time_point now);
  std::optional<task_reply> lease_work(std::uint32_t worker, std::uint64_t incarnation, time_point now,
                                       std::uint32_t lane);
  std::optional<task_reply> lease_evaluation(std::uint32_t worker, std::uint64_t incarnation, time_point now);

  job_options options_;
  phase phase_ = phase::forming;
  std::uint64_t generation_ = 1;
  membership workers_, servers_;
  lineages worker_lines_, server_lines_;
  std::optional<task_queue> tasks_;
  evaluation evaluation_;
  std::optional<restore_point> point_;  // of this generation, once found
  bool recovered_ = false;              // another master was here before
  isolation isolation_;
  server_generations generations_;
  worker_worlds worlds_;
  std::set<std::uint32_t> training_first_;  // workers that returned an evaluation task
  std::optional<std::uint64_t> layout_;
  std::uint64_t version_ = 0;
  std::optional<time_point> last_tick_;
  std::uint64_t minibatches_ = 0;  // heartbeats that told of one, at least
  std::uint32_t epochs_said_ = 0;
  checkpoint_queue checkpoints_;
  std::optional<std::uint64_t> unjudged_;      // a checkpoint that waits for evaluations
  std::uint64_t announced_ = 0;                // the newest version that has been, or need not be
  std::optional<std::uint64_t> stopped_at_;    // the version that decided it
  std::optional<std::uint64_t> last_version_;  // told in the closing phase
  std::optional<time_point> suspending_;       // since when
  speed_log speeds_;
  std::optional<time_point> stood_since_;
  duration standstill_{};
  std::string reason_, unevaluated_;
  std::vector<command> commands_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/master/coordinator.ipp"
#include "edl/master/dispatch.ipp"
#include "edl/master/generations.ipp"
#include "edl/master/scale.ipp"
#include "edl/master/suspend.ipp"
#include "edl/master/waits.ipp"
#include "edl/master/worlds.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "edl/base/platform/platform.hpp"
#include "edl/job/master/command.hpp"
#include "edl/job/master/dispatcher.hpp"
#include "edl/job/master/health/slow_starts.hpp"
#include "edl/job/master/health/slow_workers.hpp"
#include "edl/job/master/job.hpp"
#include "edl/job/master/job_state.hpp"
#include "edl/job/master/journal.hpp"
#include "edl/job/master/model_generations.hpp"
#include "edl/job/master/model_versions.hpp"
#include "edl/job/master/roster.hpp"
#include "edl/job/master/worker_worlds.hpp"

namespace edl::master {

/// A job in numbers.
struct job_progress {
  task_counters done;
  std::optional<std::uint64_t> total_tasks, total_records;
  std::uint32_t epoch = 0;    ///< the newest one started
  std::uint64_t version = 0;  ///< of the model, the newest reported
  std::size_t workers = 0, servers = 0, leased = 0;
  double rate = 0;       ///< records per second, over all workers
  double loss = 0;       ///< mean of the workers' last losses
  edl::trained trained;  ///< by all workers, as reported to this master
  std::uint64_t lost = 0, repeated = 0,
                recovered = 0;            ///< members; tasks leased again, or taken back
  std::uint64_t taken_back = 0;           ///< records of completed tasks that rollbacks have undone
  std::optional<ledger_account> account;  ///< of the state from which the job last continued
};

/// The master's logic: takes events and the time, returns replies and commands. After each event,
/// `take_commands` and execute them in order.
///
/// A generation is one common state of all servers. When a server is lost, the next one begins: all leases
/// are void, the newest checkpoint is found, and the tasks start over from its ledger. Once all servers have
/// joined and are configured, tasks are leased again. Events of an older generation are ignored.
///
/// With `replicas` every worker has a copy of the model, and a generation is a world: the workers that train
/// together. When one is lost or joins, all leave their world, `enter` the next, and continue from the newest
/// copy among them, or, if none has one, from a checkpoint. A new worker that `follows` first copies the
/// model from a member, and enters no world before it has caught up.
///
/// At the end of training the coordinator requests the last version, even if only for the log. It is written
/// (with `final_checkpoint`), and evaluated, if versions are and it has not been. Then the job is finished.
///
/// Its parts contain the decisions. An event is passed to those that it concerns, in this order: `roster`,
/// `model_generations`, `dispatcher`, `model_versions`; each knows those after it, and all the `job_state`.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class coordinator {
 public:
  /// Throws usage_error if the job has no data, and error if `start` belongs to other data. `before`: the
  /// previous master's state. Servers that still have its generation's state, and workers' copies, continue
  /// from there.
  coordinator(job_options o, time_point now, std::optional<persisted_state> const& before = {});
  coordinator(coordinator const&) = delete;

  /// The state for a successor, except addresses and the platform's part.
  persisted_state remembered() const;

  /// Changes whenever `remembered` does: cheap to compare after each event.
  std::array<std::uint64_t, 9> remembers() const;

  join_reply join(join_request const& r, time_point now);
  /// A member whose machine is about to go (`vitals::notice`) gets a successor elsewhere at once. A worker
  /// hands over when another one can go on without it, a server when others have its ranges.
  heartbeat_reply heartbeat(role of, std::uint32_t id, std::uint64_t incarnation, vitals const& v,
                            time_point now);

  /// The process said goodbye: it is lost at once. Ignored for non-members.
  void left(role of, std::uint32_t id, std::uint64_t incarnation, time_point now);

  /// The process's connection ended, and it does not reconnect: it is lost, too, or cut off.
  void hung_up(role of, std::uint32_t id, std::uint64_t incarnation, time_point now);

  /// The platform reports that the newest process with this id has ended. Do not call it for processes that
  /// `replace_process` ended. A process that ends after it was given up is replaced, for any exit.
  void exited(role of, std::uint32_t id, exit_kind kind, std::string const& why, time_point now);

  /// The platform removes a worker, which hands back its leases: another one is started meanwhile.
  void leaving(std::uint32_t worker, std::string const& why);

  /// All workers whose machines are temporarily short of a resource, with its description. With
  /// `leave_bad_nodes` they hand over to other machines, one after the other.
  void pressed(std::map<std::uint32_t, std::string> workers) { pressed_ = std::move(workers); }

  /// All workers that are to go to other machines, with the reason. Each leaves when its successor has
  /// joined: one at first, then as many at a time as have moved.
  void moving(std::map<std::uint32_t, std::string> workers) { moving_ = std::move(workers); }

  /// Recovered training tasks go first, then evaluation, then training; in a job with lanes, of that lane.
  /// A process that is not a member, or too early, must wait. `rests_at`: the worker's version, if it must be
  /// evaluated before the next step.
  task_reply request_task(std::uint32_t worker, std::uint64_t incarnation, time_point now,
                          std::uint32_t lane = 0, std::uint64_t rests_at = 0);

  /// False: the lease was void, and the report does not count.
  bool report_task(task_report const& r, time_point now);

  /// A worker with a copy of the model requests the next world: it has joined, its world is over, or broken.
  /// Ignored for non-members.
  void enter(std::uint32_t worker, entry e, time_point now);

  void version_reached(version_report const& r, time_point now);

  /// `error`: why the server could not; then the job fails. `kept`: what it has applied, if it kept its
  /// state.
  void server_configured(std::uint32_t id, std::uint64_t incarnation, std::uint64_t generation,
                         std::string const& error, time_point now, std::optional<copy_position> kept = {});

  /// The server knows a newer generation than the one that it was ordered to load: the next is above both.
  void server_ahead(std::uint32_t id, std::uint64_t incarnation, std::uint64_t generation, time_point now);

  /// The server of a range cannot reach its backup, and so acknowledges nothing.
  void backup_cut_off(std::uint32_t server, std::uint64_t generation, std::uint32_t range, time_point now);

  /// Empty: there is no checkpoint, and the job rolls back to `job_options::start`.
  void restore_point_found(std::uint64_t generation, std::optional<restore_point> point, time_point now);

  void version_announced(std::uint64_t generation, std::uint64_t version, time_point now);

  /// `error`: why it could not be written; only a warning, except for the final one, with which the job
  /// fails.
  void checkpoint_written(std::uint64_t generation, std::uint64_t version, std::string const& error,
                          time_point now);

  /// `error`: why it could not be written; then the job fails. Ignored for another generation.
  void model_written(std::uint64_t generation, std::string const& error);

  /// With `job_options::judges`: what follows from the result of `evaluation_done` has been done. `error`:
  /// why it cannot be kept, and does not count.
  void judged(std::uint64_t version, time_point now, std::string const& error = {}, verdict const& what = {});

  /// Sets the factors of the learning rate, as an earlier process of this job decided them.
  void set_rates(rate_factors rates) { dispatch_.set_rates(std::move(rates)); }

  /// Changes the required number of processes while the job runs. Starts more, or stops the newest after they
  /// have handed over their work. Returns why it refuses; empty: it does it.
  std::string scale(platform::size_request const& r, time_point now);

  /// The platform has found the running processes of a job whose master left no journal: the job continues
  /// with their ids. Call before any member has joined.
  void adopt(platform::findings const& those, time_point now);

  /// Ends the job so that it can resume later. Leases nothing any more, and has the common state written if
  /// there are checkpoints. Then follows `suspend_job`. If the state cannot be collected in time, or cannot
  /// be written, the previous checkpoint counts, and a log line says so.
  void suspend(time_point now);

  /// Starts no more tasks; started ones are completed, then the job ends as usual. If workers pause for
  /// evaluations, it ends at their version. `at`: the version that decided it. A job that rolls back to an
  /// older one trains on, until that is decided again.
  void stop(time_point now, std::uint64_t at = 0);

  /// Fails the job with a reason from outside.
  void fail(std::string const& reason);

  /// Call about once a second: detects silent and slow members. If it is not called for longer, the master
  /// itself was paused (a paused machine, a starved process), and no member is given up for that time. The
  /// same holds for a time in which none of several members is heard, up to `job_options::isolation`.
  void tick(time_point now);

  std::vector<command> take_commands();

  // ---- What has been decided ----

  job_state const& job() const { return job_; }
  model_versions const& versions() const { return versions_; }
  dispatcher const& dispatch() const { return dispatch_; }
  model_generations const& generations() const { return generations_; }
  membership const& workers() const { return roster_.workers(); }
  membership const& servers() const { return roster_.servers(); }
  task_queue const* tasks() const { return dispatch_.tasks(); }
  std::uint64_t generation() const { return job_.generation(); }
  /// With `replicas`; without members before the first.
  world const& current_world() const { return worlds_.current(); }

  /// All servers have the generation's state.
  bool ready() const { return job_.ready(); }
  bool finished() const { return job_.phase() == job_phase::finished; }
  bool failed() const { return job_.phase() == job_phase::failed; }
  bool suspended() const { return job_.phase() == job_phase::suspended; }
  bool suspending() const { return job_.suspending().has_value(); }
  bool over() const { return job_.over(); }
  /// Whether a process was given up but may be alive and not know it, e.g. because it was silent.
  bool untold() const { return !untold_.empty(); }
  std::string const& reason() const { return job_.reason(); }  ///< of a job that failed

  job_progress progress() const;

  /// The version at which this generation began; empty before all have its state.
  std::optional<std::uint64_t> began_at() const {
    auto const& point = generations_.point();
    return ready() && point ? std::optional(point->version) : std::nullopt;
  }

  /// Changes with every step of the job, of any kind.
  std::uint64_t steps() const;

  /// Describes what the next step waits for, as far as known here; empty: nothing known.
  std::string waits_for(time_point now) const;

 private:
  void lose(role of, std::uint32_t id, std::string const& how, time_point now);
  void give_up(role of, std::uint32_t id, std::string const& why, time_point now);
  void give_up(std::optional<std::uint32_t> unreachable, time_point now);
  void find_silent(time_point now);
  void find_slow(time_point now);
  void find_rotting(time_point now);
  bool has_notice(process_id who, std::uint64_t incarnation, std::string const& notice, time_point now);
  bool hands_over(std::uint32_t worker, bool& told);
  bool can_spare(std::uint32_t worker) const;
  void hand_over_one();
  void move_some();
  void hand_over(std::uint32_t worker, std::string const& why);
  void heed(gradient_checks::verdict const& v, time_point now);
  void keep_state(time_point now);
  void finish();
  void advance();

  job_options options_;
  job_state job_;
  worker_worlds worlds_;
  roster roster_;
  model_versions versions_;
  dispatcher dispatch_;
  model_generations generations_;
  slow_workers slow_;
  slow_starts slow_starts_;
  struct rotting {
    std::uint32_t worker = 0;
    std::uint64_t incarnation = 0;
    std::string why;
  };
  std::deque<rotting> rotting_;                   // workers that have to move to another place
  std::map<std::uint32_t, std::string> pressed_;  // likewise, while the shortage lasts
  std::set<std::pair<std::uint32_t, std::uint64_t>> handed_over_;  // those that have, with incarnations
  std::map<std::uint32_t, std::string> moving_;                    // workers that are to go to other machines
  std::size_t moved_ = 0;  // how many have been given a successor for that
  // Those whose machines are about to go, or that move, with incarnations; and whether they have been asked
  // to leave.
  std::map<std::pair<process_id, std::uint64_t>, bool> noticed_;
  std::uint64_t model_of_ = 0, model_written_ = 0;         // generations; 0: none
  std::uint64_t lost_ = 0;                                 // members that were lost without notice
  std::set<std::pair<process_id, std::uint64_t>> untold_;  // given up, with the incarnation
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/coordinator.ipp"
#endif

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
  std::uint32_t epoch = 0;    ///< the newest that was begun
  std::uint64_t version = 0;  ///< of the model, the newest heard of
  std::size_t workers = 0, servers = 0, leased = 0;
  double rate = 0;       ///< records a second, over all workers
  double loss = 0;       ///< mean of what the workers last saw
  edl::trained trained;  ///< by all workers that this master has heard
  std::uint64_t lost = 0, repeated = 0,
                recovered = 0;            ///< members; tasks that were leased again, or taken back
  std::uint64_t taken_back = 0;           ///< records of done tasks that were undone by going back
  std::optional<ledger_account> account;  ///< of the state that the job has last gone on from
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
/// copy among them. Only if none has one, they go on from a checkpoint. A newcomer that `follows` first
/// copies the model from a member, and asks for no world before it has caught up.
///
/// At the end of training the last version is asked for, also where it is only to be told to a person. It is
/// written (with `final_checkpoint`), and evaluated, if versions are and it has not been. Then the job is
/// finished.
///
/// What is decided stands in its parts. An event goes to those that it concerns, in this order: `roster`,
/// `model_generations`, `dispatcher`, `model_versions`; each knows those after it, and all the `job_state`.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class coordinator {
 public:
  /// Throws usage_error when the job has no data to work on, and error when `start` belongs to other data.
  /// `before`: what the master before this one has left. Servers that still have its generation's state, and
  /// workers' copies, go on from there.
  coordinator(job_options o, time_point now, std::optional<persisted_state> const& before = {});
  coordinator(coordinator const&) = delete;

  /// What a successor needs to know, but for what concerns addresses and the platform.
  persisted_state remembered() const;

  /// Another value whenever `remembered` is: cheap to ask after each event.
  std::array<std::uint64_t, 9> remembers() const;

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

  /// Workers whose machines are short of something for a while, and what of, in words: all of them. With
  /// `leave_bad_nodes` one after the other hands over to another place.
  void pressed(std::map<std::uint32_t, std::string> workers) { pressed_ = std::move(workers); }

  /// Recovered training tasks go first, then evaluation, then training; in a job with lanes, of that lane.
  /// Who is not a member, or too early, waits. `rests_at`: the version that the worker has come to, where it
  /// is to be evaluated before the next step.
  task_reply request_task(std::uint32_t worker, std::uint64_t incarnation, time_point now,
                          std::uint32_t lane = 0, std::uint64_t rests_at = 0);

  /// False: the lease had been given up, and the report does not count.
  bool report_task(task_report const& r, time_point now);

  /// A worker with a copy of the model asks for the next world: it has joined, its world is over, or broken.
  /// Ignored for who is no member.
  void enter(std::uint32_t worker, entry e, time_point now);

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

  /// `error`: why it could not be; the job fails with it. Of another generation than this it is no news.
  void model_written(std::uint64_t generation, std::string const& error);

  /// With `job_options::judges`: what follows from the result of `evaluation_done` has been done. `error`:
  /// why it cannot be kept, and does not count. `stops`: the job is to `stop` with it.
  void judged(std::uint64_t version, time_point now, std::string const& error = {}, bool stops = false);

  /// Changes how many processes there are to be while the job runs. More are started, or the newest stop when
  /// they have handed over what they hold. Returns why not; empty: it is being done.
  std::string scale(platform::size_request const& r, time_point now);

  /// The platform has found what runs, of a job whose master has left no journal: it goes on, with the ids
  /// that it has. Before any member has joined.
  void adopt(platform::findings const& those, time_point now);

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

  // ---- What has been decided ----

  job_state const& job() const { return job_; }
  model_versions const& versions() const { return versions_; }
  dispatcher const& dispatch() const { return dispatch_; }
  model_generations const& generations() const { return generations_; }
  membership const& workers() const { return roster_.workers(); }
  membership const& servers() const { return roster_.servers(); }
  task_queue const* tasks() const { return dispatch_.tasks(); }
  std::uint64_t generation() const { return job_.generation(); }
  /// With `replicas`; of no member before the first.
  world const& current_world() const { return worlds_.current(); }

  /// All servers have the generation's state.
  bool ready() const { return job_.ready(); }
  bool finished() const { return job_.phase() == job_phase::finished; }
  bool failed() const { return job_.phase() == job_phase::failed; }
  bool suspended() const { return job_.phase() == job_phase::suspended; }
  bool suspending() const { return job_.suspending().has_value(); }
  bool over() const { return job_.over(); }
  /// Somebody was given up, may live, and has not heard of it: who was silent, for one.
  bool untold() const { return !untold_.empty(); }
  std::string const& reason() const { return job_.reason(); }  ///< of a job that failed

  job_progress progress() const;

  /// The version that this generation began with; nothing before all have its state.
  std::optional<std::uint64_t> began_at() const {
    auto const& point = generations_.point();
    return ready() && point ? std::optional(point->version) : std::nullopt;
  }

  /// Another value whenever the job has made a step, of whatever kind.
  std::uint64_t steps() const;

  /// What the next step waits for, in words, as far as is known here; empty: nothing that is known.
  std::string waits_for(time_point now) const;

 private:
  void lose(role of, std::uint32_t id, std::string const& how, time_point now);
  void give_up(role of, std::uint32_t id, std::string const& why, time_point now);
  void give_up(std::optional<std::uint32_t> unreachable, time_point now);
  void find_silent(time_point now);
  void find_slow(time_point now);
  void find_rotting(time_point now);
  void hand_over_one();
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
  std::deque<rotting> rotting_;                                    // who is to hand over to another place
  std::map<std::uint32_t, std::string> pressed_;                   // likewise, as long as it is so
  std::set<std::pair<std::uint32_t, std::uint64_t>> handed_over_;  // who was, with its incarnation
  std::uint64_t model_of_ = 0, model_written_ = 0;                 // generations; 0: none
  std::uint64_t lost_ = 0;                                         // members, without a word
  std::set<std::pair<process_id, std::uint64_t>> untold_;          // given up, with the incarnation
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/coordinator.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "edl/base/platform/platform.hpp"
#include "edl/job/master/dispatcher.hpp"
#include "edl/job/master/job.hpp"
#include "edl/job/master/job_state.hpp"
#include "edl/job/master/model_versions.hpp"
#include "edl/job/master/roster.hpp"
#include "edl/job/master/server_generations.hpp"
#include "edl/job/master/worker_worlds.hpp"

namespace edl::master {

/// How a job comes to its next generation, when those who keep the model come or go. With `replicas` they are
/// workers, and a generation is a world; else they are servers. The generation goes on with what they have
/// (`worker_worlds`, `server_generations`), or all go back to a checkpoint; then tasks and versions start
/// over from there. What it is given outlives it.
///
/// Some functions return a worker that the others cannot reach: it is to be given up.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class model_generations {
 public:
  model_generations(job_options const& options, job_state& job, roster& members, model_versions& versions,
                    dispatcher& tasks, worker_worlds& worlds, std::uint64_t past, time_point now);

  server_generations const& servers() const { return servers_; }
  worker_worlds const& worlds() const { return worlds_; }
  /// Of the variables' ranges, on servers.
  std::vector<range_place> const& places() const { return servers_.places(); }
  /// The world that a member is in; null while it is being formed, and for who is no member.
  world const* world_of(std::uint32_t worker, std::uint64_t incarnation) const;
  /// How long nothing was leased when the members of a generation changed the last time.
  duration standstill() const { return standstill_; }

  /// Where this generation began, once found.
  std::optional<restore_point> const& point() const { return point_; }

  /// Goes on where another master ended, or with processes that the platform has found.
  void resume(persisted_state const& before);
  void adopt(platform::findings const& those);

  /// There is a checkpoint of this generation and version. Who has less of the same history does not decide
  /// what the job goes on with any more.
  void written(std::uint64_t version) { newest_written_ = {job_.generation(), version}; }

  /// Of those who keep the model; no generation need be formed.
  void expect_workers(std::uint32_t wanted) { worlds_.expect(wanted); }
  void want_servers(std::uint32_t wanted, time_point now);

  // ---- Those who keep the model come and go ----

  /// A process knows a generation that this master does not: the next is above that.
  void rise_above(join_request const& r, time_point now);

  std::optional<std::uint32_t> joined(join_request const& r, time_point now);
  std::optional<std::uint32_t> worker_lost(std::uint32_t id, time_point now);
  void server_lost(std::uint32_t id, time_point now);

  /// The generation is over.
  std::optional<std::uint32_t> regroup(time_point now);

  /// What was trained after version `good` is wrong: the job goes back to a checkpoint of it or before.
  std::optional<std::uint32_t> undo(std::uint64_t good, time_point now);
  /// As long as checkpoints after it may be there.
  std::optional<std::uint64_t> undoes() const { return newest_good_; }

  /// As `coordinator::enter`, of a member.
  std::optional<std::uint32_t> enter(std::uint32_t worker, entry e, time_point now);

  /// Workers that let the others wait too long for a world, and the world without them.
  std::vector<std::uint32_t> absent(time_point now) const;
  std::optional<std::uint32_t> form_world(time_point now);
  void excuse(duration absence, time_point now) { worlds_.excuse(absence, now); }

  // ---- Servers ----

  /// A master that takes another's place goes on with its servers' state as soon as it can.
  void recover_servers(time_point now);
  void server_configured(std::uint32_t id, std::string const& error, std::optional<copy_position> kept,
                         time_point now);
  void server_ahead(std::uint32_t id, time_point now);
  /// Where the server of a range has its backup.
  std::optional<std::uint32_t> backup_of(std::uint32_t server, std::uint32_t range) const;

  void restore_point_found(std::optional<restore_point> point, time_point now);

  /// Begins the generation that has been formed.
  void begin(time_point now);

  // ---- The end ----

  /// Whether whoever has a state newer than the newest checkpoint may still tell of it.
  bool state_may_come(time_point now) const;
  /// Whether somebody has had a state of this job.
  bool ever_begun() const { return recovered_ || servers_.ever_configured() || !worlds_.none_yet(); }

  /// What the next generation waits for, in words.
  std::vector<std::string> waits_for() const;

 private:
  bool keeps_model(role of) const { return of == role::server || options_.replicas; }
  std::set<std::uint32_t> servers_there() const;
  void interrupt();
  void find_point();
  void go_back_to(restore_point point, time_point now);
  void go_on_from(copy_position kept);
  void configure();
  void configure_if_complete();
  void regroup_servers(time_point now);
  std::optional<std::uint32_t> regroup_workers(time_point now);
  void begin_world(time_point now);
  void stop_spare_servers(time_point now);

  job_options const& options_;
  job_state& job_;
  roster& members_;
  model_versions& versions_;
  dispatcher& tasks_;
  worker_worlds& worlds_;
  server_generations servers_;
  std::optional<restore_point> point_;        // of this generation, once found
  position newest_written_;                   // of the checkpoints
  std::optional<std::uint64_t> newest_good_;  // what was trained after it is to be undone
  bool recovered_ = false;                    // another master was here before
  std::optional<time_point> stood_since_;
  duration standstill_{};
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/model_generations.ipp"
#endif

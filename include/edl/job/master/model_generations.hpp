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

/// Forms a job's next generation when keepers of the model join or leave. With `replicas` they are workers,
/// and a generation is a world; otherwise they are servers. The generation continues with their state
/// (`worker_worlds`, `server_generations`), or all roll back to a checkpoint; tasks and versions then start
/// over from there. Its arguments must outlive it.
///
/// Some functions return a worker that the others cannot reach, and that must be given up.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class model_generations {
 public:
  model_generations(job_options const& options, job_state& job, roster& members, model_versions& versions,
                    dispatcher& tasks, worker_worlds& worlds, std::uint64_t past, time_point now);

  server_generations const& servers() const { return servers_; }
  worker_worlds const& worlds() const { return worlds_; }
  /// The places of the variables' ranges on servers.
  std::vector<range_place> const& places() const { return servers_.places(); }
  /// The world of a member; null while it is being formed, and for non-members.
  world const* world_of(std::uint32_t worker, std::uint64_t incarnation) const;
  /// How long nothing was leased at the last change of a generation's members.
  duration standstill() const { return standstill_; }

  /// The state at which this generation began, once found.
  std::optional<restore_point> const& point() const { return point_; }

  /// Continues the previous master's state, or with processes that the platform has found.
  void resume(persisted_state const& before);
  void adopt(platform::findings const& those);

  /// There is a checkpoint of this generation and version. Keepers with an older state of the same history no
  /// longer determine where the job continues.
  void written(std::uint64_t version) { newest_written_ = {job_.generation(), version}; }

  /// Sets the number of workers that keep the model; forms no generation.
  void expect_workers(std::uint32_t wanted) { worlds_.expect(wanted); }
  void want_servers(std::uint32_t wanted, time_point now);

  // ---- Keepers of the model join and leave ----

  /// A process knows a generation that this master does not: the next one is above that.
  void rise_above(join_request const& r, time_point now);

  std::optional<std::uint32_t> joined(join_request const& r, time_point now);
  std::optional<std::uint32_t> worker_lost(std::uint32_t id, time_point now);
  void server_lost(std::uint32_t id, time_point now);

  /// Workers that all others wait for follow the next world, which begins without them.
  std::optional<std::uint32_t> leave_out_missed(time_point now);

  /// The machine of a server is about to go: moves its ranges to others, and then starts its successor. If
  /// there are no others, one is started to stand in.
  void vacate(std::uint32_t server, time_point now);

  /// The generation is over.
  std::optional<std::uint32_t> regroup(time_point now);

  /// Training after version `good` is wrong: the job rolls back to a checkpoint of it or before.
  std::optional<std::uint32_t> undo(std::uint64_t good, time_point now);
  /// That version, while later checkpoints may exist.
  std::optional<std::uint64_t> undoes() const { return newest_good_; }

  /// As `coordinator::enter`, for a member.
  std::optional<std::uint32_t> enter(std::uint32_t worker, entry e, time_point now);

  /// Workers that delay a world for too long.
  std::vector<std::uint32_t> absent(time_point now) const;
  std::optional<std::uint32_t> form_world(time_point now);
  void excuse(duration absence, time_point now) { worlds_.excuse(absence, now); }

  // ---- Servers ----

  /// A successor of a master continues with the servers' state as soon as it can.
  void recover_servers(time_point now);
  void server_configured(std::uint32_t id, std::string const& error, std::optional<copy_position> kept,
                         time_point now);
  void server_ahead(std::uint32_t id, time_point now);
  /// The backup of a range's server.
  std::optional<std::uint32_t> backup_of(std::uint32_t server, std::uint32_t range) const;

  void restore_point_found(std::optional<restore_point> point, time_point now);

  /// Begins the generation that has been formed.
  void begin(time_point now);

  // ---- The end ----

  /// Whether a process with a state newer than the newest checkpoint may still report it.
  bool state_may_come(time_point now) const;
  /// Whether any process has had a state of this job.
  bool ever_begun() const { return recovered_ || servers_.ever_configured() || !worlds_.none_yet(); }

  /// Describes what the next generation waits for.
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
  void move_vacant_servers(time_point now);

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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "edl/base/platform/platform.hpp"
#include "edl/job/master/isolation.hpp"
#include "edl/job/master/job.hpp"
#include "edl/job/master/job_state.hpp"
#include "edl/job/master/journal.hpp"
#include "edl/job/master/lineage.hpp"
#include "edl/job/master/membership.hpp"

namespace edl::master {

/// The actual and the required processes of a job: members, heard or silent, and the lineages of processes
/// and their successors. It orders the start, replacement and stop of processes. The caller handles the
/// effects of a member's arrival or loss on the model and on tasks. `options` and `job` must outlive it.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class roster {
 public:
  static constexpr std::uint32_t most_workers = 1u << 24;  ///< limits the effect of an unknown process's id

  roster(job_options const& options, job_state& job);

  /// Continues with the processes of the previous master.
  void resume(persisted_state const& before, time_point now);

  membership const& workers() const { return workers_; }
  membership const& servers() const { return servers_; }
  membership const& of(role r) const { return r == role::worker ? workers_ : servers_; }
  lineages const& lines(role r) const { return r == role::worker ? worker_lines_ : server_lines_; }
  /// Whether every required process is a member, except those that are not replaced any more.
  bool complete(role r) const;
  std::size_t size() const { return workers_.all().size() + servers_.all().size(); }

  /// Whether a process that wants to join a job of this many servers was started when more were required, or
  /// has been stopped as superfluous: it exits, without a failure.
  bool spare(join_request const& r, std::uint32_t servers) const;

  /// Why a process may not join a job of this many servers; empty: it may.
  std::string refusal(join_request const& r, std::uint32_t servers) const;
  void join(join_request const& r, time_point now);

  /// Records how much a worker has trained since it started.
  void announced(std::uint32_t worker, edl::trained const& all) { workers_.announced(worker, all); }

  /// A sign of life. False: not a member.
  bool seen(role of, std::uint32_t id, std::uint64_t incarnation, time_point now) {
    return members(of).seen(id, incarnation, now);
  }

  struct pulse {
    heartbeat_reply reply;
    bool trained = false;  ///< records since the last heartbeat
  };
  pulse heartbeat(role of, std::uint32_t id, std::uint64_t incarnation, vitals const& v, time_point now);

  /// Number of heartbeats that reported a minibatch, at least.
  std::uint64_t minibatches() const { return minibatches_; }

  /// Removes a member.
  void lose(role of, std::uint32_t id, time_point now);

  /// Replaces a member that the master has given up, if its budget permits.
  void replace(role of, std::uint32_t id);

  /// A process that is not a member has ended. Replaces it, at once or after a pause, or logs that it does
  /// not. Returns why the job cannot continue; empty: it can.
  std::string ended(role of, std::uint32_t id, exit_kind kind, std::string const& why, time_point now);

  /// A worker will be removed: starts another one meanwhile.
  void leaving(std::uint32_t worker, std::string const& why);

  // ---- Time ----

  /// Excuses members for a pause of the master. Returns its length, once it is over.
  std::optional<duration> excuse(time_point now);

  /// Whether all members are silent, so that none is given up.
  bool cut_off(time_point now) const { return isolation_.suspected(size(), now); }
  bool isolated() const { return isolation_.lasts(); }
  /// Whether a member may still reconnect after it could not reach the master.
  bool finds_back(member const& m, time_point now) const { return isolation_.finds_back(m.seen, now); }

  /// Members of a role that have given no sign of life for too long, unless the master may be cut off.
  std::vector<member> silent(role of, time_point now) const;
  void replace_overdue(role of, time_point now);

  // ---- Size ----

  void scale_workers(std::uint32_t wanted, std::vector<std::uint32_t> const& leave,
                     std::string const& why = {});
  void scale_servers(std::uint32_t wanted);
  /// A superfluous server has no successor.
  void forget_server(std::uint32_t id) {
    if (!stand_ins_.contains(id)) server_lines_.drop(id);
  }
  /// Starts a server besides the required ones, because there is none to which `server` could give its
  /// ranges. No effect while there is such a server, or one is being started.
  void start_stand_in(std::uint32_t server);
  /// Stops those that have not joined: they come too late.
  void recall_stand_ins();

  /// Stops a member without further work. It may learn that before the platform stops it.
  void stop_server(std::uint32_t id, time_point now);

  /// Stops a member that others have taken over from, and starts its successor.
  void move_server(std::uint32_t id, time_point now);

  /// Continues with the processes that the platform has found. `servers`: the required number.
  void adopt(platform::findings const& those, std::uint32_t servers, time_point now);

 private:
  membership& members(role r) { return r == role::worker ? workers_ : servers_; }
  lineages& lines_of(role r) { return r == role::worker ? worker_lines_ : server_lines_; }
  void excuse(duration pause, time_point now);
  void replace(role of, lineages::replacement const& r);

  job_options const& options_;
  job_state& job_;
  membership workers_, servers_;
  lineages worker_lines_, server_lines_;
  isolation isolation_;
  std::optional<std::uint64_t> layout_;  // digest of the model's layout, as reported by the first member
  std::optional<time_point> last_tick_;
  std::uint64_t minibatches_ = 0;
  std::set<std::pair<std::uint32_t, std::uint64_t>> stopped_servers_;  // ids and incarnations
  std::set<std::uint32_t> stand_ins_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/roster.ipp"
#endif

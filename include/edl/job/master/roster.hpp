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

/// Who takes part in a job, and who is to: members, heard or silent, and the lineages of processes that stand
/// in for one another. It asks for processes to be started, replaced and stopped. What a member's coming or
/// going means for the model and for tasks is the caller's business. `options` and `job` outlive it.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class roster {
 public:
  static constexpr std::uint32_t most_workers = 1u << 24;  ///< bounds what a stranger's id can do

  roster(job_options const& options, job_state& job);

  /// Goes on with the processes of the master before.
  void resume(persisted_state const& before, time_point now);

  membership const& workers() const { return workers_; }
  membership const& servers() const { return servers_; }
  membership const& of(role r) const { return r == role::worker ? workers_ : servers_; }
  lineages const& lines(role r) const { return r == role::worker ? worker_lines_ : server_lines_; }
  /// Whether every process that is to be there is a member, but for those that are not replaced any more.
  bool complete(role r) const;
  std::size_t size() const { return workers_.all().size() + servers_.all().size(); }

  /// Whether a process that would join a job of so many servers was started while there were to be more, or
  /// has been stopped as one too many: it ends, and has done nothing wrong.
  bool spare(join_request const& r, std::uint32_t servers) const;

  /// Why a process may not join a job of so many servers; empty: it may.
  std::string refusal(join_request const& r, std::uint32_t servers) const;
  void join(join_request const& r, time_point now);

  /// A worker has trained so much since it started.
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

  /// Heartbeats that told of a minibatch, at least.
  std::uint64_t minibatches() const { return minibatches_; }

  /// A member is none any more.
  void lose(role of, std::uint32_t id, time_point now);

  /// Who has been lost by the master's choice is replaced, where its budget allows.
  void replace(role of, std::uint32_t id);

  /// A process that is no member has ended. Replaces it, at once or after a pause, or says that it is not.
  /// Returns why the job cannot go on; empty: it can.
  std::string ended(role of, std::uint32_t id, exit_kind kind, std::string const& why, time_point now);

  /// A worker is about to be taken away: another starts meanwhile.
  void leaving(std::uint32_t worker, std::string const& why);

  // ---- Time ----

  /// Holds no pause of the master against anybody. Returns how long nobody could be heard, once it is over.
  std::optional<duration> excuse(time_point now);

  /// Whether all are silent, so that none is to be blamed.
  bool cut_off(time_point now) const { return isolation_.suspected(size(), now); }
  bool isolated() const { return isolation_.lasts(); }
  /// Whether a member may still come back by another connection, after it could not reach the master.
  bool finds_back(member const& m, time_point now) const { return isolation_.finds_back(m.seen, now); }

  /// Members of a role that have given no sign of life for too long, unless the master may be cut off.
  std::vector<member> silent(role of, time_point now) const;
  void replace_overdue(role of, time_point now);

  // ---- Size ----

  void scale_workers(std::uint32_t wanted, std::vector<std::uint32_t> const& leave,
                     std::string const& why = {});
  void scale_servers(std::uint32_t wanted);
  /// One too many has no successor.
  void forget_server(std::uint32_t id) { server_lines_.drop(id); }

  /// A member that has nothing to do any more. It may hear of it before the platform tells it to stop.
  void stop_server(std::uint32_t id, time_point now);

  /// Goes on with what the platform has found. `servers`: how many there are to be.
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
  std::optional<std::uint64_t> layout_;  // digest of the model's, which the first member has told
  std::optional<time_point> last_tick_;
  std::uint64_t minibatches_ = 0;
  std::set<std::pair<std::uint32_t, std::uint64_t>> stopped_servers_;  // ids and incarnations
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/roster.ipp"
#endif

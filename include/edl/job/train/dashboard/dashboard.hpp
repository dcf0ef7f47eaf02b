// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "edl/core/log.hpp"
#include "edl/core/process_id.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/master/coordinator.hpp"
#include "edl/job/train/observe/history_log.hpp"

namespace edl::train {

/// Who may see a job's page, what else it shows, and who else is told.
struct dashboard_context {
  std::string token = {};  ///< that it wants, unless it is of this machine; empty: one is drawn, and told
  std::function<std::string(process_id)> place = {};  ///< where a process runs, as its pod; empty: not known
  bool reports = false;  ///< somebody asks for the newest lines of the history (`reporter::recent`)
};

/// The page of a job, `--dashboard`, and what it shows as JSON: `GET /`, `/api/job`, `/api/history`,
/// `/api/events`, `/api/live`, the same as server-sent events, and `/api/runs`, those whose directories lie
/// beside that of `history`. All of it is served by a thread of its own. Nothing can be changed by it. Thread
/// safety: distinct objects: safe. Shared objects: unsafe.
class dashboard {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Says in the log where it is. `history`: a file whose lines are shown from the start; empty: none. Throws
  /// `edl::error` when the address cannot be listened on. `j` outlives this.
  dashboard(job const& j, std::string const& history, dashboard_context c, logger log);
  dashboard(dashboard const&) = delete;
  dashboard& operator=(dashboard const&) = delete;

  /// Readers get what is left, for at most a second.
  ~dashboard();

  /// Whether a look is worth anything: not before some time since the last has passed.
  bool due(time_point now) const { return now >= due_; }

  /// How the job does.
  void look(master::coordinator const& of, master::job_progress const& p, time_point now);

  /// The same, for the last time. Whether the job goes on without this process is seen by its phase.
  void close(master::coordinator const& of, master::job_progress const& p, time_point now);

  /// Something has happened. Debugging lines are left out.
  void happened(master::log_line const& what);

  /// The records with the highest loss in the evaluation of this version, an array of JSON.
  void worst(std::uint64_t version, std::string records);

  /// For the job's history.
  history_log::listener listener();

  std::string address() const;  ///< "http://127.0.0.1:8080"
  std::uint16_t port() const;
  std::string const& token() const;  ///< empty: none is wanted

 private:
  struct state;
  void show(master::coordinator const& of, master::job_progress const& p, time_point now, bool last);

  time_point due_{};
  std::unique_ptr<state> state_;
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/dashboard/dashboard.ipp"
#endif

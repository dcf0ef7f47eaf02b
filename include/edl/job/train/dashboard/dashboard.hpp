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

/// Access to a job's page, and additional data for it.
struct dashboard_context {
  std::string token = {};  ///< required from other machines; empty: one is drawn, and logged
  std::function<std::string(process_id)> place = {};  ///< where a process runs, e.g. its pod; empty: unknown
  bool reports = false;  ///< the newest lines of the history are reported (`reporter::recent`)
};

/// The page of a job, `--dashboard`, and what it shows as JSON: `GET /`, `/api/job`, `/api/history`,
/// `/api/events`, `/api/live`, the same as server-sent events, and `/api/runs`, the runs in directories
/// beside that of `history`. A separate thread serves it, read-only. Thread safety: distinct objects: safe.
/// Shared objects: unsafe.
class dashboard {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Logs its address. `history`: a file whose lines are shown from the start; empty: none. Throws
  /// `edl::error` if it cannot listen there. `j` must outlive this.
  dashboard(job const& j, std::string const& history, dashboard_context c, logger log);
  dashboard(dashboard const&) = delete;
  dashboard& operator=(dashboard const&) = delete;

  /// Sends the rest to readers, for at most a second.
  ~dashboard();

  /// Whether enough time has passed since the last `look`.
  bool due(time_point now) const { return now >= due_; }

  /// Updates the job's state.
  void look(master::coordinator const& of, master::job_progress const& p, time_point now);

  /// The same, for the last time. The phase shows whether the job continues without this process.
  void close(master::coordinator const& of, master::job_progress const& p, time_point now);

  /// Adds an event, except for debugging lines.
  void happened(master::log_line const& what);

  /// Sets the records with the highest loss in the evaluation of this version, a JSON array.
  void worst(std::uint64_t version, std::string records);

  /// The listener for the job's history.
  history_log::listener listener();

  std::string address() const;  ///< "http://127.0.0.1:8080"
  std::uint16_t port() const;
  std::string const& token() const;  ///< empty: none is required

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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edl/app/environment.hpp"
#include "edl/app/signals.hpp"
#include "edl/base/checkpoint/directory_lock.hpp"
#include "edl/base/http/server.hpp"
#include "edl/base/net/listener.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/platform/platform.hpp"
#include "edl/cli/status_line.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/master/journal.hpp"
#include "edl/job/master/server/server.hpp"
#include "edl/job/train/observe/reporter.hpp"
#include "edl/job/train/prediction/hard_records.hpp"
#include "edl/job/train/setup/program.hpp"
#include "edl/job/train/setup/records.hpp"

namespace edl::app {

/// The master's process: its decisions (`master::server`), the platform that carries them out, and the job's
/// output for the user. Thread safety: construct and run it on one thread.
class master_role {
 public:
  /// Resumes the job if a previous master has left a journal. `show` as in `train::progress_view`. Throws
  /// edl::error.
  master_role(train::program& p, job const& j, process_environment const& s, logger const& log,
              cli::status_sink show = {});
  ~master_role();

  /// Runs until the job or this process ends, and returns the exit code. A suspended job returns
  /// `platform::suspended`. Outside a cluster the first signal suspends a job that has a checkpoint
  /// directory; if the other processes were started by hand, only SIGINT does. The exit code is then 128 +
  /// the signal's number. The second signal ends the job at once, unless a command has started it. If an
  /// object other than the master's pod owns the job, the job's members outlive a master that shuts down.
  /// Throws edl::error when the job has failed.
  int run(signals const& stop);

 private:
  void listen();
  std::unique_ptr<platform::platform> make_platform();
  bool over() const { return ended_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  bool owned() const { return cluster_ && !cluster_->by.empty(); }
  void report();
  asio::awaitable<void> watch();
  void show(std::string const& status, std::string const& line);
  bool suspend_until(signals const& stop);
  std::vector<std::string> users_command() const;

  train::program& program_;
  job const& job_;
  process_environment const& environment_;
  logger log_;
  std::optional<kubernetes::job_spec> cluster_;       // in a cluster
  std::unique_ptr<checkpoint::directory_lock> lock_;  // of the directory for results
  train::records records_;
  master::job_options options_;
  master::journal journal_;
  std::optional<master::persisted_state> before_;
  train::reporter reporter_;
  train::hard_records::worst_of_tasks worst_;  // on the node's thread
  std::atomic<bool> alone_{false};             // the job has ended, and has no members any more
  master::time_point reported_{};              // on the node's thread, as the next
  std::size_t reported_workers_ = 0;
  net::node node_;
  master::server server_;
  std::unique_ptr<net::listener> listener_;
  std::shared_future<master::job_end> ended_;
  std::unique_ptr<platform::platform> platform_;  // null: the others are started by hand
  std::unique_ptr<http::server> metrics_;         // null: without --metrics_port
};

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/master_role.ipp"
#endif

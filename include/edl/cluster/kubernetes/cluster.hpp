// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/thread_pool.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "edl/base/net/node.hpp"
#include "edl/base/platform/platform.hpp"
#include "edl/cluster/kubernetes/client.hpp"
#include "edl/cluster/kubernetes/job_size.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/cluster/kubernetes/objects.hpp"
#include "edl/cluster/kubernetes/pods.hpp"
#include "edl/cluster/kubernetes/watcher.hpp"
#include "edl/core/log.hpp"

namespace edl::kubernetes {

/// How long a master tolerates an API server that refuses to list and to watch its pods.
struct retry_limits {
  bool allowed_before = false;             ///< the previous master had pods: the permission may be restored
  std::chrono::milliseconds right{3'000};  ///< 403 at the start: a new permission takes a moment
  std::chrono::milliseconds identity{30'000};  ///< 401 and 404 at the start: a new identity may take longer
  std::chrono::milliseconds outage{300'000};   ///< of what was permitted before
  std::chrono::milliseconds pause{5'000};      ///< between two attempts, at most
};

/// A job's pods in a cluster, as its master's platform: `pods` behind an API server. It reports events to
/// users as log lines and Events of the master's pod. The pod's label `status` and annotation
/// `elasticdl/progress` show the job's state, `elasticdl/waits` what it has waited for too long,
/// `elasticdl/missing` which pod it lacks. Annotations `elasticdl/num-workers` and `elasticdl/num-ps-pods`
/// request another size. The master answers in `elasticdl/scaled`, writes the requested size to
/// `elasticdl/size`, and removes the request. A master without the required permissions reports that to its
/// observer within seconds. If it had them before, it continues without news of its pods for minutes. If its
/// pod is being deleted, it creates no more pods. `elasticdl/suspend` requests suspension; `elasticdl/report`
/// is the job's state for programs.
///
/// If the spec names an owner of the job, it owns the members, which outlive the master's pod. A master whose
/// pod is gone, e.g. because its node was given up, is superseded.
///
/// Thread safety: as `platform`; the constructor on any thread.
class cluster final : public platform::platform {
 public:
  /// `to` must outlive it. `self`: the master's own pod. Its memory is raised if the previous container has
  /// exhausted it. `avoided`: nodes that an earlier master has named.
  cluster(net::node& on, access via, job_spec spec, owner self, edl::platform::observer& to, logger log,
          retry_limits p = {}, std::vector<std::string> avoided = {});
  ~cluster() override;

  void start(process_id who, std::optional<std::uint32_t> instead_of) override;
  std::string avoid(process_id who, std::string const& why) override;
  void evade(process_id who, std::string const& why) override;
  void stop(process_id who, std::chrono::milliseconds grace) override;
  void stop_all(std::chrono::milliseconds grace) override;
  void show(std::string const& status, std::string const& line) override;
  void waits(std::string const& what) override;
  void report(std::string const& json) override;

 private:
  void run_commands();
  void execute(create_pod const& c);
  void execute(delete_pod const& c);
  void execute(pod_ended const& c) { to_.ended(c.ending, 0); }
  void execute(pod_leaving const& c) { to_.leaving(c.who, c.why); }
  void execute(pods_pressed const& c) { to_.pressed(c.workers); }
  void execute(pods_moving const& c) { to_.moving(c.workers); }
  void execute(pods_found const& c) { to_.found(c.pods); }
  void execute(pods_missing const& c);
  void execute(nodes_leaving const& c);
  void execute(pod_note const& c);
  void execute(not_allowed const& c) { refused(c.why); }

  asio::awaitable<void> retry_deletion(delete_pod c);
  asio::awaitable<void> tick();
  void listed(nlohmann::json const& items, std::string const& version);
  void changed(std::string const& type, nlohmann::json const& object);
  void see_self(nlohmann::json const& pod);
  void refused(std::string const& why);
  void refused(api_error const& why, std::chrono::milliseconds since, bool before);
  std::string way_out() const;
  void scale(requested_size const& request);
  bool answer(requested_size const& request, std::string const& text, std::string const& size);
  void raise_memory(nlohmann::json const& pod);
  void record(pod_note const& n);
  void record(pod_note const& n, owner const& of);
  std::string const& members_owner() const { return spec_.by.empty() ? self_.uid : spec_.by.uid; }
  void self_is_gone();
  void mark_self(nlohmann::json metadata);

  /// Queues a non-essential request to the API server; drops it if too many are waiting.
  void note(std::function<void()> what);
  /// The same, but never drops it.
  void note_surely(std::function<void()> what);
  std::string pod_path(std::string const& name) const;

  net::node& node_;
  client client_;
  job_spec spec_;
  owner self_;
  edl::platform::observer& to_;
  logger log_;
  retry_limits retry_limits_;
  pods pods_;                    // on the node's thread
  bool looked_at_self_ = false;  // on the watcher's thread
  std::mutex request_mutex_;
  std::optional<requested_size> request_;  // that is dealt with now
  job_size size_;                          // that the job is to have; on the node's thread
  std::atomic<bool> any_{false};           // pods that have not ended
  std::atomic<bool> creating_{false};
  std::atomic<int> deleting_{0};           // requests that are not answered
  std::atomic<std::uint64_t> waiting_{0};  // notes
  std::atomic<bool> announced_{false};     // that notes are refused
  asio::thread_pool requests_{8}, notes_{1};
  std::unique_ptr<watcher> watcher_;
};

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/cluster.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/cluster/kubernetes/pod_status.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/log.hpp"

namespace edl::kubernetes {

/// Ask the API server for a pod, and answer with `pods::created` or `pods::refused`.
struct create_pod {
  process_id who;
  std::uint32_t index = 0;  ///< of the worker that it replaces: determines its priority
  resources request, limit;
  std::vector<std::string> avoid = {};  ///< nodes to avoid
  std::string pool = {};                ///< annotation::pool
};

/// Delete a pod. A pod that is missing, or has another uid, is not ours.
struct delete_pod {
  std::string name, uid;
  std::chrono::seconds grace{0};
};

/// A process has ended.
struct pod_ended {
  edl::platform::ending ending;
};

/// A worker was asked to leave, because its pod was deleted or preempted.
struct pod_leaving {
  process_id who;
  std::string why;
};

/// All workers on nodes that are short of a resource, with its description.
struct pods_pressed {
  std::map<std::uint32_t, std::string> workers;
};

/// All nodes that are about to go.
struct nodes_leaving {
  std::vector<std::string> nodes;
};

/// All workers outside of the pool of nodes that was chosen for the job, with the reason to leave.
struct pods_moving {
  std::map<std::uint32_t, std::string> workers;
};

/// The first listing has been processed: these processes run, or are about to.
struct pods_found {
  platform::findings pods;
};

/// A required pod that the API server keeps refusing, with retries; empty: none.
struct pods_missing {
  std::string why;
};

/// A note for users: a log line, and an Event of the master's pod.
struct pod_note {
  severity level = severity::info;
  std::string reason;  ///< "WorkerRelaunched", "ServerRelaunched", "OutOfMemory", "CannotStart"
  std::string text;
};

/// The API server has never created a pod of this job, and the master's account lacks the permission to
/// create any.
struct not_allowed {
  std::string why;
};

using pod_command = std::variant<create_pod, delete_pod, pod_ended, pod_leaving, pods_pressed, nodes_leaving,
                                 pods_moving, pods_found, pods_missing, pod_note, not_allowed>;

/// The servers' and workers' pods of a job. It takes the API server's reports, the master's orders and the
/// time, and returns commands. It has no clock, no thread and no connection.
///
/// - The least size comes first: all servers, and as many workers as the job needs. The other workers are
/// asked
///   for when these have their nodes. A worker that has what a server is refused (quota) makes way for it.
/// - It reports servers with copies of each other on one node.
/// - A pod's name is its process's. A name of a terminating pod is reused when that is gone.
/// - A pod killed for lack of memory gets successors with twice as much, up to `most_doublings` times; these
///   kills do not count as failures.
/// - It retries requests that the API server refuses for lack of room (quota) or for overload, after growing
///   pauses. A permanent refusal, and a wrong image or command, is a failed process.
/// - It deletes a pod whose program has ended, but not its other containers, because it would keep its room.
/// - A missing permission to create pods ends the job, if there was no pod yet. A permission that is revoked
///   later may be restored: it retries, with the same pauses.
/// - It reports a pod that cannot be placed or pulled, with the API server's message, once per reason.
/// - It deletes an unexpected pod that the master does not want: a request for it was executed although its
///   reply was lost.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class pods {
 public:
  struct options {
    std::string job;
    role_spec server, worker;
    std::uint32_t most_doublings = 3;
    std::chrono::milliseconds first_pause{500}, longest_pause{15'000};  ///< between attempts to create
    std::chrono::seconds farewell{30};       ///< for other containers after the program has ended
    std::chrono::seconds pull_timeout{300};  ///< for an image or a volume
    std::chrono::seconds evasion{300};       ///< of a node that is about to go
    std::vector<std::string> avoided = {};   ///< nodes, from an earlier master
    std::uint32_t least_workers = 1;         ///< that the job requires
    std::uint32_t server_copies = 1;         ///< servers that have a copy of each part of the model
  };
  explicit pods(options o) : options_(std::move(o)), avoided_(options_.avoided) {}

  /// The master orders the start of `who`, as the successor of worker `instead_of` if given.
  void start(process_id who, std::optional<std::uint32_t> instead_of, time_point now);

  /// Creates no more pods on the current or last node of `who`. Returns that node; empty: it is unknown, or
  /// avoided already.
  std::string avoid(process_id who, std::string const& why);

  /// The node of `who` is about to go: creates no more pods on it for `options::evasion`. A node with its
  /// name may come afterwards, so pods that have no node by then are created again.
  void evade(process_id who, std::string const& why, time_point now);

  /// The number of workers that the job requires.
  void least(std::uint32_t workers) { options_.least_workers = workers; }

  /// All nodes that are short of a resource, with its name.
  void short_of(std::map<std::string, std::string> nodes) { short_ = std::move(nodes); }

  /// The pool of nodes for new workers (annotation::pool); empty: any. Reports running workers elsewhere, and
  /// creates those again that have no node elsewhere.
  void use_pool(std::string selector) { pool_ = std::move(selector); }

  /// The master orders it to leave. No effect if it is unknown, or has ended already.
  void stop(process_id who, std::chrono::seconds grace);

  /// The job has ended, or its master must: creates nothing any more. Deletes pods that are being created, or
  /// appear later.
  void close();

  /// Deletes, after `close`, all pods except those whose process has ended or is about to. Those of `left`
  /// stay with their logs, although their nodes may report their ends later.
  void stop_all(std::chrono::seconds grace, std::vector<process_id> const& left);

  /// The API server's view: everything, or one change. `version`: of the list.
  void listed(std::vector<pod_status> const& all, time_point now, std::string const& version = {});
  void changed(pod_status const& pod, time_point now);
  void deleted(pod_status const& pod, time_point now);

  /// The result of `create_pod`. The reply may arrive after the view has reported the pod, and its end.
  /// `version`: of the pod in the reply.
  void created(process_id who, std::string const& uid, std::string const& version = {});
  struct refusal {
    int code = 0;  ///< HTTP status; 0: the server was not reached
    std::string reason, message;
    bool forbidden() const;  ///< the account may not create pods
  };
  void refused(process_id who, refusal const& why, time_point now);

  /// Advances the time.
  void tick(time_point now);

  std::vector<pod_command> take_commands() { return std::exchange(commands_, {}); }

  /// Whether there is a pod that has not ended, and is not ending by itself.
  bool any() const;
  /// Whether a create request is pending.
  bool creating() const;

 private:
  struct pod {
    std::uint32_t index = 0;
    std::string uid;              // of the pod with this name; empty: none known
    std::string version;          // from the reply to its creation, until the watch has reported it
    std::string gone;             // of a pod whose end was reported before the reply to its creation
    bool wanted = false;          // requested by the master, which does not know of an end
    bool creating = false;        // requested, not answered yet
    bool held = false;            // to be created once the least size is placed
    bool placed = false;          // it has a node
    bool recreate = false;        // to be created once the name is free
    bool stop_requested = false;  // the master asked it to leave
    bool leaving = false;         // others asked it to leave; the master knows
    bool over = false;            // its process has ended; the master knows
    bool ran = false;             // its container was seen to run
    bool left = false;            // it exits by itself; its node may not have reported that yet
    bool evades = false;          // it may not use a node that was about to go
    std::uint32_t tries = 0;
    std::optional<time_point> retry_at, troubled_since;
    std::string announced;  // the trouble reported last
    std::string node;       // its node; empty: unknown
    std::string pool;       // for which it was created
  };

  void create(process_id who, pod& p);
  void hold(process_id who, pod& p);
  void create_held();
  bool stands() const;
  bool needed(process_id who) const;
  void make_way(process_id who);
  void look_at_missing();
  void look_at_copies();
  void discard(process_id who, pod const& p, std::chrono::seconds grace = {});
  void end(process_id who, pod& p, platform::ending e);
  void watch_trouble(pod_status const& s, pod& p, time_point now);
  void out_of_memory(pod_status const& s, platform::ending& e);
  void look_at_nodes();
  void look_at_pool();
  void look_at_evaded(time_point now);
  void tell_of_evaded();
  resources grown(resources const& of, role what) const;
  role_spec const& spec(role of) const { return of == role::server ? options_.server : options_.worker; }

  options options_;
  std::map<process_id, pod> pods_;
  std::map<role, std::uint32_t> doublings_;
  std::map<process_id, std::string> ends_;    // why a worker's place became free
  std::vector<std::string> avoided_;          // nodes
  std::map<std::string, time_point> evaded_;  // nodes, until when
  std::map<std::string, std::string> short_;
  std::map<std::uint32_t, std::string> pressed_;  // nodes under pressure that have been reported
  std::string pool_;
  std::map<std::uint32_t, std::string> moving_;  // as last reported
  std::vector<pod_command> commands_;
  bool found_ = false, closed_ = false;
  bool made_ = false;               // a pod has existed
  std::string missing_, together_;  // as last reported
};

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/pods.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "kubernetes/double.hpp"
#include "kubernetes/guard.hpp"
#include "kubernetes/pod_status.hpp"
#include "kubernetes/store.hpp"

namespace edl::testing::kubernetes {

/// What all nodes do: runs pods that have a node, as processes, and says in their status what became of them.
/// Thread safety: `pass` on one thread, the rest on any; each holds the store's lock.
class kubelet {
 public:
  /// `url` is for the pods' kubeconfig; `loopback`: their addresses are 127.loopback.x.y.
  kubelet(store& s, options const& o, std::string url, int loopback);
  ~kubelet();

  /// Brings processes and statuses to where the pods' objects want them; returns when to come again.
  clock::time_point pass();

  /// Descriptors that become readable when a process ends, of which that is not known yet.
  std::vector<pollfd> handles() const;

  std::vector<pid_t> processes(std::string const& space, std::string const& name) const;
  void out_of_memory(std::string const& space, std::string const& name);
  void write_tokens(std::string const& token);  ///< into every pod's account

  /// Where a container's output is, of its present or `previous` run. Throws refusal in the server's words.
  std::string log_path(std::string const& space, std::string const& name, std::string container,
                       bool previous) const;
  bool writes(std::string const& path) const;  ///< whether a process still has that log

 private:
  struct container : container_facts {
    clock::time_point report_at = clock::time_point::max();  // when its end is noticed
    pid_t process = 0;
    int handle = -1;  // pidfd: readable when the process has ended
    bool killed_for_memory = false;
    std::string log{};
    clock::time_point again = clock::time_point::max();  // when it is to be started
  };
  struct pod {
    std::string space, name, uid, ip, directory, account;
    std::string node{};
    bool sandbox = false, over = false;
    bool silent = false;  // its node's kubelet neither hears nor says anything
    std::vector<container> containers{};
    clock::time_point kill_at = clock::time_point::max();
    std::int64_t grace = -1;  // of its deletion; none yet
    object seen{};            // what the store had after the last pass
  };

  static bool waits(pod const& p);
  void adopt(json const& object);
  void advance(pod& p, json const& object);
  void begin_deletion(pod& p, json const& object);
  void start(pod& p, container& c, json const& object);
  void reap(pod& p, container& c, json const& object);
  void end(container& c, int code, std::string const& reason, std::string const& message = "");
  void decide(container& c, json const& object);
  void finish(pod& p, json const& object);
  void publish(pod const& p, std::string const& phase = "");
  std::string address(std::string const& space, json const& selector) const;
  std::string new_address(pod const& p);
  pod const* find(std::string const& space, std::string const& name) const;
  void write_account(pod const& p, std::string const& token) const;

  guard guard_;
  store& store_;
  options const& options_;
  std::string url_, token_;
  int loopback_, next_address_ = 1;
  std::map<std::string, pod> pods_;                                       // by uid
  std::map<std::pair<std::string, std::string>, std::string> addresses_;  // last, by namespace and name
};

}  // namespace edl::testing::kubernetes

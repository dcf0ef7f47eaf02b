// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace edl::testing::kubernetes {

/// What stands in for an image: pods' processes run on this machine, with its files.
struct image {
  std::map<std::string, std::string> programs{};  ///< "mnist": "/path/to/mnist"; others are looked up in PATH
  std::vector<std::string> entrypoint{};          ///< of containers without a command; empty: they idle
};

struct node {
  std::string name = "lab-node", cpu = "64", memory = "64Gi";
  std::map<std::string, std::string> more{};    ///< further capacity: {"nvidia.com/gpu": "1"}
  std::map<std::string, std::string> labels{};  ///< beside kubernetes.io/hostname and the like
};

/// A verb ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection") on a resource
/// ("pods", "pods/log") in a namespace, by a user. "system:serviceaccount:SPACE:ACCOUNT" is a pod's user, and
/// "*" is any.
struct rule {
  std::string verb, resource, space = "*", user = "*";
};

struct options {
  std::string directory{};  ///< of certificates, kubeconfig, logs; empty: a temporary one, removed at the end
  std::uint16_t port = 0;
  bool tls = true;
  std::string token = "double-token";
  std::string user = "kubernetes-admin";  ///< who has the token; in messages
  std::vector<std::string> namespaces{"default"};
  std::vector<node> nodes{node{}};
  std::map<std::string, image> images{};             ///< without any, every image is present
  std::map<std::string, std::string> claims{};       ///< directories of claims; of others, made when claimed
  std::map<std::string, std::string> environment{};  ///< of every container
  std::vector<rule> forbidden{};                     ///< refused with 403
  std::size_t history = 1000;                        ///< changes that are kept for watches
  std::chrono::milliseconds second{1000};        ///< in grace periods and pauses: less makes time run faster
  std::chrono::milliseconds establish_delay{0};  ///< between a CustomResourceDefinition and its kind
  int minor = 36;  ///< version 1.MINOR: one before 35 is strict, and refuses fields that it does not know
  bool run_pods = true;  ///< false: no pod is placed or run, for tests with thousands of them
  std::chrono::milliseconds image_start{0};     ///< between the scheduling of a pod and its processes
  std::chrono::milliseconds report_delay{0};    ///< between the end of a process and the kubelet's word of it
  std::chrono::milliseconds bookmarks{60'000};  ///< between bookmarks
  std::chrono::milliseconds longest_watch{1'800'000};  ///< of those that ask for no timeoutSeconds
};

/// A double of a Kubernetes API server, with a scheduler, the controllers of deployments and garbage, and
/// nodes whose pods are processes of this machine. It answers as a real 1.36 server was recorded to.
///
/// Pods get addresses 127.N.x.y of their own. Paths below the mount paths of a pod's volumes are replaced in
/// its command, arguments and environment. Those of host paths, claims' directories and so on take their
/// place. SERVICE.NAMESPACE.svc is replaced by the address of a pod behind that service. KUBECONFIG of each
/// container names this server, with the pod's own token file. The processes end with this object, and with
/// this process.
///
/// Thread safety: safe.
class cluster {
 public:
  /// Listens when it returns. Throws std::runtime_error.
  explicit cluster(options o = {});
  cluster(cluster const&) = delete;
  ~cluster();

  std::string url() const;  ///< "https://127.0.0.1:PORT"
  std::uint16_t port() const;
  std::string directory() const;
  std::string ca_file() const;
  std::string kubeconfig()
      const;  ///< a file with a token; kubeconfig-certificate beside it shows a certificate
  std::string token() const;

  /// The answer to a request, as over HTTP, without HTTP and without faults; a refusal's answer is its Status
  /// (look at "code"). Not for watches and logs. `path` may have a query.
  nlohmann::json call(std::string const& method, std::string const& path, nlohmann::json const& body,
                      std::string const& content_type = "application/merge-patch+json");
  nlohmann::json get(std::string const& path);
  nlohmann::json post(std::string const& path, nlohmann::json const& body);
  nlohmann::json remove(std::string const& path);

  /// Waits until `ready`, asked after each change, or `limit`; returns what it said last.
  bool wait(std::function<bool()> const& ready, std::chrono::milliseconds limit = std::chrono::seconds(20));

  /// The processes of a pod's containers that run now.
  std::vector<pid_t> processes(std::string const& space, std::string const& pod) const;
  std::string log(std::string const& space, std::string const& pod, std::string const& container = "") const;

  // Faults.
  void kill(std::string const& space, std::string const& pod, int signal);
  void out_of_memory(std::string const& space, std::string const& pod);  ///< kills it as the kernel would

  /// As `kubectl drain NODE --ignore-daemonsets --delete-emptydir-data`. No pod is placed there any more, and
  /// those that are there are evicted. It gives kubectl's refusal where pods have no controller and `force`
  /// is not given, and what it says of pods that a budget holds. Pods that have ended are no hindrance.
  std::string drain(std::string const& node, bool force);

  /// The node's kubelet hears and says nothing more, or does again: its pods run on whatever becomes of their
  /// objects, which nobody removes unless by force, and no pod is placed there.
  void silence(std::string const& node, bool yes);
  void close();         ///< stops listening and cuts all connections, as a server that is gone
  void open();          ///< listens again, on the same port
  void hang(bool yes);  ///< while it hangs, requests are taken and not answered, and watches say nothing
  void delay(std::chrono::milliseconds each);                   ///< before each answer
  void fail_next(int requests, int code, int retry_after = 0);  ///< 429, 500, 503, …
  /// The same for requests whose path contains `path`; those without delay and failures are as before.
  void delay_path(std::string const& path, std::chrono::milliseconds each);
  void fail_path(std::string const& path, int requests, int code, int retry_after = 0);
  void events_late(std::chrono::milliseconds each);  ///< watches tell of changes that much later
  void events_twice(bool yes);                       ///< and each of them twice
  void expire_watches();  ///< forgets its history: open watches end with 410, later ones from before, too
  void end_watches();     ///< ends all watches as their timeouts would
  void forbid(std::vector<rule> rules);  ///< from now on, instead of `options::forbidden`; empty: nothing
  void rotate_token(std::string const& token);  ///< the old one is refused; the pods' files get the new one

  std::size_t watches() const;  ///< that are open

 private:
  struct implementation;
  std::unique_ptr<implementation> self_;
};

}  // namespace edl::testing::kubernetes

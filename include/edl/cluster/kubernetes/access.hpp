// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace edl::kubernetes {

/// The address of an API server, its authentication, and the client's identity. Copies share the state of the
/// functions: one client uses them, one call at a time.
struct access {
  std::string server;       ///< "https://host:port"; a path may follow
  std::string ca;           ///< authorities of the server's certificate (PEM); empty: the system's
  std::string server_name;  ///< the name in the server's certificate, if not the address's
  bool insecure = false;    ///< does not verify the server's certificate: kubeconfig asked for it

  std::string certificate, key;  ///< of the client (PEM), if it authenticates with a certificate
  /// The current bearer token, if the client authenticates with a token: called for every request, because it
  /// changes. `refused`: the previous one was refused. May throw error.
  std::function<std::string(bool refused)> token;
  /// Updates `ca`, `certificate` and `key`, if they are files that change or come from a program. Returns
  /// whether they have changed; called before every request. May throw error.
  std::function<bool(access& now)> renew;

  std::string user_space = "default";  ///< the namespace if the user names none
  std::string origin;                  ///< for messages: "the pod's service account", "context 'x' of FILE"
};

/// The service account of the pod that this process runs in. Its token and certificates are files that the
/// kubelet replaces; both are read anew when they have changed. `root`: where the account is mounted. Throws
/// error if this process is not in a pod.
access in_cluster(std::string const& root = "/var/run/secrets/kubernetes.io/serviceaccount");

/// The access of a kubeconfig file's `context` (empty: its current one). Supports certificates and keys as
/// data or files, tokens and token files, and exec plugins (`client.authentication.k8s.io/v1` and v1beta1). A
/// plugin's result is kept until it expires. `path` may be a list of files separated by colons, merged as
/// kubectl does. Throws error, which names the file, the context and what is missing. Refuses a user name and
/// password: no API server since 1.19 accepts them.
access from_kubeconfig(std::string const& path, std::string const& context = "");

/// $KUBECONFIG if it is set, or requested by `force_kubeconfig` or `context`; otherwise the pod's account
/// inside a cluster, and ~/.kube/config outside. Throws as the two above.
access find_access(bool force_kubeconfig = false, std::string const& context = "");

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/access.ipp"
#endif

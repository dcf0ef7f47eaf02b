// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace edl::kubernetes {

/// Where an API server is, how it is known to be the right one, and who asks it. A copy shares what its
/// functions remember: one client uses them, one call at a time.
struct access {
  std::string server;  ///< "https://host:port"; a path may follow
  std::string ca;      ///< certificates that sign the server's (PEM); empty: those that the system trusts
  std::string server_name;  ///< the name in the server's certificate, where it is not the address's
  bool insecure = false;    ///< does not verify the server's certificate: kubeconfig asked for it

  std::string certificate, key;  ///< of the client (PEM), where certificates say who asks
  /// The bearer token of the moment, where a token says who asks: read again for every request, because it
  /// changes. With `refused`, the one that it gave before has been refused. May throw error.
  std::function<std::string(bool refused)> token;
  /// Brings `ca`, `certificate` and `key` up to date, where they are files that change or a program makes
  /// them. It returns whether they have changed, and is asked before every request. May throw error.
  std::function<bool(access& now)> renew;

  std::string user_space = "default";  ///< the namespace of who does not name one
  std::string origin;                  ///< for messages: "the pod's service account", "context 'x' of FILE"
};

/// The service account of the pod that this process runs in. Its token and certificates are files that the
/// kubelet replaces; both are read anew when they have changed. `root`: where the account is mounted.
/// Throws error when this process is not in a pod.
access in_cluster(std::string const& root = "/var/run/secrets/kubernetes.io/serviceaccount");

/// What a kubeconfig file says of `context` (empty: its current one). It has certificates and keys as data or
/// files, tokens and token files, and exec plugins (`client.authentication.k8s.io/v1` and v1beta1). A
/// plugin's answer is kept until it expires. `path` may be a list of files separated by colons, merged as
/// kubectl does. Throws error that names the file, the context and what is missing. A user's name and
/// password is refused: no API server since 1.19 takes one.
access from_kubeconfig(std::string const& path, std::string const& context = "");

/// $KUBECONFIG where it is set or asked for by `force_kubeconfig` or `context`; otherwise the pod's account
/// inside of a cluster, and ~/.kube/config outside. Throws error as the two above.
access find_access(bool force_kubeconfig = false, std::string const& context = "");

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/access.ipp"
#endif

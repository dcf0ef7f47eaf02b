// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace edl::kubernetes {

/// A program in a kubeconfig that supplies credentials (`client.authentication.k8s.io`).
struct exec_plugin {
  std::string version;  ///< "v1" or "v1beta1"
  std::string command;  ///< a path, or a name to be found in $PATH
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> variables;  ///< of its environment, besides this process's
  std::string install_hint;
  std::string interactive = "IfAvailable";  ///< whether it needs the terminal: Never, IfAvailable, Always
  std::string cluster;                      ///< JSON, for KUBERNETES_EXEC_INFO; empty: not passed
  std::string origin;                       ///< for messages
  std::chrono::milliseconds time{120'000};  ///< includes time for a user to log in with a browser
};

/// Its result.
struct exec_credential {
  std::string token, certificate, key;
  std::optional<std::int64_t> expires;  ///< seconds since 1970
};

/// Runs it, and waits. Throws error, with the reason, if the program is missing (with the hint), fails, takes
/// too long, or prints no ExecCredential of its version.
exec_credential run(exec_plugin const& plugin);

/// Keeps a plugin's result until it expires or is refused. Thread safety: one thread at a time.
class exec_credentials {
 public:
  explicit exec_credentials(exec_plugin plugin) : plugin_(std::move(plugin)) {}
  /// `now`: seconds since 1970. `refused`: the server has refused the last one.
  exec_credential const& get(bool refused, std::int64_t now);

 private:
  exec_plugin plugin_;
  std::optional<exec_credential> last_;
};

/// "2026-11-20T10:39:01Z", with a fraction or an offset, in seconds since 1970. Empty: not a time (RFC 3339).
std::optional<std::int64_t> parse_time(std::string const& text);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/exec_plugin.ipp"
#endif

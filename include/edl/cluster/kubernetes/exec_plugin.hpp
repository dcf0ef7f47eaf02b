// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace edl::kubernetes {

/// A program that a kubeconfig names to get credentials from (`client.authentication.k8s.io`).
struct exec_plugin {
  std::string version;  ///< "v1" or "v1beta1"
  std::string command;  ///< a path, or a name to be found in $PATH
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> variables;  ///< of its environment, besides this process's
  std::string install_hint;
  std::string interactive = "IfAvailable";  ///< whether it needs the terminal: Never, IfAvailable, Always
  std::string cluster;                      ///< JSON, for KUBERNETES_EXEC_INFO; empty: it is not to know
  std::string origin;                       ///< for messages
  std::chrono::milliseconds time{120'000};  ///< for a person to log in by a browser, too
};

/// What it gave.
struct exec_credential {
  std::string token, certificate, key;
  std::optional<std::int64_t> expires;  ///< seconds since 1970
};

/// Runs it, and waits. Throws error that says why it gave nothing. The program is missing (and the hint),
/// fails, takes too long, or prints no ExecCredential of its version.
exec_credential run(exec_plugin const& plugin);

/// Keeps what a plugin gave until it expires or is refused. Thread safety: one thread at a time.
class exec_credentials {
 public:
  explicit exec_credentials(exec_plugin plugin) : plugin_(std::move(plugin)) {}
  /// `now`: seconds since 1970. `refused`: the server does not take the last one.
  exec_credential const& get(bool refused, std::int64_t now);

 private:
  exec_plugin plugin_;
  std::optional<exec_credential> last_;
};

/// "2026-11-20T10:39:01Z", with a fraction or an offset, in seconds since 1970. Empty: it is no time (RFC
/// 3339).
std::optional<std::int64_t> parse_time(std::string const& text);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/exec_plugin.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "edl/cluster/kubernetes/access.hpp"
#include "edl/cluster/kubernetes/errors.hpp"

namespace edl::kubernetes {

using query = std::vector<std::pair<std::string, std::string>>;  ///< not yet escaped

/// An API server. Paths are those of its API: "/api/v1/namespaces/default/pods".
///
/// A request is retried, with growing pauses, for at most `retry_timeout`, if the server cannot be reached,
/// is overloaded (429, honouring Retry-After) or fails (500, 502 to 504). If it may have been executed
/// already, it is retried only if that is harmless: `replace`, `patch` by "json" and `create` of an object
/// without a name are not. So AlreadyExists may refer to an object that this very call has created, and
/// NotFound to one that it has removed: the caller must distinguish. After a 401 it reads the token anew,
/// once. Replies have at most 64 MiB.
///
/// Thread safety: safe; each call opens or takes its own connection, and keeps it for the next.
class client {
 public:
  struct options {
    std::chrono::milliseconds timeout{10'000};        ///< of one reply
    std::chrono::milliseconds retry_timeout{30'000};  ///< for retries; 0: none
    std::string agent = "edl";
  };
  explicit client(access a);
  client(access a, options o);
  client(client const&) = delete;
  ~client();

  access const& via() const;

  /// Ends all calls within 200 ms, and later ones immediately: they throw unreachable.
  void stop();

  /// Each throws api_error, unreachable, untrusted, or error if the reply is not JSON.
  nlohmann::json get(std::string const& path, query const& q = {});
  nlohmann::json create(std::string const& path, nlohmann::json const& object, query const& q = {});
  /// `kind`: "merge" (RFC 7386), "strategic", "json" (RFC 6902) or "apply" (server-side).
  nlohmann::json patch(std::string const& path, nlohmann::json const& change,
                       std::string const& kind = "merge", query const& q = {});
  nlohmann::json replace(std::string const& path, nlohmann::json const& object, query const& q = {});
  /// `how`: a DeleteOptions object, or {}.
  nlohmann::json remove(std::string const& path, nlohmann::json const& how, query const& q = {});

  /// Reads a reply as it arrives, without a time limit: logs, watches. `take` gets pieces of any length and
  /// returns whether to continue. Returns when the server has ended the reply, `take` returns false, or
  /// `stopped`, which it calls every 100 ms and may be empty, returns true. The reply must begin within
  /// `timeout`; if then nothing arrives for `idle`, it throws unreachable. Nothing is retried. Throws as the
  /// others, and what `take` throws.
  void stream(std::string const& path, query const& q, std::function<bool(std::string_view)> const& take,
              std::chrono::milliseconds idle, std::function<bool()> const& stopped);

 private:
  struct implementation;
  std::unique_ptr<implementation> self_;
};

/// A version of Kubernetes: 1.36.
struct server_version {
  std::uint32_t major = 0, minor = 0;
  auto operator<=>(server_version const&) const = default;
};

/// The oldest version that supports TrainingJobs: its API server checks their rules.
inline constexpr server_version oldest_server{1, 29};
/// The first version that supports restart rules of a container.
inline constexpr server_version first_with_restart_rules{1, 35};

/// The version of an API server; empty: it reports none that can be parsed. Throws as `client::get`.
std::optional<server_version> ask_version(client& of);

/// Whether masters' pods may have restart rules. A server without a version counts as a new one.
inline bool knows_restart_rules(std::optional<server_version> const& v) {
  return !v || *v >= first_with_restart_rules;
}

/// Whether a server has refused restart rules because it does not know them: as a value (422), or as a field,
/// where it is strict (400).
bool refuses_restart_rules(api_error const& e);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/client.ipp"
#endif

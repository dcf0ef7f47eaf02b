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
/// A request is repeated, with growing pauses, for at most `retry_timeout`. That is when the server cannot be
/// reached, has too much to do (429, and what Retry-After says) or fails (500, 502 to 504). If it may have
/// been carried out already, it is only repeated where that does no harm. So `replace`, `patch` by "json" and
/// `create` of an object without a name are not repeated. So AlreadyExists may speak of an object that this
/// very call has made, and NotFound of one that it has removed: the caller must tell. A 401 reads the token
/// anew, once. Answers are at most 64 MiB.
///
/// Thread safety: safe; each call opens or takes one connection for itself, and keeps it for the next.
class client {
 public:
  struct options {
    std::chrono::milliseconds timeout{10'000};        ///< of one answer
    std::chrono::milliseconds retry_timeout{30'000};  ///< for repetitions; 0: none
    std::string agent = "edl";
  };
  explicit client(access a);
  client(access a, options o);
  client(client const&) = delete;
  ~client();

  access const& via() const;

  /// Ends all calls within 200 ms, and those that come after at once: they throw unreachable.
  void stop();

  /// Each throws api_error, unreachable, untrusted, or error when the answer is no JSON.
  nlohmann::json get(std::string const& path, query const& q = {});
  nlohmann::json create(std::string const& path, nlohmann::json const& object, query const& q = {});
  /// `kind`: "merge" (RFC 7386), "strategic", "json" (RFC 6902) or "apply" (server-side).
  nlohmann::json patch(std::string const& path, nlohmann::json const& change,
                       std::string const& kind = "merge", query const& q = {});
  nlohmann::json replace(std::string const& path, nlohmann::json const& object, query const& q = {});
  /// `how`: a DeleteOptions object, or {}.
  nlohmann::json remove(std::string const& path, nlohmann::json const& how, query const& q = {});

  /// Reads an answer as it comes, without an end in time: logs, watches. `take` gets pieces of any length and
  /// returns whether to go on. It returns when the server has ended the answer, or `take` has, or `stopped`,
  /// which is asked every 100 ms and may be empty. The answer must begin within `timeout`; one that then
  /// brings nothing for `idle` is broken (unreachable). Nothing is repeated. Throws as the others, and what
  /// `take` throws.
  void stream(std::string const& path, query const& q, std::function<bool(std::string_view)> const& take,
              std::chrono::milliseconds idle, std::function<bool()> const& stopped);

 private:
  struct implementation;
  std::unique_ptr<implementation> self_;
};

/// Of Kubernetes: 1.36.
struct server_version {
  std::uint32_t major = 0, minor = 0;
  auto operator<=>(server_version const&) const = default;
};

/// The oldest that TrainingJobs work with, whose API server checks their rules.
inline constexpr server_version oldest_server{1, 29};
/// The first that starts a container again in its pod by rules of its own.
inline constexpr server_version first_with_restart_rules{1, 35};

/// The version of an API server; nothing: it tells none that can be read. Throws as `client::get`.
std::optional<server_version> ask_version(client& of);

/// Whether masters' pods may have restart rules. A server that tells no version is taken for a new one.
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "edl/core/error.hpp"
#include "edl/platform/kubernetes/access.hpp"

namespace edl::platform::kubernetes {

/// The API server's refusal: the fields of its Status object. `what()` is one line that names the request,
/// the server's own message, and what to change where that is known (401: which credentials were used; 403:
/// `edl rbac`; 409; 422).
class api_error : public error {
 public:
  api_error(int code, std::string reason, std::string message, std::string const& what)
      : error(what), code_(code), reason_(std::move(reason)), message_(std::move(message)) {}
  int code() const { return code_; }                       ///< HTTP status
  std::string const& reason() const { return reason_; }    ///< "AlreadyExists", "Forbidden", "Invalid", …
  std::string const& message() const { return message_; }  ///< the server's own words

 private:
  int code_;
  std::string reason_, message_;
};

/// The server could not be reached, or broke off; the request may have been carried out.
class unreachable : public error {
 public:
  using error::error;
};

using query = std::vector<std::pair<std::string, std::string>>;  ///< not yet escaped

/// An API server. Paths are those of its API: "/api/v1/namespaces/default/pods".
///
/// Requests that change nothing are repeated, with growing pauses, when the server cannot be reached, has too
/// much to do (429, and what Retry-After says) or fails (5xx), for at most `patience`; `create` is repeated
/// too, because names are unique: AlreadyExists after a repeat of it is success if the object is the caller's
/// to tell. A 401 reads the token anew, once. Answers are at most 64 MiB.
///
/// Thread safety: safe; each call opens or takes one connection for itself, and keeps it for the next.
class client {
 public:
  struct options {
    std::chrono::milliseconds timeout{10'000};   ///< of one answer
    std::chrono::milliseconds patience{30'000};  ///< of one call with all its repetitions
    std::string agent = "edl";
  };
  explicit client(access a);
  client(access a, options o);
  client(client const&) = delete;
  ~client();

  access const& via() const;

  /// Each throws api_error, unreachable, or error when the answer is no JSON.
  nlohmann::json get(std::string const& path, query const& q = {});
  nlohmann::json create(std::string const& path, nlohmann::json const& object, query const& q = {});
  /// `kind`: "merge" (RFC 7386), "strategic", "json" (RFC 6902) or "apply" (server-side).
  nlohmann::json patch(std::string const& path, nlohmann::json const& change, std::string const& kind = "merge",
                       query const& q = {});
  nlohmann::json replace(std::string const& path, nlohmann::json const& object, query const& q = {});
  nlohmann::json remove(std::string const& path, nlohmann::json const& options, query const& q = {});

  /// Reads an answer as it comes, without an end in time: logs, watches. `take` gets pieces of any length and
  /// returns whether to go on; returns when the server has ended the answer or `take` has. `idle`: an answer
  /// that brings nothing for so long is broken (unreachable); `stopped` is asked every 100 ms.
  void stream(std::string const& path, query const& q, std::function<bool(std::string_view)> const& take,
              std::chrono::milliseconds idle, std::function<bool()> const& stopped);

 private:
  struct implementation;
  std::unique_ptr<implementation> self_;
};

}  // namespace edl::platform::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/platform/kubernetes/client.ipp"
#endif

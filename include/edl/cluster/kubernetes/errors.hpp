// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "edl/base/http/client/errors.hpp"
#include "edl/core/error.hpp"

namespace edl::kubernetes {

/// The API server's refusal, with the fields of its Status object. `what()` is one line that names the
/// request and the server's message. Where the remedy is known, it adds that (401: which credentials were
/// used; 403: `edl rbac`; 404; 409).
class api_error : public error {
 public:
  api_error(int code, std::string reason, std::string message, std::string const& what,
            std::chrono::seconds retry_after = {})
      : error(what),
        code_(code),
        retry_after_(retry_after),
        reason_(std::move(reason)),
        message_(std::move(message)) {}
  int code() const { return code_; }                                 ///< HTTP status
  std::string const& reason() const { return reason_; }              ///< "AlreadyExists", "Forbidden", …
  std::string const& message() const { return message_; }            ///< the server's own words
  std::chrono::seconds retry_after() const { return retry_after_; }  ///< 0: it did not say

 private:
  int code_;
  std::chrono::seconds retry_after_;
  std::string reason_, message_;
};

using http::stopped_error, http::unreachable, http::untrusted;

/// Makes the refusal from a reply with HTTP status `code`; the body is a Status object, or the page of some
/// proxy. `request`: "GET https://host/path"; `origin`: where the credentials come from.
api_error refusal(int code, std::string_view body, std::string const& request, std::string const& origin,
                  std::chrono::seconds retry_after = {});

/// Makes outside text fit for one line: replaces control characters such as line breaks by blanks, and cuts
/// it after `longest` bytes, ending in "…".
std::string one_line(std::string_view text, std::size_t longest = 2000);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/errors.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "edl/base/http/message.hpp"

namespace edl::http {

/// Answers a request, on the node's thread. An exception becomes a response: that of a `failure`, or 500.
using handler = std::function<asio::awaitable<response>(request&)>;

/// A handler that does not wait.
handler at_once(std::function<response(request const&)> answer);

struct route {
  std::string method;  ///< "GET" answers HEAD, too
  std::string path;    ///< "/v2/models/{}/infer": `{}` is any one segment, stored in `arguments`; so is
                       ///< the part before ":predict" in a segment "{}:predict"
  handler serve;
  bool open = false;  ///< needs no token
  /// Throws `failure` (404) if there is nothing for these arguments: checked before 405.
  std::function<void(std::vector<std::string> const& arguments)> exists = {};
  /// Called with the status of each response at this path that the handler did not make, e.g. 401 or 413.
  std::function<void(int status)> refused = {};
};

/// The route of a request.
struct found_route {
  route const* at = nullptr;  ///< the route for the path, if any; perhaps with another method
  std::vector<std::string> arguments = {};
  std::optional<failure> refused = {};  ///< 400, 404, or 405 with the allowed methods; empty: `at` answers
};

/// The routes of a server. The first with a matching path determines the path; it allows the methods of all
/// routes with that path. Thread safety: distinct and shared objects: safe.
class router {
 public:
  router(std::vector<route> routes = {}) : routes_(std::move(routes)) {}

  found_route find(request const& r) const;

 private:
  std::vector<route> routes_;
};

}  // namespace edl::http

#ifdef EDL_HEADER_ONLY
#include "edl/base/http/router.ipp"
#endif

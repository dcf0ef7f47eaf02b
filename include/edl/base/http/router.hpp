// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "edl/base/http/message.hpp"

namespace edl::http {

/// Answers a request, on the node's thread. What it throws becomes an answer: a `failure` its own, all else
/// 500.
using handler = std::function<asio::awaitable<response>(request&)>;

/// A handler that does not wait.
handler at_once(std::function<response(request const&)> answer);

struct route {
  std::string method;  ///< "GET" answers HEAD, too
  std::string path;    ///< "/v2/models/{}/infer": `{}` is any one segment, which `arguments` gets; so is
                       ///< what stands before ":predict" in a segment "{}:predict"
  handler serve;
  bool open = false;  ///< wants no token
  /// Throws `failure` (404) when there is nothing for these arguments: it comes before 405.
  std::function<void(std::vector<std::string> const& arguments)> exists = {};
  /// Told the status of each answer at this path that is not the handler's, as 401 or 413.
  std::function<void(int status)> refused = {};
};

/// What a request asks for.
struct found_route {
  route const* at = nullptr;  ///< with the request's path, if there is one; maybe of another method
  std::vector<std::string> arguments = {};
  std::optional<failure> refused = {};  ///< 400, 404, or 405 with what is allowed; none: `at` answers
};

/// The routes of a server. The first whose path fits decides on the path; what it allows are the methods of
/// all routes of that path. Thread safety: distinct and shared objects: safe.
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <string>
#include <vector>

#include "edl/job/http/message.hpp"

namespace edl::http {

/// Answers a request, on the node's thread. What it throws becomes an answer: a `failure` its own, all else
/// 500.
using handler = std::function<asio::awaitable<response>(request&)>;

/// A handler that does not wait.
handler at_once(std::function<response(request const&)> answer);

struct route {
  std::string method;  ///< "GET" answers HEAD, too
  std::string path;    ///< "/v2/models/{}/infer": `{}` is any one segment, which `arguments` gets
  handler serve;
  bool open = false;  ///< wants no token
};

/// The routes of a server. Thread safety: distinct and shared objects: safe.
class router {
 public:
  router(std::vector<route> routes = {}) : routes_(std::move(routes)) {}

  /// The route of a request, whose `arguments` are in `into`. Throws `failure`: 404, or 405 with what is
  /// allowed.
  route const& find(request const& r, std::vector<std::string>& into) const;

 private:
  std::vector<route> routes_;
};

}  // namespace edl::http

#ifdef EDL_HEADER_ONLY
#include "edl/job/http/router.ipp"
#endif

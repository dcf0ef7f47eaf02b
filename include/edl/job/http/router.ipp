// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "edl/core/inline.hpp"
#include "edl/job/http/router.hpp"

namespace edl::http {
namespace detail {

inline bool matches(std::string_view pattern, std::string_view path, std::vector<std::string>& into) {
  into.clear();
  for (;;) {
    auto const end = pattern.find('/'), stop = path.find('/');
    std::string_view const wanted = pattern.substr(0, end);
    std::string_view const given = path.substr(0, stop);
    if (wanted == "{}" && !given.empty())
      into.push_back(decoded(given));
    else if (wanted != given && (given.find('%') == given.npos || wanted != decoded(given)))
      return false;
    if (end == pattern.npos || stop == path.npos) return end == stop;
    pattern.remove_prefix(end + 1);
    path.remove_prefix(stop + 1);
  }
}

}  // namespace detail

EDL_INLINE handler at_once(std::function<response(request const&)> answer) {
  return [answer = std::move(answer)](request& r) -> asio::awaitable<response> { co_return answer(r); };
}

EDL_INLINE route const& router::find(request const& r, std::vector<std::string>& into) const {
  std::string allowed;
  for (route const& one : routes_) {
    if (!detail::matches(one.path, r.path, into)) continue;
    if (one.method == r.method || (one.method == "GET" && r.method == "HEAD")) return one;
    allowed += (allowed.empty() ? "" : ", ") + one.method + (one.method == "GET" ? ", HEAD" : "");
  }
  if (allowed.empty()) throw failure(404, fmt::format("there is nothing at {}", r.path));
  throw failure(405, fmt::format("{} takes {}, not {}", r.path, allowed, r.method), {{"Allow", allowed}});
}

}  // namespace edl::http

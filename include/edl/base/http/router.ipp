// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "edl/base/http/router.hpp"
#include "edl/core/inline.hpp"

namespace edl::http {
namespace detail {

inline bool matches(std::string_view pattern, std::string_view path, std::vector<std::string>& into) {
  into.clear();
  for (;;) {
    auto const end = pattern.find('/'), stop = path.find('/');
    std::string_view const wanted = pattern.substr(0, end);
    std::string_view const given = path.substr(0, stop);
    if (wanted.starts_with("{}") && !given.empty()) {
      into.push_back(decoded(given));
      std::string& all = into.back();
      std::string_view const behind = wanted.substr(2);
      if (all.size() <= behind.size() || !all.ends_with(behind)) return false;
      all.resize(all.size() - behind.size());
    } else if (wanted != given && (given.find('%') == given.npos || wanted != decoded(given))) {
      return false;
    }
    if (end == pattern.npos || stop == path.npos) return end == stop;
    pattern.remove_prefix(end + 1);
    path.remove_prefix(stop + 1);
  }
}

}  // namespace detail

EDL_INLINE handler at_once(std::function<response(request const&)> answer) {
  return [answer = std::move(answer)](request& r) -> asio::awaitable<response> { co_return answer(r); };
}

EDL_INLINE found_route router::find(request const& r) const {
  found_route found;
  std::string allowed;
  try {
    for (route const& one : routes_) {
      if (found.at ? one.path != found.at->path : !detail::matches(one.path, r.path, found.arguments))
        continue;
      bool const asked = one.method == r.method || (one.method == "GET" && r.method == "HEAD");
      if (asked || !found.at) found.at = &one;
      if (asked) return found;
      allowed += (allowed.empty() ? "" : ", ") + one.method + (one.method == "GET" ? ", HEAD" : "");
    }
    if (!found.at) throw failure(404, fmt::format("nothing at {}", r.path));
    if (found.at->exists) found.at->exists(found.arguments);
    throw failure(405, fmt::format("{} takes {}, not {}", r.path, allowed, r.method), {{"Allow", allowed}});
  } catch (failure const& f) {
    found.refused = f;
  }
  return found;
}

}  // namespace edl::http

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "edl/cluster/controller/limited_requests.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::controller {

EDL_INLINE nlohmann::json limited_requests::get(std::string const& path) {
  return ask("get", [&] { return client_.get(path); });
}

EDL_INLINE nlohmann::json limited_requests::create(std::string const& path, nlohmann::json const& object) {
  return ask("create", [&] { return client_.create(path, object); });
}

EDL_INLINE nlohmann::json limited_requests::patch(std::string const& path, nlohmann::json const& change,
                                                  std::string const& kind) {
  return ask("patch", [&] { return client_.patch(path, change, kind); });
}

EDL_INLINE nlohmann::json limited_requests::remove(std::string const& path, nlohmann::json const& how) {
  return ask("delete", [&] { return client_.remove(path, how); });
}

EDL_INLINE nlohmann::json limited_requests::ask(char const* verb,
                                                std::function<nlohmann::json()> const& request) {
  using steady = std::chrono::steady_clock;
  steady::duration wait;
  {
    std::lock_guard const lock(mutex_);
    wait = limit_.reserve(steady::now());
  }
  if (wait > steady::duration::zero()) std::this_thread::sleep_for(wait);
  if (!leads_()) throw deposed{};  // checked after the wait, during which the lead may have been lost
  auto const began = steady::now();
  auto const count = [&](std::string const& code) {
    metrics_.add("edl_controller_api_requests_total", fmt::format("verb=\"{}\",code=\"{}\"", verb, code));
    metrics_.observe("edl_controller_api_request_duration_seconds",
                     std::chrono::duration<double>(steady::now() - began).count(),
                     fmt::format("verb=\"{}\"", verb));
  };
  try {
    auto answer = request();
    count("2xx");
    return answer;
  } catch (kubernetes::api_error const& e) {
    count(std::to_string(e.code()));
    throw;
  } catch (error const&) {
    count("none");
    throw;
  }
}

}  // namespace edl::controller

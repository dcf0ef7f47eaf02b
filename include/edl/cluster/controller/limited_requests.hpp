// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>

#include "edl/cluster/controller/api_requests.hpp"
#include "edl/cluster/controller/rate_limit.hpp"
#include "edl/cluster/kubernetes/client.hpp"
#include "edl/core/metric_registry.hpp"

namespace edl::controller {

/// Sends requests through a client at a limited rate and counts them in metrics. Each calls `leads`
/// immediately before it is sent and throws `deposed` if that returns false.
///
/// Thread safety: safe.
class limited_requests : public api_requests {
 public:
  /// Allows bursts of `burst` requests, and `per_s` per second. The references must outlive this object.
  limited_requests(kubernetes::client& c, metric_registry& m, double per_s, double burst,
                   std::function<bool()> leads)
      : client_(c), metrics_(m), limit_(per_s, burst), leads_(std::move(leads)) {}

  nlohmann::json get(std::string const& path) override;
  nlohmann::json create(std::string const& path, nlohmann::json const& object) override;
  nlohmann::json patch(std::string const& path, nlohmann::json const& change,
                       std::string const& kind) override;
  nlohmann::json remove(std::string const& path, nlohmann::json const& how) override;

 private:
  nlohmann::json ask(char const* verb, std::function<nlohmann::json()> const& request);

  kubernetes::client& client_;
  metric_registry& metrics_;
  std::mutex mutex_;
  rate_limit limit_;
  std::function<bool()> leads_;
};

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/limited_requests.ipp"
#endif

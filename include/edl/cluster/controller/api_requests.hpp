// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace edl::controller {

/// A controller's requests to an API server, one at a time. Each throws what kubernetes::client throws, or
/// `deposed` when this controller may no longer act.
class api_requests {
 public:
  virtual ~api_requests() = default;
  virtual nlohmann::json get(std::string const& path) = 0;
  virtual nlohmann::json create(std::string const& path, nlohmann::json const& object) = 0;
  virtual nlohmann::json patch(std::string const& path, nlohmann::json const& change,
                               std::string const& kind) = 0;
  virtual nlohmann::json remove(std::string const& path, nlohmann::json const& how) = 0;
};

/// Thrown when another controller may have taken over.
struct deposed {};

}  // namespace edl::controller

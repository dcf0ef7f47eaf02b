// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "edl/base/http/client/client.hpp"

namespace edl::http {

/// The service at which a cloud's machine, or a container, asks about itself. Thread safety: one thread at a
/// time.
class metadata_service {
 public:
  /// "http://host:port". Throws error for any other address.
  explicit metadata_service(std::string const& address);

  struct reply {
    int code = 0;                        ///< HTTP's; 0: none within a second, or none that can be used
    std::string body = {}, flavor = {};  ///< at most 64 KiB; the field Metadata-Flavor
  };

  /// Sends one request. `stopped`: ends it early.
  reply ask(std::string method, std::string const& path, fields headers,
            std::function<bool()> const& stopped = {});

 private:
  client line_;
};

/// AWS's, with its session tokens ("IMDSv2"), at AWS_EC2_METADATA_SERVICE_ENDPOINT or the usual address.
/// `variable`: of the environment; empty: it is not set.
class aws_metadata {
 public:
  explicit aws_metadata(std::function<std::string(char const*)> const& variable);

  /// What it says about `path`, e.g. "spot/instance-action".
  metadata_service::reply get(std::string const& path, std::function<bool()> const& stopped = {});

 private:
  metadata_service service_;
  std::string token_;
};

/// The address in this variable, or the usual one.
std::string metadata_address(std::function<std::string(char const*)> const& variable, char const* name,
                             char const* scheme = "");

}  // namespace edl::http

#ifdef EDL_HEADER_ONLY
#include "edl/base/http/client/metadata_service.ipp"
#endif

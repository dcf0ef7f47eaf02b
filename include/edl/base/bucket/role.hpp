// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "edl/base/bucket/signature.hpp"

namespace edl::bucket {

/// An environment variable; empty: it is not set.
using environment = std::function<std::string(char const* name)>;

/// Temporary credentials of a role.
struct role {
  credentials who;
  std::time_t expires = 0;  ///< seconds since 1970; 0: unknown
  std::string origin;       ///< for errors
};

/// The role of a pod's service account: AWS_WEB_IDENTITY_TOKEN_FILE is exchanged at AWS's token service (STS,
/// AssumeRoleWithWebIdentity) of `region` for credentials of AWS_ROLE_ARN. The service's address may be
/// AWS_ENDPOINT_URL_STS or AWS_ENDPOINT_URL. Nothing if the first two are not set. Throws error.
std::optional<role> web_identity_role(environment const& variable, std::string const& region);

/// The role of a container (AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI, with
/// AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE or _TOKEN), as EKS Pod Identity and ECS have it, or of the machine,
/// from its metadata service, unless AWS_EC2_METADATA_DISABLED is `true`. Nothing if there is none. Throws
/// error if a container's service does not answer.
std::optional<role> machine_role(environment const& variable);

/// The role in the JSON reply of a container's or a machine's service; nothing if it names none.
std::optional<role> role_in(std::string_view json, std::string origin);

}  // namespace edl::bucket

#ifdef EDL_HEADER_ONLY
#include "edl/base/bucket/role.ipp"
#endif

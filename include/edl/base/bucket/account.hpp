// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <string>

#include "edl/base/bucket/role.hpp"
#include "edl/base/bucket/signature.hpp"

namespace edl::bucket {

/// The credentials of a store and its address, found as AWS's tools do.
struct account {
  credentials who;
  std::string region = "us-east-1";
  std::string endpoint;     ///< "https://host:port" of a store that is not AWS; empty: AWS
  std::string ca_file;      ///< certificates of its authorities (PEM); empty: the system's
  std::string origin;       ///< of the credentials, for errors
  std::time_t expires = 0;  ///< of the credentials, seconds since 1970; 0: unknown, or never
};

std::string process_environment(char const* name);

/// Reads AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. Without them it takes, in this
/// order, `web_identity_role`, the profile AWS_PROFILE (`default`) of AWS_SHARED_CREDENTIALS_FILE
/// (`~/.aws/credentials`), and `machine_role`. Region and endpoint are AWS_REGION,
/// AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL, or `region` and `endpoint_url` of the
/// profile there or in AWS_CONFIG_FILE (`~/.aws/config`). AWS_CA_BUNDLE names authorities. Throws error,
/// which names what is missing.
account find_account(environment const& variable = process_environment);

}  // namespace edl::bucket

#ifdef EDL_HEADER_ONLY
#include "edl/base/bucket/account.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "edl/base/http/client/client.hpp"

namespace edl::bucket {

struct credentials {
  std::string key, secret;
  std::string session = {};  ///< of temporary credentials; empty: none
};

/// Signs a request: adds the fields by which AWS and compatible stores verify its sender (Signature Version
/// 4, "Authenticating Requests: Using the Authorization Header"). The target must be escaped; all headers are
/// signed. A given x-amz-content-sha256 is the hash of the body; otherwise it is computed.
void sign(http::question& q, std::string_view host, credentials const& who, std::string_view region,
          std::time_t now);

std::string hexadecimal(std::string_view bytes);  ///< in lower case

std::string base64(std::string_view bytes);  ///< RFC 4648, padded

/// SHA-256 (FIPS 180-4), as 32 bytes, or in lower-case hexadecimal digits.
std::string sha256_bytes(std::string_view text);
inline std::string sha256(std::string_view text) { return hexadecimal(sha256_bytes(text)); }

}  // namespace edl::bucket

#ifdef EDL_HEADER_ONLY
#include "edl/base/bucket/signature.ipp"
#endif

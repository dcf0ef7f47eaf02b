// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <openssl/err.h>

#include "edl/base/net/security/openssl.hpp"
#include "edl/core/inline.hpp"

namespace edl::net {

EDL_INLINE std::string openssl_errors(std::string_view otherwise) {
  std::string text;
  while (auto const code = ERR_get_error()) {
    char const* const reason = ERR_reason_error_string(code);
    if (!text.empty()) text += ", ";
    text += reason ? reason : fmt::format("OpenSSL error {:x}", code);
  }
  return text.empty() ? std::string(otherwise) : text;
}

}  // namespace edl::net

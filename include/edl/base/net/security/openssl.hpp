// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace edl::net {

/// Frees an OpenSSL object with a function of OpenSSL.
template <auto Free>
struct openssl_free {
  void operator()(auto* p) const { Free(p); }
};
template <class T, auto Free>
using openssl_ptr = std::unique_ptr<T, openssl_free<Free>>;

/// Returns and clears OpenSSL's errors in this thread, the cause first; `otherwise` if there are none.
std::string openssl_errors(std::string_view otherwise = "unknown reason");

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/security/openssl.ipp"
#endif

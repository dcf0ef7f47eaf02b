// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace edl::net {

/// Frees what OpenSSL made by a function of it.
template <auto Free>
struct openssl_free {
  void operator()(auto* p) const { Free(p); }
};
template <class T, auto Free>
using openssl_ptr = std::unique_ptr<T, openssl_free<Free>>;

/// What OpenSSL says went wrong in this thread, the cause first, and forgets; `otherwise`: where it says
/// nothing.
std::string openssl_errors(std::string_view otherwise = "unknown reason");

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/security/openssl.ipp"
#endif

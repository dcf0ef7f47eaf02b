// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace edl::net {

/// How the TCP connections of a process are protected. Unix sockets are limited to one user of one host, and
/// are never encrypted.
enum class transport_security {
  tls,   ///< TLS 1.3; a peer that speaks without it is refused
  none,  ///< anyone who controls the network can read and alter them; TLS is accepted if peers start it
};

constexpr std::array<std::string_view, 2> names(transport_security) { return {"tls", "none"}; }

}  // namespace edl::net

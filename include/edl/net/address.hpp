// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace edl::net {

/// Where a process listens: `tcp:host:port`, `tcp:[v6 address]:port`, or `unix:@name`, a Unix socket in
/// Linux' abstract namespace, which leaves no file behind and is seen by whoever shares the network
/// namespace.
struct address {
  enum class transport { tcp, local };

  transport over = transport::tcp;
  std::string host;        ///< tcp: a name or number without brackets; local: the name without '@'
  std::uint16_t port = 0;  ///< tcp; 0 when listening: the system chooses

  friend bool operator==(address const&, address const&) = default;
};

/// Throws `edl::error` that quotes the text and says what is wrong with it.
address parse_address(std::string_view text);

/// Of every text of a range, in its order. Throws as `parse_address`.
template <class Texts>
std::vector<address> parse_addresses(Texts const& texts) {
  std::vector<address> all;
  for (std::string const& one : texts) all.push_back(parse_address(one));
  return all;
}

std::string to_string(address const& a);

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/net/address.ipp"
#endif

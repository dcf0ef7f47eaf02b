// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace edl::net {

/// An address that a process listens on: `tcp:host:port`, `tcp:[v6 address]:port`, `unix:/path` or
/// `unix:@name`. The last is a Unix socket in Linux's abstract namespace, which leaves no file behind. All
/// processes in the network namespace see it. `!IDENTITY` may follow, as in
/// `tcp:10.0.0.7:41952!ps-1/00000000deadbeef`: a caller then accepts only this process.
struct address {
  enum class transport { tcp, local };

  transport over = transport::tcp;
  std::string host;  ///< tcp: a name or number without brackets; local: the path, or the name without '@'
  std::uint16_t port = 0;  ///< tcp; 0 when listening: the system chooses
  std::string peer = {};   ///< the identity that the process there must prove; empty: any process of the job

  bool is_path() const { return over == transport::local && host.starts_with('/'); }

  friend bool operator==(address const&, address const&) = default;
};

/// Throws `edl::error`, which quotes the text and names the fault.
address parse_address(std::string_view text);

/// Parses every text of a range, in its order. Throws as `parse_address`.
template <class Texts>
std::vector<address> parse_addresses(Texts const& texts) {
  std::vector<address> all;
  for (std::string const& one : texts) all.push_back(parse_address(one));
  return all;
}

std::string to_string(address const& a);

/// The address without the identity.
std::string place_of(address const& a);

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/address.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/base/net/address.hpp"
#include "edl/base/net/security/identity.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::net {

namespace detail {
[[noreturn]] inline void bad_address(std::string_view text, std::string_view why) {
  throw error(fmt::format("address '{}': {}", printable(text, 300), why));
}
}  // namespace detail

EDL_INLINE address parse_address(std::string_view text) {
  auto const refuse = [text](std::string_view why) { detail::bad_address(text, why); };
  for (char c : text)
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f')
      refuse("it holds a blank or a control character");
  auto const mark = text.rfind('!');
  std::string const peer(mark == text.npos ? "" : text.substr(mark + 1));
  if (mark != text.npos && !is_identity(peer)) refuse("'!' is not followed by an identity, as in !ps-1");
  std::string_view const place = text.substr(0, mark);
  if (place.starts_with("unix:")) {
    std::string_view name = place.substr(5);
    if (!name.starts_with('@') && !name.starts_with('/'))
      refuse("a Unix socket is a path or an abstract name, as unix:/path or unix:@name");
    if (name.starts_with('@')) {
      name.remove_prefix(1);
      if (name.starts_with('/')) refuse("an abstract name does not begin with '/'");
    }
    if (name.empty()) refuse("the name after unix:@ is missing");
    if (name.size() > 100) refuse("the name is longer than 100 bytes");
    return {address::transport::local, std::string(name), 0, peer};
  }
  if (!place.starts_with("tcp:")) refuse("it begins with neither tcp: nor unix:");
  std::string_view const rest = place.substr(4);
  auto const colon = rest.rfind(':');
  if (colon == rest.npos) refuse("the port is missing, as in tcp:host:port");
  std::string_view host = rest.substr(0, colon), port = rest.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find_first_of("[]:") != host.npos)
    refuse("a host with colons stands in brackets, as in tcp:[::1]:port");
  if (host.empty()) refuse("the host is missing; 0.0.0.0 listens on all interfaces");
  if (host.size() > 253) refuse("the host is longer than 253 bytes");
  auto const number = number_from<std::uint16_t>(port);
  if (!number) refuse("the port is not a number from 0 to 65535");
  return {address::transport::tcp, std::string(host), *number, peer};
}

EDL_INLINE std::string to_string(address const& a) {
  return place_of(a) + (a.peer.empty() ? "" : "!" + a.peer);
}

EDL_INLINE std::string place_of(address const& a) {
  if (a.over == address::transport::local) return (a.is_path() ? "unix:" : "unix:@") + a.host;
  bool const six = a.host.find(':') != a.host.npos;
  return fmt::format("tcp:{}{}{}:{}", six ? "[" : "", a.host, six ? "]" : "", a.port);
}

}  // namespace edl::net

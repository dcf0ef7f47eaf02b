// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/address.hpp"

#include "edl/base/net/security/identity.hpp"
#include "fuzz.hpp"

namespace address_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const text = fuzz::text(data, size);
  fuzz::takes([&] {
    auto const a = edl::net::parse_address(text);
    fuzz::require(edl::net::parse_address(edl::net::to_string(a)) == a, "what is written is read as it was");
    fuzz::require(a.peer.empty() || edl::net::is_identity(a.peer), "a peer is an identity");
  });
  if (edl::net::is_identity(text))
    fuzz::require(edl::net::answers_to(text, text), "a process answers to its own identity");
  return 0;
}

}  // namespace address_fuzz

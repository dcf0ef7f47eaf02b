// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace edl::net {

/// The identity of a process of a job: its role with its number, and a random number of this run. Both sides
/// of a connection put theirs into their proofs (docs/protocol.md, Handshake).
struct identity {
  std::string name = {};          ///< "master", "ps-1", "worker-0"; empty: a client that does not listen
  std::uint64_t incarnation = 0;  ///< 0: peers need not distinguish runs, as for a master

  friend bool operator==(identity const&, identity const&) = default;
};

/// "ps-1/00000000deadbeef"; without an incarnation the name alone.
std::string to_string(identity const& who);

/// Whether the process with the identity `self`, as text, is the one that a caller dialled. `wanted` is empty
/// (any process of the job), a name, or a name and incarnation.
bool answers_to(std::string_view self, std::string_view wanted);

/// Whether `text` is one of the above: at most 80 letters, digits, '-', '_' and '.', with at most one '/'
/// between them.
bool is_identity(std::string_view text);

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/security/identity.ipp"
#endif

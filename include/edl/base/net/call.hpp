// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "edl/core/span.hpp"

namespace edl::net {

/// A call to make. The caller owns the memory of `payload` and `into`. It is read and written in place, from
/// the start of the call until it returns or throws, and never after.
struct outgoing {
  std::uint16_t method = 0;
  std::string message = {};                     ///< a serialised protobuf message, at most 16 MiB
  std::vector<bytes> payload = {};              ///< sent one after the other
  std::vector<std::span<std::byte>> into = {};  ///< where the reply's payload goes; it must fill them exactly
  std::chrono::milliseconds timeout{30'000};    ///< for everything: connecting, retrying, waiting
  bool idempotent = false;                      ///< may be sent again if the peer was lost before it replied
  std::chrono::milliseconds patience{};         ///< how long to retry a lost peer; 0: for the timeout
};

/// For a peer that this caller has lost but others may still reach: before the caller reports it.
inline constexpr std::chrono::milliseconds some_patience{3'000};

/// The reply. Its payload is in `outgoing::into` already.
struct reply {
  std::string message;
};

}  // namespace edl::net

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

/// A call to make. The memory of `payload` and `into` is the caller's. It is read and written in place, from
/// the start of the call until it returns (also when it returns by throwing), and never after.
struct outgoing {
  std::uint16_t method = 0;
  std::string message = {};                     ///< a serialised protobuf message, at most 16 MiB
  std::vector<bytes> payload = {};              ///< sent one after the other
  std::vector<std::span<std::byte>> into = {};  ///< where the reply's payload goes; it must fill them exactly
  std::chrono::milliseconds timeout{30'000};    ///< for everything: connecting, repeating, waiting
  bool idempotent = false;               ///< may be sent again when the peer was lost before it replied
  std::chrono::milliseconds patience{};  ///< for how long a peer that is lost is tried; 0: for the timeout
};

/// For a peer that one caller has lost while others may still reach it: before the caller reports it.
inline constexpr std::chrono::milliseconds some_patience{3'000};

/// What came back. The payload is in `outgoing::into` already.
struct reply {
  std::string message;
};

}  // namespace edl::net

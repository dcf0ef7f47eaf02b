// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace edl::wire {

/// The methods of calls; each has the message `…Request` of edl.proto, and the reply `…Reply`. The numbers
/// are the protocol's and are never reused.
namespace method {

// To the master.
inline constexpr std::uint16_t join = 1, cluster = 2, heartbeat = 3, task = 4, report = 5, version = 6,
                               leave = 7, watch = 8, enter = 9, cut_off = 10, scale = 11, probe = 12;

// To a parameter server.
inline constexpr std::uint16_t pull = 32, push = 33, position = 34, configure = 35, claim = 36, release = 37,
                               commit = 38, checkpoint = 39, replicate = 40, compare = 41, pull_rows = 42,
                               copy_rows = 43, count_rows = 44, digest = 45;

// To another worker.
inline constexpr std::uint16_t copy = 64, kept = 65, follow = 66;

// To the launcher of a machine's processes.
inline constexpr std::uint16_t start_process = 96, stop_process = 97, process_events = 98;

// To either side, answered by the connection itself.
inline constexpr std::uint16_t ask = 112;

}  // namespace method

/// Largest payload of a `probe`, which measures the transfer rate to the master.
inline constexpr std::uint64_t most_probe_bytes = std::uint64_t{4} << 20;

}  // namespace edl::wire

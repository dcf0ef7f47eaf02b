// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "edl/job/net/channel.hpp"

namespace edl::app {

/// Bytes a second that are written to a new file of this directory, and forced to its disk; 0: they cannot
/// be. The best of three times: others may use the disk. No file stays. Thread safety: safe.
double disk_speed(std::string const& directory, std::size_t bytes = std::size_t(4) << 20);

/// Bytes a second that come to the master, likewise; 0: it takes none (`wire::method::probe`).
double network_speed(net::channel& master);

/// Waits for a turn to measure both: of all workers that begin one does at a time. False: it has not come.
bool may_measure(net::channel& master, std::chrono::milliseconds wait = std::chrono::seconds(5));

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/job/app/machine_speed.ipp"
#endif

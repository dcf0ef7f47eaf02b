// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "edl/base/net/channel.hpp"

namespace edl::app {

/// Bytes a second that are written to a new file of this directory, and forced to its disk; 0: they cannot
/// be. The best of three times: others may use the disk. No file stays. Thread safety: safe.
double disk_speed(std::string const& directory, std::size_t bytes = std::size_t(4) << 20);

/// The first of these directories that is on a disk, as far as the system tells, and not in memory; empty:
/// none is. Thread safety: safe.
std::string on_disk(std::vector<std::string> const& directories);

/// "this machine writes 90 MB/s to /tmp, and sends 120 MB/s to the master". What is 0 was not measured.
std::string speeds_in_words(double disk, std::string const& directory, double network);

/// Bytes a second that come to the master, likewise; 0: it takes none (`wire::method::probe`).
double network_speed(net::channel& master);

/// Waits for a turn to measure both: of all workers that begin one does at a time. False: it has not come.
bool may_measure(net::channel& master, std::chrono::milliseconds wait = std::chrono::seconds(5));

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/machine_speed.ipp"
#endif

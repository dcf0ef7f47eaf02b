// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "edl/base/net/channel.hpp"

namespace edl::app {

/// The rate of writing a new file in this directory and syncing it to disk, in bytes per second; 0: the
/// directory is not writable. The best of three attempts, because others may use the disk. Removes the file.
/// Thread safety: safe.
double disk_speed(std::string const& directory, std::size_t bytes = std::size_t(4) << 20);

/// The first of these directories that is on a disk and not in memory, according to the system; empty: none
/// is. Thread safety: safe.
std::string on_disk(std::vector<std::string> const& directories);

/// "this machine writes 90 MB/s to /tmp, and sends 120 MB/s to the master". A rate of 0 was not measured, and
/// is omitted.
std::string speeds_in_words(double disk, std::string const& directory, double network);

/// The rate of sending to the master, in bytes per second, likewise; 0: the master accepts no probe
/// (`wire::method::probe`).
double network_speed(net::channel& master);

/// Waits for this worker's turn to measure both: of all starting workers one measures at a time. False:
/// `wait` has passed.
bool may_measure(net::channel& master, std::chrono::milliseconds wait = std::chrono::seconds(5));

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/machine_speed.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "edl/core/error.hpp"
#include "edl/core/log.hpp"

namespace edl::app {

/// A fault of this machine, by a test of about 20 ms: products with known results, and a pattern written to
/// memory and read back. Empty: none found. Thread safety: safe.
std::string machine_fault(std::size_t memory_bytes = std::size_t(16) << 20);

/// Uncorrected memory errors that the system has counted since boot (`edac`: Linux's directory of counters).
/// They killed the process that used the memory, but others may use it now. Empty: none. Thread safety: safe.
std::string memory_errors(std::string const& edac = "/sys/devices/system/edac/mc");

/// A process must not take part on this machine: it exits with `platform::bad_machine`.
struct untrusted_machine : error {
  using error::error;
};

/// Checks this machine before a worker starts. `other_machines`: its successor may start elsewhere. For a
/// fault it then throws untrusted_machine, otherwise error. Without other machines, past memory errors are
/// only a warning.
void check_machine(bool other_machines, logger const& log,
                   std::string const& edac = "/sys/devices/system/edac/mc");

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/machine_check.ipp"
#endif

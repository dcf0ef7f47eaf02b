// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "edl/core/error.hpp"
#include "edl/core/log.hpp"

namespace edl::app {

/// What is wrong with this machine, as far as some 20 ms tell: products with a known answer, and a pattern
/// that is written to memory and read again. Empty: nothing. Thread safety: safe.
std::string machine_fault(std::size_t memory_bytes = std::size_t(16) << 20);

/// Uncorrected errors of memory that the system has counted since its start (`edac`: where Linux does). Who
/// had that memory has ended by them, and it may be in use again. Empty: none. Thread safety: safe.
std::string memory_errors(std::string const& edac = "/sys/devices/system/edac/mc");

/// A process is not to take part on this machine: it ends with `platform::bad_machine`.
struct untrusted_machine : error {
  using error::error;
};

/// Looks at this machine before a worker begins. `other_machines`: its successor may be started elsewhere.
/// Throws untrusted_machine there, and error for what is wrong where there are none; then past errors of
/// memory are a warning.
void check_machine(bool other_machines, logger const& log,
                   std::string const& edac = "/sys/devices/system/edac/mc");

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/machine_check.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace edl::app {

/// What is wrong with this machine, as far as some 20 ms tell: products with a known answer, a pattern that
/// is written to memory and read again, and uncorrected errors of its memory that the system has counted
/// (`edac`: where Linux does). Empty: nothing. Thread safety: safe.
std::string machine_fault(std::string const& edac = "/sys/devices/system/edac/mc",
                          std::size_t memory_bytes = std::size_t(16) << 20);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/job/app/machine_check.ipp"
#endif

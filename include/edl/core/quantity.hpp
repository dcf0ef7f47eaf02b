// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace edl {

/// Amounts as Kubernetes writes them: digits, perhaps with a point, and a unit. A unit may be one of n u m
/// k M G T P E (powers of 1000) or `Ki Mi Gi Ti Pi Ei` (of 1024). An exponent (1e3) may stand for it. Not
/// negative, at most 2^63 - 1, of which what is too fine is rounded up.
///
/// Thread safety: safe.

/// "1.5Gi" is 1610612736. Throws error that quotes the amount when it is none.
std::uint64_t bytes_of(std::string const& amount);

/// The same in thousandths, as processor time is counted: "0.2" is 200, "250m" is 250. What does not
/// fit is 2^64 - 1.
std::uint64_t thousandths_of(std::string const& amount);

/// Throws error when it is no amount of that resource. Of memory and of disks less than a mebibyte is none:
/// 512m (half a byte) and 4096 without a unit are slips.
void check_amount(std::string const& resource, std::string const& amount);

/// The shortest exact spelling in powers of 1024: "1536Mi".
std::string to_quantity(std::uint64_t bytes);

/// `times` the amount, and no more than `most` bytes; the amount as it is when it is at `most` already, or
/// above. Throws error when it is none.
std::string grown_quantity(std::string const& amount, std::uint32_t times,
                           std::uint64_t most = std::numeric_limits<std::int64_t>::max());

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/quantity.ipp"
#endif

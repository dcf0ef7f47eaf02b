// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace edl {

/// Amounts in Kubernetes' notation: digits, optionally with a point, and an optional unit: n u m k M G T P E
/// (powers of 1000), `Ki Mi Gi Ti Pi Ei` (powers of 1024), or an exponent (1e3) in its place. Amounts are not
/// negative, at most 2^63 - 1, and rounded up to the result's resolution.
///
/// Thread safety: safe.

/// "1.5Gi" is 1610612736. Throws error, which quotes the amount, if it is invalid.
std::uint64_t bytes_of(std::string const& amount);

/// The same in thousandths, the unit of processor time: "0.2" is 200, "250m" is 250. An amount that does not
/// fit gives 2^64 - 1.
std::uint64_t thousandths_of(std::string const& amount);

/// Throws error if this is not a valid amount of that resource. Memory and disks need at least a mebibyte:
/// 512m (half a byte) and 4096 without a unit are typing errors.
void check_amount(std::string const& resource, std::string const& amount);

/// The shortest exact spelling in powers of 1024: "1536Mi".
std::string to_quantity(std::uint64_t bytes);

/// `times` the amount, at most `most` bytes; the unchanged amount if it is already `most` or above. Throws
/// error if it is invalid.
std::string grown_quantity(std::string const& amount, std::uint32_t times,
                           std::uint64_t most = std::numeric_limits<std::int64_t>::max());

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/quantity.ipp"
#endif

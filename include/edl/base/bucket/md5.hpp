// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace edl::bucket::detail {

/// Files whose MD5 sums are computed at a time.
inline constexpr std::size_t md5_lanes = 16;

struct summed_file {
  int fd = -1;  ///< open for reading
  std::uint64_t size = 0;
  std::string sum = {};  ///< the result, hexadecimal; empty: the file cannot be read, or is shorter
};

/// Computes the MD5 sums (RFC 1321) of at most `md5_lanes` files at a time, several times as fast as one
/// after the other: a step of the sum waits for the one before, but not for those of other files. Up to three
/// are summed one after the other, which is faster.
void md5_of(std::span<summed_file> files);

}  // namespace edl::bucket::detail

#ifdef EDL_HEADER_ONLY
#include "edl/base/bucket/md5.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "edl/core/inline.hpp"

namespace edl::data::detail {

/// The polynomial of gzip and of layout `go`.
std::uint32_t crc32(std::string_view bytes, std::uint32_t before = 0);

/// The polynomial of Castagnoli: snappy's frames and layout `python`.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

// Unpacking bounds what it writes by `limit` and by what the packed bytes can hold, before it allocates. What
// cannot be unpacked is a data_error without the file's name.

/// Appends one piece in snappy's framing format (google/snappy, framing_format.txt), as Go's unbuffered
/// snappy.NewWriter does for one call of Write. Frames have at most 65,536 bytes, stored as they are where
/// packing gains less than an eighth. The stream identifier is written if `into` is empty.
void append_snappy_frames(std::string_view piece, std::string& into);

/// A whole stream, or some of its frames, without the identifier.
void unpack_snappy_frames(std::string_view packed, std::size_t limit, std::string& into);

/// A data frame and what it unpacks to. The others are passed over.
struct snappy_frame {
  std::string_view body;  // checksum, then the bytes
  std::size_t raw = 0;
  bool stored = false;
};

/// Takes the next data frame off `left`, which ends where `stream` does; false at its end.
bool take_snappy_frame(std::string_view stream, std::string_view& left, snappy_frame& frame);

/// Unpacks a frame to where there is room for its raw bytes, and compares the checksum.
void unpack_snappy_frame(snappy_frame const& frame, char* into);
void unpack_snappy_block(std::string_view packed, std::size_t limit, std::string& into);

/// A block of LZ4 without a frame (lz4/lz4, lz4_Block_format.md), which says its unpacked size elsewhere.
void unpack_lz4_block(std::string_view packed, std::size_t raw, std::string& into);

void pack_gzip(std::string_view raw, std::string& into);

/// One or more gzip members.
void unpack_gzip(std::string_view packed, std::size_t limit, std::string& into);

/// One or more frames of Zstandard (RFC 8878), with windows of 128 MiB at most.
void unpack_zstd(std::string_view packed, std::size_t limit, std::string& into);

/// A checksum as it is stored beside bytes that may hold checksums themselves: by framing_format.txt, section
/// 3, and by TFRecord.
constexpr std::uint32_t masked(std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xA282EAD8u; }

}  // namespace edl::data::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/compression.ipp"
#endif

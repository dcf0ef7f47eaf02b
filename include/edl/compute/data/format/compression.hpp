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

// Before they allocate, these functions bound their output by `limit` and by the largest output that the
// packed bytes can give. They throw data_error, without the file's name, for invalid data.

/// Appends one piece in snappy's framing format (google/snappy, framing_format.txt), as Go's unbuffered
/// snappy.NewWriter does for one call of Write. Frames have at most 65,536 bytes, stored uncompressed if
/// compression saves less than an eighth. The stream identifier is written if `into` is empty.
void append_snappy_frames(std::string_view piece, std::string& into);

/// Unpacks a whole stream, or some of its frames, without the identifier.
void unpack_snappy_frames(std::string_view packed, std::size_t limit, std::string& into);

/// A data frame and its unpacked size. Other frames are skipped.
struct snappy_frame {
  std::string_view body;  // checksum, then the bytes
  std::size_t raw = 0;
  bool stored = false;
};

/// Removes the next data frame from `left`, which ends where `stream` does; false at its end.
bool take_snappy_frame(std::string_view stream, std::string_view& left, snappy_frame& frame);

/// Unpacks a frame to `into`, which must have room for its raw bytes, and verifies the checksum.
void unpack_snappy_frame(snappy_frame const& frame, char* into);
void unpack_snappy_block(std::string_view packed, std::size_t limit, std::string& into);

/// Unpacks an LZ4 block without a frame (lz4/lz4, lz4_Block_format.md), whose unpacked size is stored
/// elsewhere.
void unpack_lz4_block(std::string_view packed, std::size_t raw, std::string& into);

void pack_gzip(std::string_view raw, std::string& into);

/// One or more gzip members.
void unpack_gzip(std::string_view packed, std::size_t limit, std::string& into);

/// One or more frames of Zstandard (RFC 8878), with windows of at most 128 MiB.
void unpack_zstd(std::string_view packed, std::size_t limit, std::string& into);

/// A checksum in the masked form that is stored beside bytes that may contain checksums themselves:
/// framing_format.txt, section 3, and TFRecord.
constexpr std::uint32_t masked(std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xA282EAD8u; }

}  // namespace edl::data::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/compression.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <lz4.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>
#if defined(__SSE4_2__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>

#include "edl/compute/data/format/compression.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::data::detail {

EDL_INLINE std::uint32_t crc32(std::string_view bytes, std::uint32_t before) {
  return std::uint32_t(::crc32_z(before, reinterpret_cast<unsigned char const*>(bytes.data()), bytes.size()));
}

#if defined(__SSE4_2__) || defined(__ARM_FEATURE_CRC32)
#ifdef __SSE4_2__
inline std::uint32_t add_word(std::uint32_t crc, std::uint64_t word) {
  return std::uint32_t(_mm_crc32_u64(crc, word));
}
inline std::uint32_t add_byte(std::uint32_t crc, char byte) {
  return _mm_crc32_u8(crc, static_cast<unsigned char>(byte));
}
#else
inline std::uint32_t add_word(std::uint32_t crc, std::uint64_t word) { return __crc32cd(crc, word); }
inline std::uint32_t add_byte(std::uint32_t crc, char byte) {
  return __crc32cb(crc, static_cast<unsigned char>(byte));
}
#endif

EDL_INLINE std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  char const* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    crc = add_word(crc, word);
  }
  for (; left > 0; ++at, --left) crc = add_byte(crc, *at);
  return ~crc;
}
#else
inline constexpr std::array<std::uint32_t, 256> crc32c_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
    table[i] = crc;
  }
  return table;
}();

EDL_INLINE std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  for (char c : bytes) crc = crc >> 8 ^ crc32c_table[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}
#endif

inline constexpr std::size_t snappy_frame_bytes = 65536;  // unpacked, at most, by the format
inline constexpr std::string_view snappy_identifier{"\xff\x06\x00\x00sNaPpY", 10};

EDL_INLINE void append_snappy_frames(std::string_view piece, std::string& into) {
  if (into.empty() && !piece.empty()) into.append(snappy_identifier);
  while (!piece.empty()) {
    auto const raw = piece.substr(0, snappy_frame_bytes);
    piece.remove_prefix(raw.size());
    std::size_t const start = into.size();
    into.resize(start + 8 + snappy::MaxCompressedLength(raw.size()));
    std::size_t size = 0;
    snappy::RawCompress(raw.data(), raw.size(), into.data() + start + 8, &size);
    bool const stored = size >= raw.size() - raw.size() / 8;
    if (stored) {
      std::memcpy(into.data() + start + 8, raw.data(), raw.size());
      size = raw.size();
    }
    into.resize(start + 8 + size);
    std::uint32_t const head = std::uint32_t(size + 4) << 8 | (stored ? 1u : 0u), sum = masked(crc32c(raw));
    std::memcpy(into.data() + start, &head, 4);
    std::memcpy(into.data() + start + 4, &sum, 4);
  }
}

EDL_INLINE bool take_snappy_frame(std::string_view stream, std::string_view& left, snappy_frame& frame) {
  while (!left.empty()) {
    auto const at = stream.size() - left.size();
    if (left.size() < 4) throw data_error(fmt::format("snappy frame at byte {} is cut off", at));
    std::uint32_t head;
    std::memcpy(&head, left.data(), 4);
    std::uint32_t const type = head & 0xFF;
    std::size_t const size = head >> 8;
    left.remove_prefix(4);
    if (size > left.size())
      throw data_error(fmt::format("snappy frame at byte {} claims {} bytes, but only {} are left", at, size,
                                   left.size()));
    frame.body = left.substr(0, size);
    left.remove_prefix(size);
    if (type == 0xFF && frame.body != snappy_identifier.substr(4))
      throw data_error(fmt::format("snappy stream identifier at byte {} is a wrong one", at));
    if (type >= 0x80) continue;  // the identifier, padding, or reserved, to be skipped
    if (type > 1) throw data_error(fmt::format("snappy frame at byte {} has the unknown type {}", at, type));
    if (size < 4) throw data_error(fmt::format("snappy frame at byte {} has no room for its checksum", at));
    frame.stored = type == 1;
    frame.raw = size - 4;
    if (!frame.stored && !snappy::GetUncompressedLength(frame.body.data() + 4, size - 4, &frame.raw))
      throw data_error(fmt::format("snappy frame at byte {} is malformed", at));
    if (frame.raw > snappy_frame_bytes)
      throw data_error(
          fmt::format("snappy frame at byte {} claims {} uncompressed bytes, at most {} are allowed", at,
                      frame.raw, snappy_frame_bytes));
    return true;
  }
  return false;
}

EDL_INLINE void unpack_snappy_frame(snappy_frame const& frame, char* into) {
  std::uint32_t sum;
  std::memcpy(&sum, frame.body.data(), 4);
  auto const packed = frame.body.substr(4);
  if (frame.stored)
    std::memcpy(into, packed.data(), packed.size());
  else if (!snappy::RawUncompress(packed.data(), packed.size(), into))
    throw data_error(fmt::format("snappy frame of {} bytes is malformed", packed.size()));
  if (auto const found = masked(crc32c({into, frame.raw})); found != sum)
    throw data_error(fmt::format("snappy frame of {} bytes has checksum {:#010x}, its bytes have {:#010x}",
                                 packed.size(), sum, found));
}

EDL_INLINE void unpack_snappy_frames(std::string_view packed, std::size_t limit, std::string& into) {
  into.clear();
  std::string_view left = packed;
  for (snappy_frame frame; take_snappy_frame(packed, left, frame);) {
    if (frame.raw > limit - into.size())
      throw data_error(fmt::format("unpacks to more than {} bytes", limit));
    std::size_t const start = into.size();
    into.resize(start + frame.raw);
    unpack_snappy_frame(frame, into.data() + start);
  }
}

EDL_INLINE void unpack_snappy_block(std::string_view packed, std::size_t limit, std::string& into) {
  std::size_t raw = 0;
  if (!snappy::GetUncompressedLength(packed.data(), packed.size(), &raw))
    throw data_error("snappy block is malformed");
  // Three packed bytes never expand to more than 64.
  if (raw > limit || raw > packed.size() * 32)
    throw data_error(
        fmt::format("snappy block of {} bytes claims {} uncompressed bytes", packed.size(), raw));
  into.resize(raw);
  if (!snappy::RawUncompress(packed.data(), packed.size(), into.data()))
    throw data_error("snappy block is malformed");
}

EDL_INLINE void unpack_lz4_block(std::string_view packed, std::size_t raw, std::string& into) {
  // A packed byte never expands to more than 255.
  if (packed.size() > LZ4_MAX_INPUT_SIZE || raw > LZ4_MAX_INPUT_SIZE || raw > packed.size() * 255)
    throw data_error(fmt::format("LZ4 block of {} bytes claims {} uncompressed bytes", packed.size(), raw));
  into.resize(raw);
  if (LZ4_decompress_safe(packed.data(), into.data(), int(packed.size()), int(raw)) != int(raw))
    throw data_error("LZ4 block is malformed");
}

/// Ends a zlib stream on every path.
struct zlib_stream {
  ::z_stream z{};
  int (*end)(::z_stream*) = nullptr;
  ~zlib_stream() {
    if (end) end(&z);
  }
};

inline constexpr int gzip_window = 15 + 16;  // zlib: the largest window, with a gzip header

EDL_INLINE void pack_gzip(std::string_view raw, std::string& into) {
  zlib_stream s;
  if (::deflateInit2(&s.z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw error("gzip: no memory");
  s.end = ::deflateEnd;
  into.resize(::deflateBound(&s.z, raw.size()));
  s.z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(raw.data()));
  s.z.avail_in = uInt(raw.size());
  s.z.next_out = reinterpret_cast<Bytef*>(into.data());
  s.z.avail_out = uInt(into.size());
  if (raw.size() > std::numeric_limits<uInt>::max() || into.size() > std::numeric_limits<uInt>::max() ||
      ::deflate(&s.z, Z_FINISH) != Z_STREAM_END)
    throw error(fmt::format("gzip: {} bytes are too many at once", raw.size()));
  into.resize(s.z.total_out);
}

/// The unpacked size that the end of the last member claims, modulo 2³² (RFC 1952, 2.3.1). It is used only as
/// an estimate: the buffer grows if the data is larger.
inline std::size_t claimed_gzip_size(std::string_view packed) {
  if (packed.size() < 18) return 0;  // no member is shorter
  std::uint32_t size;
  std::memcpy(&size, packed.data() + packed.size() - 4, 4);
  return std::min<std::size_t>(size, packed.size() * 16);
}

EDL_INLINE void unpack_gzip(std::string_view packed, std::size_t limit, std::string& into) {
  zlib_stream s;
  if (::inflateInit2(&s.z, gzip_window) != Z_OK) throw error("gzip: no memory");
  s.end = ::inflateEnd;
  into.clear();
  // One byte more than claimed, so that the call that writes the last byte also detects the end.
  into.resize(std::min(limit + 1, claimed_gzip_size(packed) + 1));
  std::size_t used = 0, made = 0;
  for (;;) {
    if (made == into.size()) {
      // Grows with the actual output, up to one byte beyond the limit, which detects data that is too large.
      into.resize(std::min(limit + 1, std::max<std::size_t>({into.size() * 2, packed.size() * 2, 4096})));
    }
    auto const in = std::min<std::size_t>(packed.size() - used, 1u << 30);
    auto const room = std::min<std::size_t>(into.size() - made, 1u << 30);
    s.z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + used));
    s.z.avail_in = uInt(in);
    s.z.next_out = reinterpret_cast<Bytef*>(into.data() + made);
    s.z.avail_out = uInt(room);
    int const state = ::inflate(&s.z, Z_NO_FLUSH);
    used += in - s.z.avail_in;
    made += room - s.z.avail_out;
    if (made > limit) throw data_error(fmt::format("unpacks to more than {} bytes", limit));
    if (state == Z_STREAM_END) {
      if (used == packed.size()) break;
      if (::inflateReset(&s.z) != Z_OK) throw error("gzip: no memory");
    } else if (state == Z_BUF_ERROR || (state == Z_OK && used == packed.size() && s.z.avail_out > 0)) {
      throw data_error(fmt::format("gzip stream is cut off after {} bytes", packed.size()));
    } else if (state != Z_OK) {
      throw data_error(fmt::format("gzip stream is damaged near byte {}: {}", used,
                                   s.z.msg ? s.z.msg : "no reason given"));
    }
  }
  into.resize(made);
}

EDL_INLINE void unpack_zstd(std::string_view packed, std::size_t limit, std::string& into) {
  std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> const stream(ZSTD_createDStream(),
                                                                          ZSTD_freeDStream);
  if (!stream) throw error("zstd: no memory");
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  into.clear();
  std::size_t made = 0, left = 1;  // of the frame; 0 at its end
  while (in.pos < in.size || left > 0) {
    if (made == into.size())
      into.resize(std::min(limit + 1, std::max<std::size_t>({into.size() * 2, packed.size() * 2, 4096})));
    ZSTD_outBuffer out{into.data(), into.size(), made};
    std::size_t const read = in.pos;
    left = ZSTD_decompressStream(stream.get(), &out, &in);
    if (ZSTD_isError(left))
      throw data_error(
          fmt::format("zstd stream is damaged near byte {}: {}", in.pos, ZSTD_getErrorName(left)));
    bool const stood = in.pos == read && out.pos == made;
    made = out.pos;
    if (made > limit) throw data_error(fmt::format("unpacks to more than {} bytes", limit));
    if (stood && in.pos == in.size && left > 0 && made < into.size())
      throw data_error(fmt::format("zstd stream is cut off after {} bytes", packed.size()));
  }
  into.resize(made);
}

}  // namespace edl::data::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/base/bucket/md5.hpp"
#include "edl/base/bucket/signature.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::bucket::detail {

/// A word of each lane.
using md5_words = std::uint32_t __attribute__((vector_size(4 * md5_lanes)));

/// The words A, B, C and D of the RFC.
using md5_state = std::array<md5_words, 4>;

inline constexpr std::array<std::uint32_t, 4> md5_start{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};

// T of the RFC: the whole parts of 2^32 |sin(i)|, i from 1 to 64.
using md5_sines = std::array<std::uint32_t, 64>;

template <int I>
[[gnu::always_inline]] inline void md5_step(md5_state& s, md5_words const (&block)[16],
                                            md5_sines const& sines) {
  constexpr int round = I / 16;
  constexpr int turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  constexpr int turn = turns[round][I % 4], word = (round == 0   ? I
                                                    : round == 1 ? 5 * I + 1
                                                    : round == 2 ? 3 * I + 5
                                                                 : 7 * I) %
                                                   16;
  md5_words &a = s[(64 - I) % 4], &b = s[(65 - I) % 4], &c = s[(66 - I) % 4], &d = s[(67 - I) % 4];
  if constexpr (round == 0)
    a += d ^ (b & (c ^ d));
  else if constexpr (round == 1)
    a += c ^ (d & (b ^ c));
  else if constexpr (round == 2)
    a += b ^ c ^ d;
  else
    a += c ^ (b | ~d);
  a += block[word] + sines[I];
  a = (a << turn | a >> (32 - turn)) + b;
}

/// Adds `blocks` blocks of 64 bytes to the sum of each lane.
inline void md5_add(md5_state& sums, std::array<char const*, md5_lanes> from, std::size_t blocks) {
  static md5_sines const sines = [] {
    md5_sines all;
    for (std::size_t i = 0; i < 64; ++i)
      all[i] = std::uint32_t(std::abs(std::sin(double(i + 1))) * 4294967296.0);
    return all;
  }();
  for (; blocks > 0; --blocks) {
    md5_words block[16];
    for (std::size_t w = 0; w < 16; ++w)
      for (std::size_t l = 0; l < md5_lanes; ++l) {
        std::uint32_t word;  // little-endian, as is all that edl runs on
        std::memcpy(&word, from[l] + 4 * w, 4);
        block[w][l] = word;
      }
    md5_state s = sums;
    [&]<int... I>(std::integer_sequence<int, I...>) {
      (md5_step<I>(s, block, sines), ...);
    }(std::make_integer_sequence<int, 64>());
    for (std::size_t i = 0; i < 4; ++i) sums[i] += s[i];
    for (char const*& at : from) at += 64;
  }
}

/// What is read of a file, in whole blocks.
struct md5_lane {
  static constexpr std::size_t chunk = 32 << 10;

  summed_file* of = nullptr;
  std::uint64_t at = 0;
  bool last = false;
  std::vector<char> bytes = std::vector<char>(chunk + 128);
  std::size_t begin = 0, end = 0;

  /// The next bytes, and the padding behind the last ones. False: they cannot be read.
  bool fill() {
    std::size_t const n = std::size_t(std::min<std::uint64_t>(chunk, of->size - at));
    for (end = 0; end < n;) {
      auto const got = ::pread(of->fd, bytes.data() + end, n - end, ::off_t(at + end));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      end += std::size_t(got);
    }
    begin = 0, at += n;
    last = n < chunk;
    if (!last) return true;
    std::size_t const whole = (end + 9 + 63) / 64 * 64;
    std::fill(bytes.begin() + std::ptrdiff_t(end), bytes.begin() + std::ptrdiff_t(whole), '\0');
    bytes[end] = char(0x80);
    std::uint64_t const bits = 8 * of->size;
    std::memcpy(bytes.data() + whole - 8, &bits, 8);
    end = whole;
    return true;
  }
};

/// Sums one file by OpenSSL, three times as fast as a lane. False: this system has no MD5 (FIPS).
inline bool md5_alone(summed_file& file) {
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> const sum(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!sum || EVP_DigestInit_ex(sum.get(), EVP_md5(), nullptr) != 1) return false;
  std::vector<char> some(128 << 10);  // stays in the processor's cache
  for (std::uint64_t at = 0; at < file.size;) {
    auto const n =
        ::pread(file.fd, some.data(), std::min<std::uint64_t>(some.size(), file.size - at), ::off_t(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    EVP_DigestUpdate(sum.get(), some.data(), std::size_t(n));
    at += std::uint64_t(n);
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> out;
  unsigned size = 0;
  EVP_DigestFinal_ex(sum.get(), out.data(), &size);
  file.sum = hexadecimal({reinterpret_cast<char const*>(out.data()), size});
  return true;
}

EDL_INLINE void md5_of(std::span<summed_file> files) {
  invariant(files.size() <= md5_lanes, "there is a lane for each file");
  if (files.size() <= 3 && std::ranges::all_of(files, md5_alone)) return;
  std::vector<md5_lane> lanes(files.size());
  md5_state sums;
  for (std::size_t i = 0; i < 4; ++i) sums[i] = md5_words{} + md5_start[i];
  for (std::size_t l = 0; l < files.size(); ++l) lanes[l].of = &files[l];
  for (;;) {
    std::array<char const*, md5_lanes> from{};
    std::size_t blocks = 0;
    char const* any = nullptr;
    for (std::size_t l = 0; l < lanes.size(); ++l) {
      md5_lane& lane = lanes[l];
      if (!lane.of) continue;
      if (lane.begin == lane.end && !lane.fill()) {
        lane.of = nullptr;
        continue;
      }
      from[l] = any = lane.bytes.data() + lane.begin;
      std::size_t const here = (lane.end - lane.begin) / 64;
      blocks = blocks == 0 ? here : std::min(blocks, here);
    }
    if (!any) return;
    for (char const*& at : from)  // lanes that are done add what nobody reads
      if (!at) at = any;
    md5_add(sums, from, blocks);
    for (std::size_t l = 0; l < lanes.size(); ++l) {
      md5_lane& lane = lanes[l];
      if (!lane.of) continue;
      lane.begin += 64 * blocks;
      if (lane.begin < lane.end || !lane.last) continue;
      std::string sum;
      for (md5_words const& words : sums)
        for (int shift = 0; shift < 32; shift += 8) sum += char(words[l] >> shift & 0xff);
      lane.of->sum = hexadecimal(sum);
      lane.of = nullptr;
    }
  }
}

}  // namespace edl::bucket::detail

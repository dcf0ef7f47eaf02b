// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cstring>
#include <utility>

#include "edl/base/bucket/signature.hpp"
#include "edl/base/bucket/sum_check.hpp"
#include "edl/compute/data/format/compression.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl::bucket {
namespace detail {

// CRC-64/NVME, eight bytes at a time (slicing-by-8): S3's sum of objects whose writer has sent none.
inline std::uint64_t crc64(std::string_view bytes, std::uint64_t before) {
  static auto const tables = [] {
    std::array<std::array<std::uint64_t, 256>, 8> t{};
    for (std::uint64_t i = 0; i < 256; ++i) {
      t[0][i] = i;
      for (int bit = 0; bit < 8; ++bit) t[0][i] = t[0][i] >> 1 ^ (t[0][i] & 1 ? 0x9a6c9329ac4bc9b5u : 0);
    }
    for (std::size_t k = 1; k < 8; ++k)
      for (std::size_t i = 0; i < 256; ++i) t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 0xff];
    return t;
  }();
  std::uint64_t crc = ~before;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t word;  // little-endian, as is all that edl runs on
    std::memcpy(&word, bytes.data(), 8);
    word ^= crc, crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= tables[7 - k][word >> 8 * k & 0xff];
  }
  for (char const c : bytes) crc = crc >> 8 ^ tables[0][(crc ^ std::uint64_t(c)) & 0xff];
  return ~crc;
}

}  // namespace detail

EDL_INLINE void sum_check::begin(http::response_parser const& head, std::string_view etag) {
  kind_ = kind::none, crc_ = 0;
  for (auto const& [of, field] : {std::pair{kind::sha256, "x-amz-checksum-sha256"},
                                  {kind::crc32c, "x-amz-checksum-crc32c"},
                                  {kind::crc32, "x-amz-checksum-crc32"},
                                  {kind::crc64, "x-amz-checksum-crc64nvme"}}) {
    auto const sum = head.field(field);
    if (kind_ == kind::none && !sum.empty() && sum.find('-') == sum.npos) kind_ = of, wanted_ = sum;
  }
  if (kind_ == kind::none && etag.size() == 34 &&
      etag.substr(1, 32).find_first_not_of("0123456789abcdef") == etag.npos)
    kind_ = kind::md5, wanted_ = etag.substr(1, 32);
  if (kind_ != kind::sha256 && kind_ != kind::md5) return;
  sum_ = {EVP_MD_CTX_new(), EVP_MD_CTX_free};
  auto const* const how = kind_ == kind::md5 ? EVP_md5() : EVP_sha256();  // a FIPS system has no MD5
  if (!sum_ || EVP_DigestInit_ex(sum_.get(), how, nullptr) != 1) kind_ = kind::none;
}

EDL_INLINE void sum_check::add(std::string_view part) {
  if (kind_ == kind::crc32c)
    crc_ = data::detail::crc32c(part, std::uint32_t(crc_));
  else if (kind_ == kind::crc32)
    crc_ = data::detail::crc32(part, std::uint32_t(crc_));
  else if (kind_ == kind::crc64)
    crc_ = detail::crc64(part, crc_);
  else if (kind_ != kind::none)
    EVP_DigestUpdate(sum_.get(), part.data(), part.size());
}

EDL_INLINE void sum_check::end(std::string const& what) {
  if (kind_ == kind::none) return;
  std::string got;
  if (kind_ == kind::sha256 || kind_ == kind::md5) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> out;
    unsigned size = 0;
    EVP_DigestFinal_ex(sum_.get(), out.data(), &size);
    got.assign(reinterpret_cast<char const*>(out.data()), size);
  } else {
    for (int shift = kind_ == kind::crc64 ? 56 : 24; shift >= 0; shift -= 8)
      got += char(crc_ >> shift & 0xff);
  }
  got = kind_ == kind::md5 ? hexadecimal(got) : base64(got);
  if (got == wanted_) return;
  if (kind_ == kind::md5)
    throw error(
        fmt::format("{}: the received bytes have the MD5 sum {}, but the object's ETag is {}: they were "
                    "damaged on their way, or the store encrypts the object with your key",
                    what, got, wanted_));
  throw error(
      fmt::format("{}: the received bytes have the {} {}, but the store sends {}: they were damaged "
                  "on their way, or in the store",
                  what,
                  kind_ == kind::sha256   ? "SHA-256"
                  : kind_ == kind::crc64  ? "CRC-64"
                  : kind_ == kind::crc32c ? "CRC-32C"
                                          : "CRC-32",
                  got, printable(wanted_, 100)));
}

}  // namespace edl::bucket

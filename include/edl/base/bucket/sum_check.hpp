// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "edl/base/http/parser.hpp"

struct evp_md_ctx_st;  // OpenSSL's

namespace edl::bucket {

/// Compares the bytes of an object that is read whole with the sum that a store sends with them: SHA-256,
/// CRC-32C, CRC-32 or CRC-64/NVME. Sums of parts, which contain a '-', are none. Thread safety: unsafe.
class sum_check {
 public:
  /// `etag`: may be an MD5 sum, which counts if the store sends no other sum.
  void begin(http::response_parser const& head, std::string_view etag = {});

  /// Whether there is a sum.
  bool compares() const { return kind_ != kind::none; }

  void add(std::string_view part);

  /// Throws error, which begins with `what`, if the bytes have another sum.
  void end(std::string const& what);

 private:
  enum class kind : std::uint8_t { none, sha256, crc32c, crc32, crc64, md5 } kind_ = kind::none;
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> sum_{nullptr, nullptr};
  std::uint64_t crc_ = 0;
  std::string wanted_;
};

}  // namespace edl::bucket

#ifdef EDL_HEADER_ONLY
#include "edl/base/bucket/sum_check.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/compression.hpp"

#include "fuzz.hpp"

namespace compression_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace edl::data::detail;
  constexpr std::size_t limit = 1 << 20;
  auto const packed = fuzz::text(data, size);
  std::string raw;
  if (fuzz::takes([&] { unpack_gzip(packed, limit, raw); }))
    fuzz::require(raw.size() <= limit, "gzip keeps to the limit");
  if (fuzz::takes([&] { unpack_zstd(packed, limit, raw); }))
    fuzz::require(raw.size() <= limit, "Zstandard keeps to the limit");
  if (fuzz::takes([&] { unpack_snappy_block(packed, limit, raw); }))
    fuzz::require(raw.size() <= limit, "a snappy block keeps to the limit");
  if (fuzz::takes([&] { unpack_lz4_block(packed, size * 3, raw); }))
    fuzz::require(raw.size() == size * 3, "LZ4 has the size that is said");
  if (fuzz::takes([&] { unpack_snappy_frames(packed, limit, raw); })) {
    fuzz::require(raw.size() <= limit, "snappy's frames keep to the limit");
    std::string again, back;
    append_snappy_frames(raw, again);
    unpack_snappy_frames(again, limit, back);
    fuzz::require(raw == back, "what is packed is unpacked as it was");
  }
  return 0;
}

}  // namespace compression_fuzz

// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/record_file.hpp"
#include "fuzz.hpp"

namespace tfrecord_fuzz {

namespace {

void read(std::string const& path) {
  fuzz::takes([&] {
    edl::data::tfrecord_source const source({path}, {.skip_damaged = true});
    if (source.shards().empty()) return;
    auto const reader = source.open();
    edl::example record;
    for (std::uint64_t i = 0; i < source.shards()[0].records; ++i)
      fuzz::takes([&] { reader->read(0, i, record); });
    fuzz::require(!fuzz::takes([&] { reader->read(0, source.shards()[0].records, record); }),
                  "a record behind the last is refused");
  });
}

/// The checksums that the bytes should have, as far as their lengths lead.
std::string summed(std::string bytes) {
  namespace detail = edl::data::detail;
  for (std::size_t at = 0; at + 16 <= bytes.size();) {
    std::uint64_t const size = fuzz::number_at(bytes, at) % 256;
    for (std::size_t i = 0; i < 8; ++i) bytes[at + i] = char(i == 0 ? size : 0);
    fuzz::put_number(bytes, at + 8, detail::masked(detail::crc32c(std::string_view(bytes).substr(at, 8))));
    if (at + 16 + size > bytes.size()) break;
    fuzz::put_number(bytes, at + 12 + size,
                     detail::masked(detail::crc32c(std::string_view(bytes).substr(at + 12, size))));
    at += 16 + size;
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::memory_file const file;
  std::string const bytes(fuzz::text(data, size));
  read(file.with(bytes));
  read(file.with(summed(bytes)));
  return 0;
}

}  // namespace tfrecord_fuzz

// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/record_file.hpp"
#include "fuzz.hpp"

namespace recordio_fuzz {

namespace {

void read(std::string const& path) {
  fuzz::takes([&] {
    auto const index =
        std::make_shared<edl::data::recordio_index const>(edl::data::index_recordio(path, true));
    edl::data::recordio_reader reader(index);
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(index->records, 64); ++i)
      fuzz::takes([&] { reader.read(i); });
  });
  fuzz::takes([&] { edl::data::index_recordio(path); });
}

/// With the checksums that its payloads have, as far as its headers can be followed.
std::string repaired(std::string bytes) {
  for (std::size_t at = 0; at + 20 <= bytes.size();) {
    bool const python = fuzz::number_at(bytes, at + 8) > 2;  // where layout `go` has its compressor
    std::size_t const claimed = fuzz::number_at(bytes, at + (python ? 16 : 12));
    auto const payload = std::string_view(bytes).substr(at + 20, claimed);
    if (python)
      fuzz::put_number(bytes, at + 8, edl::data::detail::crc32c(payload));
    else
      fuzz::put_number(bytes, at + 4, edl::data::detail::crc32(payload));
    at += 20 + claimed;
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::memory_file const file;
  std::string const bytes(fuzz::text(data, size));
  read(file.with(bytes));
  if (std::string const whole = repaired(bytes); whole != bytes) read(file.with(whole));
  return 0;
}

}  // namespace recordio_fuzz

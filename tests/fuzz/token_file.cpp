// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/token_file.hpp"

#include <string>

#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/example.hpp"
#include "fuzz.hpp"

namespace token_file_fuzz {

void read(std::string const& path) {
  fuzz::takes([&] {
    edl::data::token_source const source({path}, 2);
    auto const reader = source.open();
    edl::example record;
    std::uint64_t const records = source.shards()[0].records;
    for (std::uint64_t i = 0; i < records && i < 100; ++i)
      if (fuzz::takes([&] { reader->read(0, i, record); }))
        fuzz::require(record.integer_values("tokens").size() == 3, "a window has its length and one more");
    fuzz::require(!fuzz::takes([&] { reader->read(0, records, record); }),
                  "a window behind the last is refused");
  });
}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::memory_file const file;
  std::string bytes(fuzz::text(data, size));
  read(file.with(bytes));
  fuzz::put_number(bytes, 56, edl::data::detail::crc32(std::string_view(bytes).substr(0, 56)));
  read(file.with(bytes));
  return 0;
}

}  // namespace token_file_fuzz

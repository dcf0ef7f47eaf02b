// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/parquet.hpp"

#include <algorithm>

#include "edl/compute/data/format/example.hpp"
#include "fuzz.hpp"

namespace parquet_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::memory_file const file;
  fuzz::takes([&] {
    // Odd sizes keep hardly any page, so that rows are read anew.
    edl::data::parquet_source const source(file.with(fuzz::text(data, size)),
                                           {.cache_bytes = size % 2 == 0 ? std::size_t{1} << 20 : 0});
    auto const reader = source.open();
    edl::example row;
    std::uint64_t const records = source.shards()[0].records;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(records, 20); ++i)
      if (fuzz::takes([&] { reader->read(0, i, row); }))
        fuzz::require(row.size() <= source.columns().size(),
                      "a row has no more features than there are columns");
    if (records > 20) fuzz::takes([&] { reader->read(0, records - 1, row); });
    fuzz::require(!fuzz::takes([&] { reader->read(0, records, row); }), "a row behind the last is refused");
  });
  return 0;
}

}  // namespace parquet_fuzz

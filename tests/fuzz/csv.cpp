// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/table.hpp"
#include "fuzz.hpp"

namespace csv_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::memory_file const file;
  fuzz::takes([&] {
    edl::data::csv_source const source(file.with(fuzz::text(data, size)),
                                       {.delimiter = size % 4 == 0 ? ';' : ','});
    auto const reader = source.open();
    edl::example row;
    for (std::uint64_t i = 0; i < source.shards()[0].records; ++i)
      if (fuzz::takes([&] { reader->read(0, i, row); }))
        fuzz::require(row.size() <= source.columns().size(),
                      "a row has no more features than there are columns");
    fuzz::require(!fuzz::takes([&] { reader->read(0, source.shards()[0].records, row); }),
                  "a row behind the last is refused");
  });
  return 0;
}

}  // namespace csv_fuzz

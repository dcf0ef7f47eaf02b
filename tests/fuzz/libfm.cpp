// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/table.hpp"
#include "fuzz.hpp"

namespace libfm_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::memory_file const file;
  fuzz::takes([&] {
    edl::data::libfm_source const source(file.with(fuzz::text(data, size)));
    auto const reader = source.open();
    edl::example row;
    for (std::uint64_t i = 0; i < source.shards()[0].records; ++i)
      if (fuzz::takes([&] { reader->read(0, i, row); })) {
        fuzz::require(row.count("ids") == row.count("weights"), "each id has a weight");
        for (std::int64_t const id : row.integer_values("ids"))
          fuzz::require(id >= 0, "an id is not negative");
      }
    fuzz::require(!fuzz::takes([&] { reader->read(0, source.shards()[0].records, row); }),
                  "a row behind the last is refused");
  });
  return 0;
}

}  // namespace libfm_fuzz

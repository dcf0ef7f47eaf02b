// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "edl/compute/data/format/array_file.hpp"
#include "edl/compute/data/format/example.hpp"
#include "fuzz.hpp"

namespace numpy_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::memory_file const file;
  fuzz::takes([&] {
    edl::data::numpy_source const source({file.with(fuzz::text(data, size))});
    auto const reader = source.open();
    edl::example record;
    std::uint64_t const records = source.shards()[0].records;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(records, 100); ++i)
      fuzz::takes([&] { reader->read(0, i, record); });
    fuzz::require(!fuzz::takes([&] { reader->read(0, records, record); }),
                  "a record behind the last is refused");
  });
  return 0;
}

}  // namespace numpy_fuzz

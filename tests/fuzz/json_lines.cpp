// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/json_lines.hpp"

#include "fuzz.hpp"

namespace json_lines_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::memory_file const file;
  fuzz::takes([&] {
    edl::data::json_lines_source const source(file.with(fuzz::text(data, size)));
    auto const reader = source.open();
    edl::example row;
    for (std::uint64_t i = 0; i < source.shards()[0].records; ++i)
      if (fuzz::takes([&] { reader->read(0, i, row); }))
        for (auto const& column : source.columns())
          if (row.contains(column.name) && column.kind == edl::example::kind::integers)
            fuzz::require(row.integer_values(column.name).size() == row.count(column.name),
                          "a feature has one kind in all records");
    fuzz::require(!fuzz::takes([&] { reader->read(0, source.shards()[0].records, row); }),
                  "a line behind the last is refused");
  });
  return 0;
}

}  // namespace json_lines_fuzz

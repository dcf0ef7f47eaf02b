// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/web_dataset.hpp"

#include <algorithm>

#include "edl/compute/data/format/example.hpp"
#include "fuzz.hpp"

namespace web_dataset_fuzz {

/// With the checksums of all headers in their places.
void seal(std::string& archive) {
  for (std::size_t at = 0; at + 512 <= archive.size(); at += 512) {
    if (archive[at] == '\0') continue;
    unsigned sum = 8 * ' ';
    for (std::size_t i = 0; i < 512; ++i)
      if (i < 148 || i >= 156) sum += static_cast<unsigned char>(archive[at + i]);
    std::snprintf(&archive[at + 148], 8, "%06o", sum);
  }
}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::memory_file const file;
  std::string sealed(fuzz::text(data, size));
  seal(sealed);
  for (std::string_view const bytes : {fuzz::text(data, size), std::string_view(sealed)})
    fuzz::takes([&] {
      edl::data::web_dataset const source({file.with(bytes)});
      auto const reader = source.open();
      edl::example record;
      std::uint64_t const records = source.shards()[0].records;
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(records, 100); ++i)
        if (fuzz::takes([&] { reader->read(0, i, record); }))
          fuzz::require(record.count("__key__") == 1, "a record has its key");
      fuzz::require(!fuzz::takes([&] { reader->read(0, records, record); }),
                    "a record behind the last is refused");
    });
  return 0;
}

}  // namespace web_dataset_fuzz

// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/array_file.hpp"
#include "edl/compute/data/format/example.hpp"
#include "fuzz.hpp"

namespace cifar10_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::memory_file const file;
  // A record of 3,073 bytes is too long to grow: each byte of the input stands for 439 or 512 of the file.
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes.append(i % 2 ? 512 : 439, char(data[i]));
  if (size % 3 == 0) bytes = fuzz::text(data, size);
  fuzz::takes([&] {
    edl::data::cifar10_source const source({file.with(bytes)});
    auto const reader = source.open();
    edl::example record;
    for (std::uint64_t i = 0; i < source.shards()[0].records; ++i)
      if (fuzz::takes([&] { reader->read(0, i, record); }))
        fuzz::require(record.integer("label") < 10 && record.float_values("image").size() == 3072,
                      "a record is an image and one of ten labels");
  });
  return 0;
}

}  // namespace cifar10_fuzz

// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/array_file.hpp"
#include "edl/compute/data/format/example.hpp"
#include "fuzz.hpp"

namespace idx_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::memory_file const images, labels;
  auto const bytes = fuzz::text(data, size);
  std::string const path = images.with(bytes);
  fuzz::takes([&] {
    auto const values = edl::data::read_idx(path);
    std::uint64_t product = 1;
    for (std::uint32_t const extent : values.dims) product *= extent;
    fuzz::require(product == values.values.size(), "the extents' product is the number of values");
    // As many labels as there are images.
    std::uint32_t const n = values.dims[0];
    if (n > 4096) return;
    std::string other{0, 0, 8, 1, 0, 0, char(n >> 8), char(n)};
    other.append(n, '\3');
    edl::data::idx_source const source(path, labels.with(other));
    auto const reader = source.open();
    edl::example record;
    for (std::uint64_t i = 0; i < n; ++i) reader->read(0, i, record);
  });
  fuzz::takes([&] { edl::data::idx_source(path, path); });
  return 0;
}

}  // namespace idx_fuzz

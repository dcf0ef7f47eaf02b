// SPDX-License-Identifier: Apache-2.0
#include "edl/base/checkpoint/checkpoint.hpp"

#include <zlib.h>

#include "edl/base/checkpoint/model_file.hpp"
#include "edl/base/checkpoint/other_model.hpp"
#include "fuzz.hpp"

namespace checkpoint_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::memory_file const file;
  static edl::parameter_layout const layout{
      .variables = {{.name = "w", .dims = {2, 3}, .offset = 0}, {.name = "b", .dims = {2}, .offset = 6}},
      .parameters = 8,
      .state = 0};
  auto const bytes = fuzz::text(data, size);
  std::string const path = file.with(bytes);
  std::vector<float> variables(layout.size());
  fuzz::takes([&] {
    edl::checkpoint::other_model const from(path);
    auto const match = from.match(layout, {});
    fuzz::require(match.found.size() + match.missing.size() + match.other_shape.size() == 2,
                  "a variable is found, missing or of another shape");
    from.read(layout, {}, 0, variables);
  });
  fuzz::takes([&] { edl::checkpoint::model_version(path); });
  edl::checkpoint::manifest::file listed{
      .name = file.name(), .bytes = size, .crc32 = 0, .version = 1, .ledger = {}};
  listed.crc32 = std::uint32_t(::crc32_z(0, data, size));
  fuzz::takes([&] {
    auto const segments = edl::checkpoint::read_segments(fuzz::memory_file::directory(), listed);
    fuzz::require(!segments.empty(), "a part has a history");
    for (auto const& s : segments) fuzz::require(s.elements.first <= s.elements.last, "a segment is a range");
  });
  return 0;
}

}  // namespace checkpoint_fuzz

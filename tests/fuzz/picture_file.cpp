// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/picture.hpp"
#include "fuzz.hpp"

namespace picture_file_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static edl::data::pixels into;  // its storage is kept, as a reader keeps it
  if (fuzz::takes([&] { edl::data::decode_picture(fuzz::text(data, size), into); })) {
    fuzz::require(into.extents.channels == 1 || into.extents.channels == 3, "a picture has 1 or 3 channels");
    fuzz::require(into.extents.height > 0 && into.extents.width > 0, "a picture has places");
    fuzz::require(into.values.size() == into.extents.size(),
                  "a picture has a value for each place and channel");
  }
  return 0;
}

}  // namespace picture_file_fuzz

// SPDX-License-Identifier: Apache-2.0
#include "edl/core/quantity.hpp"

#include "fuzz.hpp"

namespace quantity_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string const amount(fuzz::text(data, size));
  fuzz::takes([&] {
    std::uint64_t const bytes = edl::bytes_of(amount);
    fuzz::require(edl::bytes_of(edl::to_quantity(bytes)) == bytes, "what is written is read as it was");
    fuzz::require(edl::thousandths_of(amount) / 1000 <= bytes, "bytes are rounded up");
    fuzz::require(edl::bytes_of(edl::grown_quantity(amount, 2)) >= bytes, "what grows does not shrink");
  });
  return 0;
}

}  // namespace quantity_fuzz

// SPDX-License-Identifier: Apache-2.0
#include "edl/base/wire/frame.hpp"

#include "fuzz.hpp"

namespace frame_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace edl::wire;
  if (size < frame_header_size) return 0;
  auto const bytes = std::as_bytes(std::span(data, size)).first<frame_header_size>();
  frame_limits const limits{.message = 1024, .payload = 4096};
  fuzz::takes([&] {
    frame_header const h = decode(bytes, limits);
    fuzz::require(h.message_size <= limits.message && h.payload_size <= limits.payload,
                  "sizes keep to the limits");
    fuzz::require(decode(encode(h), limits) == h, "what is sent is received as it was");
    fuzz::require(std::equal(bytes.begin(), bytes.end(), encode(h).begin()), "a header has one spelling");
  });
  return 0;
}

}  // namespace frame_fuzz

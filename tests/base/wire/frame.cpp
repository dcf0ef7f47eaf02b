// SPDX-License-Identifier: Apache-2.0
#include "edl/base/wire/frame.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "edl/core/error.hpp"
#include "edl/core/random.hpp"

namespace frame_test {

using namespace edl::wire;

namespace {

using head = std::array<std::byte, frame_header_size>;

std::string refusal(head const& h, frame_limits const& limits = {}) {
  try {
    decode(h, limits);
    return "";
  } catch (edl::error const& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("a header is laid out as the protocol says, and read back") {
  frame_header const h{.kind = frame_kind::request,
                       .method = 0x0201,
                       .call = 0x0807060504030201,
                       .deadline_ms = 0x14131211,
                       .message_size = 0x00232221,
                       .payload_size = 0x0000000235343332};
  head const bytes = encode(h);
  unsigned char const expected[] = {'E',  'D',  'L',  '1',  2,    1,    0x01, 0x02, 1,    2,    3,
                                    4,    5,    6,    7,    8,    0x11, 0x12, 0x13, 0x14, 0x21, 0x22,
                                    0x23, 0x00, 0x32, 0x33, 0x34, 0x35, 0x02, 0x00, 0x00, 0x00};
  CHECK(std::memcmp(bytes.data(), expected, sizeof expected) == 0);
  CHECK(decode(bytes) == h);
}

TEST_CASE("a payload starts at a multiple of 64, and padding stands only before one") {
  for (std::uint32_t message = 0; message < 200; ++message) {
    frame_header h{.message_size = message, .payload_size = 1};
    CHECK((frame_header_size + message + frame_padding(h)) % 64 == 0);
    CHECK(frame_padding(h) < 64);
    h.payload_size = 0;
    CHECK(frame_padding(h) == 0);
  }
}

TEST_CASE("what is no header is refused by the name of its fault") {
  head const good = encode({.kind = frame_kind::request, .message_size = 100, .payload_size = 1000});
  CHECK(refusal(good).empty());

  head bad = good;
  bad[0] = std::byte{'G'};
  CHECK(refusal(bad).find("another protocol") != std::string::npos);
  bad = good;
  bad[4] = std::byte{9};
  CHECK(refusal(bad).find("protocol version 9") != std::string::npos);
  for (int kind : {0, 8, 255}) {
    bad = good;
    bad[5] = std::byte(kind);
    CHECK(refusal(bad).find("unknown kind " + std::to_string(kind)) != std::string::npos);
  }
  CHECK(refusal(good, {.message = 99}).find("message of 100 bytes, at most 99") != std::string::npos);
  CHECK(refusal(good, {.message = 100, .payload = 999}).find("payload of 1000 bytes, at most 999") !=
        std::string::npos);
  CHECK(refusal(good, {.message = 100, .payload = 1000}).empty());
  CHECK(refusal(encode({.kind = frame_kind::failure, .payload_size = 1})).find("payload") !=
        std::string::npos);
  CHECK(refusal(encode({.kind = frame_kind::cancel, .message_size = 1})).find("cancel") != std::string::npos);
}

TEST_CASE("lengths at the ends of their range are bounded") {
  CHECK_FALSE(refusal(encode({.message_size = UINT32_MAX})).empty());
  CHECK_FALSE(refusal(encode({.payload_size = UINT64_MAX})).empty());
  CHECK_FALSE(refusal(encode({.message_size = (16u << 20) + 1})).empty());
  CHECK(refusal(encode({.message_size = 16u << 20})).empty());
}

TEST_CASE("whatever 32 bytes come, they are refused or read within the limits, and written the same again") {
  edl::random_stream const random{17};
  head const good = encode({.kind = frame_kind::response, .call = 7, .message_size = 50, .payload_size = 60});
  int taken = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    head h = good;
    auto const spoil = random.block(i);
    if (i % 3 == 0)
      for (std::size_t j = 0; j < h.size(); ++j) h[j] = std::byte(random.bits(1'000'000 + 32 * i + j));
    else
      h[spoil[0] % h.size()] = std::byte(spoil[1]), h[spoil[2] % h.size()] = std::byte(spoil[3]);
    frame_limits const limits{.message = 4096, .payload = 1u << 20};
    try {
      frame_header const d = decode(h, limits);
      ++taken;
      REQUIRE(d.message_size <= limits.message);
      REQUIRE(d.payload_size <= limits.payload);
      REQUIRE(encode(d) == h);
    } catch (edl::error const&) {
    }
  }
  CHECK(taken > 1000);  // or the loop tests nothing but refusals
}

}  // namespace frame_test

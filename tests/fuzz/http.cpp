// SPDX-License-Identifier: Apache-2.0
#include "edl/base/http/parser.hpp"
#include "fuzz.hpp"

namespace http_fuzz {

namespace {

/// What an answer says, fed in pieces of `step` bytes; empty: it is refused, or cut off.
std::string read(std::string_view bytes, std::size_t step) {
  edl::http::response_parser answer;
  std::string body;
  bool const taken = fuzz::takes([&] {
    while (!bytes.empty() && !answer.done()) {
      answer.feed(bytes.substr(0, step), [&](std::string_view part) {
        body.append(part);
        return true;
      });
      bytes.remove_prefix(std::min(step, bytes.size()));
    }
    answer.end();
  });
  if (!taken || !answer.done()) return {};
  fuzz::require(answer.code() >= 200 && answer.code() < 1000, "a final code has three digits");
  return std::to_string(answer.code()) + " " + body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const bytes = fuzz::text(data, size);
  std::string const whole = read(bytes, bytes.size() + 1), pieces = read(bytes, 1);
  fuzz::require(whole.empty() || pieces.empty() || whole == pieces, "it does not matter how bytes arrive");
  edl::http::percent_encoded(bytes);
  return 0;
}

}  // namespace http_fuzz

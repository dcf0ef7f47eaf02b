// SPDX-License-Identifier: Apache-2.0
#include "edl/base/http/parser.hpp"
#include "fuzz.hpp"

namespace http_fuzz {

namespace {

struct answer_read {
  bool done = false;
  std::string said;  ///< code and body, so far as it was neither cut off nor refused
};

/// What an answer says, fed in pieces of `step` bytes.
answer_read read(std::string_view bytes, std::size_t step) {
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
  if (!answer.headed()) return {};
  fuzz::require(answer.code() >= 200 && answer.code() < 1000, "a final code has three digits");
  return {taken && answer.done(), std::to_string(answer.code()) + " " + body};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const bytes = fuzz::text(data, size);
  auto const whole = read(bytes, bytes.size() + 1), pieces = read(bytes, 1);
  // Of an answer that is none, Beast finds out sooner or later by how its bytes arrive.
  fuzz::require(whole.said.starts_with(pieces.said) || pieces.said.starts_with(whole.said),
                "what is said does not depend on how bytes arrive");
  fuzz::require(!whole.done || !pieces.done || whole.said == pieces.said, "nor where it ends");
  edl::http::percent_encoded(bytes);
  return 0;
}

}  // namespace http_fuzz

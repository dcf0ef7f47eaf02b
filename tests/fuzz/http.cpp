// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/http.hpp"

#include "fuzz.hpp"

namespace http_fuzz {

namespace {

/// What an answer says, fed in pieces of `step` bytes.
std::string read(std::string_view bytes, std::size_t step) {
  edl::kubernetes::response answer;
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
  if (!taken) return "refused";
  fuzz::require(!answer.headed() || (answer.code() >= 100 && answer.code() < 1000),
                "a code has three digits");
  return std::to_string(answer.code()) + (answer.done() ? " done " : " cut ") + body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const bytes = fuzz::text(data, size);
  fuzz::require(read(bytes, bytes.size() + 1) == read(bytes, 1), "it does not matter how bytes arrive");
  edl::kubernetes::percent_encoded(bytes);
  return 0;
}

}  // namespace http_fuzz

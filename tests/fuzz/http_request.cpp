// SPDX-License-Identifier: Apache-2.0
#include "edl/base/http/parser.hpp"
#include "edl/base/http/router.hpp"
#include "fuzz.hpp"

namespace http_request_fuzz {

namespace {

/// What a request says, fed in pieces of `step` bytes; empty: it is refused, or cut off.
std::string read(std::string_view bytes, std::size_t step) {
  std::string said;
  fuzz::takes([&] {
    edl::http::request_parser parser(512, 64);
    std::string waiting;
    while (!bytes.empty() && !parser.done()) {
      waiting.append(bytes.substr(0, step));
      bytes.remove_prefix(std::min(step, bytes.size()));
      std::size_t const taken = parser.feed(waiting);
      fuzz::require(taken <= waiting.size(), "no more is taken than there is");
      waiting.erase(0, taken);
    }
    if (!parser.done()) return;
    auto const r = parser.take();
    fuzz::require(r.body.size() <= 64, "no body is longer than its limit");
    said = r.method + " " + r.path + " " + r.query + "\n" + r.body;
    edl::http::router(std::vector<edl::http::route>{{"GET", "/a/{}/b", {}}, {"GET", "/{}:c", {}}}).find(r);
    fuzz::takes([&] { r.parameter("a"); });
  });
  return said;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const bytes = fuzz::text(data, size);
  std::string const whole = read(bytes, bytes.size() + 1), pieces = read(bytes, 1);
  fuzz::require(whole.empty() || pieces.empty() || whole == pieces, "it does not matter how bytes arrive");
  return 0;
}

}  // namespace http_request_fuzz

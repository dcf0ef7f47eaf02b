// SPDX-License-Identifier: Apache-2.0
#include "edl/core/printable.hpp"

#include <nlohmann/json.hpp>

#include "edl/cluster/kubernetes/errors.hpp"
#include "fuzz.hpp"

namespace printable_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const text = fuzz::text(data, size);
  std::string const shown = edl::printable(text);
  for (char const c : shown)
    fuzz::require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "no control character is printed");
  fuzz::require(edl::printable(shown) == shown, "what is printable stays as it is");
  nlohmann::json(shown).dump();  // throws for what is no UTF-8
  std::string const cut = edl::kubernetes::one_line(text, 100);
  fuzz::require(cut.find('\n') == cut.npos && cut.size() <= 110, "one line is one line, and short");
  return 0;
}

}  // namespace printable_fuzz

// SPDX-License-Identifier: Apache-2.0
#include "edl/app/arguments.hpp"
#include "fuzz.hpp"

namespace flags_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::vector<std::string> line;
  for (auto rest = fuzz::text(data, size); !rest.empty();) {
    auto const end = std::min(rest.find('\n'), rest.size());
    line.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  fuzz::takes([&] { edl::app::parse("model", line); }, fuzz::author::user);
  return 0;
}

}  // namespace flags_fuzz

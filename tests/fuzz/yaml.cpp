// SPDX-License-Identifier: Apache-2.0
// needs: tools/edl/common/yaml.cpp
#include "common/yaml.hpp"

#include <nlohmann/json.hpp>

#include "fuzz.hpp"

namespace yaml_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace edl::tool;
  std::string const text(fuzz::text(data, size));
  fuzz::takes(
      [&] {
        auto const value = from_yaml(text, "--file=x");
        bool printable = true;
        for (char const c : value.dump()) printable = printable && static_cast<unsigned char>(c) < 0x7f;
        if (printable)
          fuzz::require(from_yaml(to_yaml(value), "again") == value, "what is written is read as it was");
      },
      fuzz::author::user);
  fuzz::takes(
      [&] {
        for (auto const& one : from_yaml_documents(text, "--file=x"))
          fuzz::require(!one.is_null(), "an empty document is none");
      },
      fuzz::author::user);
  return 0;
}

}  // namespace yaml_fuzz

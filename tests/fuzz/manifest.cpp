// SPDX-License-Identifier: Apache-2.0
#include "edl/base/checkpoint/manifest.hpp"

#include <zlib.h>

#include <nlohmann/json.hpp>

#include "fuzz.hpp"

namespace manifest_fuzz {

namespace {

void read(std::string_view text) {
  fuzz::takes([&] {
    auto const m = edl::checkpoint::manifest_from_json(text, "manifest.json");
    for (auto const& f : m.files)
      fuzz::require(!f.name.empty() && f.name.find('/') == f.name.npos && f.name[0] != '.',
                    "files lie in the manifest's directory");
    m.applied();
    auto const written = edl::checkpoint::to_json(m);
    fuzz::require(edl::checkpoint::to_json(edl::checkpoint::manifest_from_json(written, "again")) == written,
                  "what is written is read as it was");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const text = fuzz::text(data, size);
  read(text);
  auto content = nlohmann::json::parse(text, nullptr, false);
  if (content.is_object() && content.contains("checkpoint")) content = nlohmann::json(content["checkpoint"]);
  if (content.is_discarded()) return 0;
  std::string const inner = content.dump();
  auto const crc = ::crc32_z(0, reinterpret_cast<Bytef const*>(inner.data()), inner.size());
  read("{\"checkpoint\":" + inner + ",\"crc32\":" + std::to_string(crc) + "}");
  return 0;
}

}  // namespace manifest_fuzz

// SPDX-License-Identifier: Apache-2.0
// needs: EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/exec_plugin.hpp"
#include "fuzz.hpp"

namespace credential_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace edl::kubernetes;
  std::string const output(fuzz::text(data, size));
  exec_plugin plugin;
  plugin.version = "v1";
  plugin.command = "plugin";
  plugin.origin = "user 'x'";
  fuzz::takes([&] {
    auto const given = detail::parse_credential(plugin, output);
    fuzz::require(!given.token.empty() || !given.certificate.empty(), "a credential is not empty");
  });
  parse_time(output);
  return 0;
}

}  // namespace credential_fuzz

// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/access.hpp"
#include "fuzz.hpp"

namespace kubeconfig_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::memory_file const file;
  std::string const path = file.with(fuzz::text(data, size));
  fuzz::takes([&] { edl::kubernetes::from_kubeconfig(path); }, fuzz::author::user);
  fuzz::takes([&] { edl::kubernetes::from_kubeconfig(path, "other"); }, fuzz::author::user);
  return 0;
}

}  // namespace kubeconfig_fuzz

// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "edl/cluster/kubernetes/errors.hpp"
#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/cluster/kubernetes/pod_status.hpp"
#include "fuzz.hpp"

namespace kubernetes_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace edl::kubernetes;
  auto const text = fuzz::text(data, size);
  auto const refused = refusal(int(size % 600), text, "GET https://host/path", "the fuzzer");
  fuzz::takes([&] { throw refused; });
  auto const object = nlohmann::json::parse(text, nullptr, false);
  if (auto const pod = read_pod(object)) {
    trouble(*pod);
    hopeless(*pod);
    if (pod->over() || pod->terminating) ending_of(*pod);
  }
  number(object);
  first(object);
  return 0;
}

}  // namespace kubernetes_fuzz

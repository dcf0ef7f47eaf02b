// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/cluster_spec.hpp"

#include <nlohmann/json.hpp>

#include "edl/cluster/kubernetes/objects.hpp"
#include "fuzz.hpp"

namespace cluster_spec_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace edl::platform;
  using namespace edl::kubernetes;
  using edl::role;
  job_spec spec;
  spec.name = "j";
  spec.image = "i";
  spec.command = {"/m"};
  spec.cluster_spec = fuzz::text(data, size);
  fuzz::takes([&] {
    check_cluster_spec(spec.cluster_spec);
    auto const pod = member_pod(spec, {role::worker, 0}, 0, {}, {}, {"owner", "uid"});
    fuzz::require(pod["metadata"]["labels"]["elasticdl-job-name"] == "j", "a pod stays one of its job");
    master_pod(spec);
    master_service(spec);
  });
  return 0;
}

}  // namespace cluster_spec_fuzz

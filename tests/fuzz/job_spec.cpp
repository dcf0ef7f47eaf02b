// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/job_spec.hpp"

#include <nlohmann/json.hpp>

#include "edl/cluster/kubernetes/objects.hpp"
#include "fuzz.hpp"

namespace job_spec_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace edl::kubernetes;
  std::string const text(fuzz::text(data, size));
  fuzz::takes(
      [&] {
        auto const spec = job_from_json(text);
        fuzz::require(to_json(job_from_json(to_json(spec))) == to_json(spec),
                      "what is written is read as it was");
        check(spec);
        master_pod(spec);
        for (auto const what : {edl::role::server, edl::role::worker})
          member_pod(spec, {what, 1}, 1, {{"memory", "1Gi"}}, {}, {"owner", "uid"});
      },
      fuzz::author::user);
  fuzz::takes([&] { parse_resources("--worker_resource_request", text); }, fuzz::author::user);
  fuzz::takes([&] { parse_volumes(text); }, fuzz::author::user);
  fuzz::takes([&] { parse_environment("--envs", text); }, fuzz::author::user);
  fuzz::takes([&] { worker_priority(text, 1, 4); }, fuzz::author::user);
  return 0;
}

}  // namespace job_spec_fuzz

// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/training_job.hpp"

#include <nlohmann/json.hpp>

#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/core/json.hpp"
#include "fuzz.hpp"

namespace training_job_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace edl::kubernetes;
  fuzz::takes([&] {
    training_job const job = read_training_job(edl::parse_json(fuzz::text(data, size)));
    auto const& w = job.spec.workers;
    fuzz::require(w.min >= 1 && w.min <= w.max && w.max <= 10'000, "a job's bounds are in order");
    fuzz::require(!w.replicas || (*w.replicas >= w.min && *w.replicas <= w.max), "a fixed size is in them");
    fuzz::require(job.name.size() <= 40 && !job.spec.worker.empty() && !job.spec.master.empty(),
                  "a job has a name and templates");
    auto const written = status_json(job.status);
    fuzz::require(status_json(read_status(nlohmann::json::parse(written.dump()), "a/b")) == written,
                  "a status that is written is read as it was");
  });
  return 0;
}

}  // namespace training_job_fuzz

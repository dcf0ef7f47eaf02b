// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kueue/kueue.hpp"

#include <nlohmann/json.hpp>

#include "edl/core/json.hpp"
#include "fuzz.hpp"

namespace kueue_fuzz {

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace edl::kubernetes;
  auto const object = edl::parse_json(fuzz::text(data, size));
  auto const read = edl::kueue::read_workload(object);
  if (!read) return 0;
  training_job job{.space = "team", .name = "mnist", .uid = read->owner};
  job.labels[edl::kueue::queue_label] = "q";
  job.spec.master = job.spec.worker = R"({"spec":{"containers":[{"name":"main","image":"edl:mnist"}]}})";
  job.spec.workers = {2, 8};
  edl::kueue::pod_changes const flavor{.node_selector = {{"disk", "ssd"}}};
  for (std::uint32_t const pods : {0u, 4u})
    for (bool const elastic : {false, true}) {
      if (elastic) job.annotations[edl::kueue::elastic_annotation] = "true";
      edl::kueue::situation is{
          .job = job, .workloads = {&*read}, .pods = {pods, pods, true, 0, pods}, .wanted = 5};
      is.flavor = [&](std::string const&) { return &flavor; };
      auto const v = edl::kueue::judge(is);
      fuzz::require(v.may_run || !v.reason.empty(), "a job that is held knows why");
      fuzz::require(!v.most_workers || *v.most_workers >= 2, "a job has its least size or nothing");
      for (edl::kueue::api_write const& r : v.requests) {
        auto const body = nlohmann::json::parse(r.body);
        if (r.action == edl::kueue::api_write::verb::patch_status && pods > 0)
          fuzz::require(!body["status"].contains("admission"), "quota stays while there are pods");
      }
    }
  return 0;
}

}  // namespace kueue_fuzz

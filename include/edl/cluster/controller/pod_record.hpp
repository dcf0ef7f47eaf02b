// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "edl/base/platform/platform.hpp"
#include "edl/cluster/autoscaler/cluster_view.hpp"
#include "edl/cluster/autoscaler/label_set.hpp"
#include "edl/cluster/autoscaler/shared.hpp"
#include "edl/cluster/kubernetes/annotations.hpp"
#include "edl/cluster/kubernetes/job_size.hpp"
#include "edl/cluster/training_job/training_job_status.hpp"

namespace edl::controller {

/// Labels, annotations and names by which the objects of a TrainingJob are known.
inline constexpr char attempt_annotation[] = "elasticdl.org/attempt",
                      restart_annotation[] = "elasticdl.org/restart",
                      first_size_annotation[] = "elasticdl.org/workers",
                      recorded_finalizer[] = "elasticdl.org/recorded";
namespace annotation = kubernetes::annotation;  ///< by which it speaks with a job's master

/// What a master tells of its job in `elasticdl/report`.
struct job_report {
  std::uint64_t records = 0, total_records = 0;  ///< `total_records` 0: without an end
  std::uint32_t epoch = 0, epochs = 0;
  std::uint64_t version = 0;
  double records_per_s = 0;
  std::uint32_t workers = 0;
  std::optional<double> seconds_left{};
  std::vector<speed_record> speeds{};    ///< at most 32
  std::optional<double> standstill_s{};  ///< of the last change of its size
  friend bool operator==(job_report const&, job_report const&) = default;
};

/// Nothing where the text is no report: a number is missing, below 0 or not finite counts as not said.
std::optional<job_report> read_report(std::string const& text);

/// What matters of a master's pod besides.
struct master_state {
  std::uint32_t attempt = 1, restart = 0;
  std::uint32_t first_size = 0;  ///< workers that it was made for
  std::string requested_size{},
      leave{};                ///< a size, and who shall leave first, that the master has not answered yet
  bool suspending = false;    ///< it has been told to
  std::string short_nodes{};  ///< what it has been told of the nodes where its workers run
  std::string scaled{};       ///< its answer to the last size request
  std::optional<kubernetes::job_size> size{};  ///< that it says the job is to have
  std::optional<job_report> report{};
  bool started = false, ready = false;  ///< its container has run; it listens
  platform::ending ending{};            ///< when the pod is over
  std::string waits{};                  ///< what it says that it waits for
  std::string missing{};                ///< a pod that it needs and is refused, and why
  std::uint32_t crashes = 0;            ///< its kubelet has started it so often in its pod; it crashed last
};

/// A pod, as small as it can be kept. Thread safety: as a value.
struct pod_record {
  enum class phase : std::uint8_t { pending, running, over };

  std::string key, uid, version;  ///< `key`: "namespace/name"; `version`: its resourceVersion
  std::string node{}, nominated{};
  shared<pod_shape> shape{};
  label_set labels{};   ///< by which others' affinities select it
  std::string owner{};  ///< uid of the TrainingJob that it belongs to
  process_id who{};     ///< of that job
  phase at = phase::pending;
  int priority = 0;
  bool leaving = false;   ///< it is being deleted
  bool outlived = false;  ///< it is over, but another container of the pod still runs and keeps its room
  bool wants_room = false;
  bool held = false;       ///< by the finalizer `recorded_finalizer`
  double leave_by = 0;     ///< when it should have gone at the latest; seconds since 1970
  std::string hopeless{};  ///< why it can never start, in the kubelet's one word; empty: it may
  std::string trouble{};   ///< why it does not run, in words
  std::unique_ptr<master_state> master{};  ///< of a job's master

  std::string name() const { return key.substr(key.find('/') + 1); }
  std::string space() const { return key.substr(0, key.find('/')); }
};

/// The record of a Pod, without its shape. What is absent or of another type than the API promises is as if
/// empty. Thread safety: safe.
pod_record read_record(nlohmann::json const& pod);

/// Whether the autoscaler, or what follows from them for a job, is the same by both.
bool same_for_plan(pod_record const& a, pod_record const& b);
bool same_for_job(pod_record const& a, pod_record const& b);

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/pod_record.ipp"
#endif

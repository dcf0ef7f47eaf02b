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
#include "edl/cluster/kubernetes/training_job_status.hpp"

namespace edl::controller {

/// Labels, annotations and names that identify the objects of a TrainingJob.
inline constexpr char attempt_annotation[] = "elasticdl.org/attempt",
                      restart_annotation[] = "elasticdl.org/restart",
                      first_size_annotation[] = "elasticdl.org/workers",
                      recorded_finalizer[] = "elasticdl.org/recorded";
namespace annotation = kubernetes::annotation;  ///< annotations exchanged with a job's master

/// A master's report about its job, from the annotation `elasticdl/report`.
struct job_report {
  std::uint64_t records = 0, total_records = 0;  ///< `total_records` 0: endless
  std::uint32_t epoch = 0, epochs = 0;
  std::uint64_t version = 0;
  double records_per_s = 0;
  std::uint32_t workers = 0;
  std::optional<double> seconds_left{};
  std::vector<kubernetes::speed_record> speeds{};  ///< at most 32
  std::optional<double> standstill_s{};            ///< of the last change of its size
  friend bool operator==(job_report const&, job_report const&) = default;
};

/// Returns nothing if the text is not a report. A number that is absent, negative or not finite counts as
/// absent.
std::optional<job_report> read_report(std::string const& text);

/// The additional state of a master's pod.
struct master_state {
  std::uint32_t attempt = 1, restart = 0;
  std::uint32_t first_size = 0;  ///< number of workers with which it was created
  std::string requested_size{},
      leave{};                ///< a requested size, and the workers to remove first, not answered yet
  bool suspending = false;    ///< whether it has been asked to suspend the job
  std::string pool{};         ///< the pool of nodes that it was last told of (annotation::pool)
  std::string short_nodes{};  ///< the pressure on its workers' nodes that it was last notified of
  std::string scaled{};       ///< its reply to the last size request
  std::optional<kubernetes::job_size> size{};  ///< the size that it aims at
  std::optional<job_report> report{};
  bool started = false, ready = false;  ///< `started`: its container has run; `ready`: it accepts connections
  platform::ending ending{};            ///< valid when the pod is over
  std::string waits{};                  ///< what it reports to be waiting for
  std::string leaving_nodes{};          ///< nodes that are about to go, as "n1,n2"
  std::string missing{};                ///< a pod that the API server refuses to it, and why
  std::uint32_t crashes = 0;            ///< restarts in place by its kubelet, if its last run crashed
};

/// A compact record of a Pod. Thread safety: as a value.
struct pod_record {
  enum class phase : std::uint8_t { pending, running, over };

  std::string key, uid, version;  ///< `key`: "namespace/name"; `version`: its resourceVersion
  std::string node{}, nominated{};
  std::string pool{};  ///< annotation::pool
  autoscaler::shared<autoscaler::pod_shape> shape{};
  autoscaler::label_set labels{};  ///< matched by other pods' affinities
  std::string owner{};             ///< uid of the TrainingJob to which it belongs
  process_id who{};                ///< its identity within that job
  phase at = phase::pending;
  int priority = 0;
  bool leaving = false;   ///< it is being deleted
  bool outlived = false;  ///< it is over, but another container of it runs and uses its resources
  bool wants_room = false;
  bool held = false;                       ///< by the finalizer `recorded_finalizer`
  double leave_by = 0;                     ///< deadline of its deletion; seconds since 1970
  std::string hopeless{};                  ///< the kubelet's reason why it can never start; empty: it may
  std::string trouble{};                   ///< why it does not run, as a sentence
  std::unique_ptr<master_state> master{};  ///< null unless it is a job's master

  std::string name() const { return key.substr(key.find('/') + 1); }
  std::string space() const { return key.substr(0, key.find('/')); }
};

/// Reads a Pod, without its shape. Treats a field that is absent, or that has another type than the API
/// promises, as empty. Thread safety: safe.
pod_record read_record(nlohmann::json const& pod);

/// Whether both records look the same to the autoscaler and to the reconciliation of their job.
bool same_for_plan(pod_record const& a, pod_record const& b);
bool same_for_job(pod_record const& a, pod_record const& b);

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/pod_record.ipp"
#endif

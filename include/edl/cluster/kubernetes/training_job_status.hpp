// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace edl::kubernetes {

/// The `status` of a TrainingJob, which only the controller writes. Times are RFC 3339 texts in UTC, as the
/// API server writes them; empty: not known.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.

/// The types of a TrainingJob's conditions.
namespace condition_type {
inline constexpr std::string_view admitted = "Admitted", running = "Running", resizing = "Resizing",
                                  suspended = "Suspended", succeeded = "Succeeded", failed = "Failed",
                                  reconciling = "Reconciling", stalled = "Stalled";
}  // namespace condition_type

enum class truth { no, yes, unknown };

struct condition {
  std::string type;
  truth status = truth::unknown;
  std::string reason, message;  ///< a word in CamelCase; a sentence for a person
  std::string last_transition_time{};
  std::int64_t observed_generation = 0;
  friend bool operator==(condition const&, condition const&) = default;
};

/// Pods of one role. `desired`: the requested number.
struct role_counts {
  std::uint32_t desired = 0, running = 0, pending = 0;
  friend bool operator==(role_counts const&, role_counts const&) = default;
};

/// The master's last report.
struct job_progress {
  std::uint64_t records = 0, total_records = 0;  ///< `total_records` 0: no known end
  std::uint32_t epoch = 0, epochs = 0;
  std::uint64_t version = 0, records_per_second = 0;
  std::string estimated_end{}, observed_time{};
  friend bool operator==(job_progress const&, job_progress const&) = default;
};

struct speed_record {
  std::uint32_t workers = 0;
  double records_per_second = 0;
  friend bool operator==(speed_record const&, speed_record const&) = default;
};

struct scale_record {
  std::string time;
  std::uint32_t from = 0, to = 0;
  std::string reason;
  friend bool operator==(scale_record const&, scale_record const&) = default;
};

/// What was seen of a pool of nodes (`autoscaler::spot_sightings`).
struct pool_sightings {
  std::string name;
  truth up = truth::unknown;
  double up_hours = 0, down_hours = 0;
  std::uint32_t losses = 0, returns = 0;
  std::string observed_time{};
  friend bool operator==(pool_sightings const&, pool_sightings const&) = default;
};

/// Where the workers of a job with `spec.spot` are to run, and what they have cost.
struct spot_status {
  std::string pool{};  ///< of `spec.spot`, or "on-demand", or "none": it waits; empty: not decided yet
  std::string reason{}, time{};  ///< why, and since when
  double usd = 0;                ///< for running workers, until `counted_time`
  std::string counted_time{};    ///< empty while none run
  double start_seconds = 0;      ///< between a worker's node and its start, at the last choice; 0: unknown
  std::vector<pool_sightings> pools{};
  friend bool operator==(spot_status const&, spot_status const&) = default;
};

struct training_job_status {
  std::int64_t observed_generation = 0;
  std::vector<condition> conditions{};  ///< at most one of each type
  std::uint32_t attempts = 0, restarts = 0;
  std::string start_time{}, completion_time{};
  std::uint32_t replicas = 0;  ///< running worker pods
  std::string selector{};      ///< of the worker pods
  role_counts master{}, servers{}, workers{};
  job_progress progress{};
  std::vector<speed_record> speeds{};
  std::vector<scale_record> scale_records{};  ///< newest first
  std::uint64_t active_seconds = 0;           ///< counted against the deadline
  spot_status spot{};
  friend bool operator==(training_job_status const&, training_job_status const&) = default;
};

inline constexpr std::size_t most_speeds = 32, most_scale_records = 10, most_sighted_pools = 32;

/// The condition of that type; null: none. The pointer is valid until the list changes.
condition const* find_condition(training_job_status const& status, std::string_view type);

/// Whether the condition of that type exists and is true.
bool is_true(training_job_status const& status, std::string_view type);

/// Replaces or adds the condition of that type. Keeps `lastTransitionTime` if the status is unchanged. Cuts
/// the message to the 32,768 bytes that the resource allows. Returns whether anything but the observed
/// generation has changed.
bool set_condition(training_job_status& status, condition next);

/// Adds a record at the front and drops the oldest beyond `most_scale_records`.
void add_scale_record(training_job_status& status, scale_record next);

/// A one-word summary of the conditions: pending, creating, running, scaling, suspended, succeeded or failed.
std::string phase_of(training_job_status const& status);

/// The JSON of `status` and its phase. Omits empty fields, so the result has to replace the stored status: a
/// merge patch would keep old fields. Cuts lists to the lengths that the resource allows, and replaces bytes
/// that are not UTF-8, so that dumping it cannot fail.
nlohmann::json status_json(training_job_status const& status);

/// Reads what `status_json` wrote; ignores unknown fields and the phase. Throws error, with `whose`
/// ("team/mnist") and the field, if a field's value is not valid in a status.
training_job_status read_status(nlohmann::json const& value, std::string const& whose);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/training_job_status.ipp"
#endif

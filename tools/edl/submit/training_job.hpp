// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/command_line.hpp"
#include "submit/submission.hpp"

namespace edl::tool {

/// What a TrainingJob says that no flag of `edl train` does.
struct training_job_options {
  std::uint32_t min = 1, max = 2;
  std::optional<std::uint32_t> workers;  ///< a fixed size; nothing: the autoscaler decides
  bool suspended = false, changing_batch = false;
  std::optional<std::int64_t> deadline, ttl;  ///< seconds
  std::optional<std::int64_t> backoff_limit;
  nlohmann::json labels = nlohmann::json::object(), annotations = nlohmann::json::object();
};

/// What `edl submit` and `edl convert` know beside the flags of `edl train`: --min_workers, --suspend, ….
std::vector<flag> training_job_flags();

/// The flags of a job as a TrainingJob: both kinds.
std::vector<flag> training_job_flags(std::string const& command);

/// A command line with both kinds of flags, and the files that it names, taken apart.
struct training_job_line {
  tool::submission submission;
  training_job_options options;
};

/// `command`: train, evaluate or predict. `line` may name a file of flags, no manifest. Throws usage_error.
training_job_line read_training_job_line(std::string const& command, words const& line,
                                         std::string const& stamp);

/// The object, as `edl submit` sends and `edl convert` prints it. Throws usage_error where the flags ask for
/// what a TrainingJob has no place for.
nlohmann::json training_job_of(submission const& s, training_job_options const& o);

inline constexpr char const* training_job_version = "elasticdl.org/v1alpha1";

/// Whether a document is a TrainingJob of edl, of whatever version.
bool is_training_job(nlohmann::json const& document);

}  // namespace edl::tool

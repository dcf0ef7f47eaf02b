// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cluster/events.hpp"
#include "cluster/training_jobs.hpp"
#include "common/command_line.hpp"
#include "edl/cluster/kubernetes/training_job.hpp"

namespace edl::tool {

/// What there is to say of a job: how it is now, and how it came to that, each a line.
struct explanation {
  struct entry {
    std::string when, who, text;  ///< `when`: as the server wrote it; empty: now
  };
  std::vector<entry> now, before;
};

nlohmann::json to_json(std::vector<explanation::entry> const& list);

/// In words, from the job's pods and the events of all that it ever had. `everything`: also what is usual,
/// such as a pod that started. `job`: as of `advise`.
explanation explain_pods(std::string const& job, nlohmann::json const& pods,
                         std::vector<happening> const& events, bool everything = false);

/// Takes away what the status of a TrainingJob tells again: each of its last resizes.
void erase_resizes(std::vector<happening>& events, edl::kubernetes::training_job const& job);

/// What a TrainingJob itself has to say, added to what its pods tell: why it waits, and who changed its size.
/// `named`: as `cluster::named`.
void explain_training_job(live_job const& of, std::string const& named, explanation& to);

/// What a pod waits for whose own status does not say it: the last that was said of it.
std::string waits_for(nlohmann::json const& pod, std::vector<happening> const& events,
                      std::string const& job);

/// `edl explain`.
int explain(words const& line);
std::vector<flag> explain_flags();

}  // namespace edl::tool

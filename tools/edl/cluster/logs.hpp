// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cluster/cluster.hpp"

namespace edl::tool {

/// Which logs, and how much of them.
struct log_options {
  std::string role;                    ///< "master", "ps", "worker"; empty: all
  std::optional<std::uint32_t> index;  ///< of the role
  std::optional<std::int64_t> tail;    ///< only so many last lines of each pod
  bool prefix = true;                  ///< each line begins with who wrote it
};

/// Prints what the pods of a job have logged, pod by pod.
void print_logs(cluster& c, std::string const& job, log_options const& o);

/// Prints it as it comes, of pods that there are and of those that come, until the job has ended. An API
/// server that goes away does not end it: it goes on after the last line.
void follow_logs(cluster& c, std::string const& job, log_options const& o);

/// Why a job's master ended, on one line: the cluster's reason, the exit code, and the last words of its log.
std::string last_words(cluster& c, nlohmann::json const& master);

/// Waits until the job has ended, a TrainingJob or a plain one; `done` or `failed`, and says so.
int end_of(cluster& c, std::string const& job);

/// `edl logs`.
int logs(words const& line);
std::vector<flag> logs_flags();

/// Whether to colour what is printed: a terminal, and no NO_COLOR.
bool colourful();

}  // namespace edl::tool

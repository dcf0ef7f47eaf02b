// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/command_line.hpp"
#include "edl/cluster/kubernetes/client.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "submit/submission.hpp"

namespace edl::tool {

/// Makes a plain job of what was read, and follows it as its command line says.
int submit_plain(submission s);

/// The objects of a job in the order in which they are made: secret, service, master's pod.
nlohmann::json objects_of(kubernetes::job_spec const& spec, std::string const& token,
                          bool restart_rules = true);

/// 20261120103900: the tag of an image that is built now.
std::string stamp();

/// Adds labels and annotations to an object.
void mark(nlohmann::json& object, std::map<std::string, std::string> const& labels,
          std::map<std::string, std::string> const& annotations);

/// Builds and pushes the image of a submission that has a `build`, as `edl zoo init`, `build` and `push` do
/// it, in this folder. Throws error.
void build_image(submission const& s);

struct submission_options {
  std::function<void(std::string const&)> note;  ///< is told what had to be done differently
  bool try_only = false;                         ///< the server checks the objects and makes nothing
  std::chrono::seconds timeout{
      0};               ///< with a job of that name that is being removed, before it counts as there
  std::string reach{};  ///< as `cluster::reach`
  std::map<std::string, std::string> labels{}, annotations{};  ///< of all objects, beside a job's own
};

/// Makes the objects of a job; what was made is removed when the rest cannot be. Returns the master's pod.
/// Throws api_error, unreachable.
nlohmann::json create_job(kubernetes::client& api, kubernetes::job_spec const& spec, std::string const& token,
                          submission_options const& with);

}  // namespace edl::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "edl/cluster/kubernetes/cluster_spec.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/cluster/kubernetes/names.hpp"
#include "edl/cluster/kubernetes/pod_template.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/quantity.hpp"

namespace edl::kubernetes {
namespace detail::spec_check {

inline constexpr std::uint32_t longest_grace = 86'400;  // seconds

inline void need(bool good, std::string const& flag, std::string const& value, std::string const& expected) {
  if (good) return;
  std::string shown = value;
  std::replace_if(shown.begin(), shown.end(), [](char c) { return c >= 0 && c < ' '; }, '?');
  throw usage_error(fmt::format("--{}={}: {}", flag, shown, expected));
}

inline void one_of(std::string const& flag, std::string const& value,
                   std::initializer_list<char const*> all) {
  need(std::find(all.begin(), all.end(), value) != all.end(), flag, value,
       fmt::format("expected {}", fmt::join(all, " or ")));
}

inline void image(std::string const& flag, std::string const& name) {
  need(name.find_first_of(" \t\n") == std::string::npos, flag, name, "an image's name has no spaces");
  need(name.size() <= 1024, flag, shortened(name, 64) + "…", "an image's name has at most 1024 characters");
}

inline void check_role(std::string const& what, role_spec const& r) {
  for (auto const& [name, amount] : limit_of(r.request, r.limit)) {
    auto const requested = r.request.find(name);
    if (requested == r.request.end()) continue;
    bool const less = thousandths_of(amount) < thousandths_of(requested->second);
    bool const other = thousandths_of(amount) != thousandths_of(requested->second);
    if (less || (other && name.find('/') != std::string::npos))
      throw usage_error(
          fmt::format("--{0}_resource_limit: {1}={2} is {3} {4} of --{0}_resource_request: make them {5}",
                      what, name, amount, less ? "less than the" : "not the", requested->second,
                      less ? "equal, or the limit greater" : "equal"));
  }
  if (what != "worker" && !r.priority.empty())
    need(is_subdomain(r.priority), what + "_pod_priority", r.priority,
         "expected the name of a priority class: lower case letters, digits, '-' and '.'");
}

}  // namespace detail::spec_check

EDL_INLINE void check(job_spec const& s) {
  using namespace detail::spec_check;
  if (s.name.empty())
    throw usage_error("--job_name is missing: give the job a name, as --job_name=test-mnist");
  need(is_label(s.name), "job_name", s.name,
       "expected lower case letters, digits and '-' between them, as test-mnist");
  need(s.name.size() <= longest_job_name, "job_name", s.name,
       fmt::format("has {} characters; its pods' names have room for {}", s.name.size(), longest_job_name)
           .c_str());
  need(is_label(s.space), "namespace", s.space, "expected lower case letters, digits and '-' between them");
  check_pod_template("servers.template", s.server_template);
  check_pod_template("workers.template", s.worker_template);
  if (s.image.empty() && s.worker_template.empty())
    throw usage_error(
        "--image_name is missing: name the image that holds the model (edl zoo build makes one)");
  image("image_name", s.image);
  image("worker_image", s.worker_image);
  if (s.command.empty() || s.command.front().empty())
    throw usage_error("--model_def is missing: name the program of the image that is the model");
  one_of("image_pull_policy", s.image_pull_policy, {"Always", "IfNotPresent", "Never"});
  one_of("restart_policy", s.restart_policy, {"Never", "OnFailure", "Always"});
  for (std::string const& secret : s.image_pull_secrets)
    need(is_subdomain(secret), "image_pull_secrets", secret, "expected the name of a secret");
  if (!s.service_account.empty())
    need(is_subdomain(s.service_account), "service_account", s.service_account,
         "expected the name of a service account");
  need(s.grace_seconds <= longest_grace, "grace_seconds", std::to_string(s.grace_seconds),
       "expected at most 86400, a day");
  check_role("master", s.master);
  check_role("ps", s.server);
  check_role("worker", s.worker);
  worker_priority(s.worker.priority, 0, s.num_workers);
  for (auto const& [name, value] : s.variables) {
    need(is_variable(name), "envs", name, "expected a name of letters, digits and '_'");
    need(!reserved_variable(name), "envs", name, "is set by the job itself: leave it out");
    need(value.find('\0') == std::string::npos, "envs", name, "a value cannot hold a zero byte");
  }
  need(s.initial_workers <= s.num_workers, "initial_workers", std::to_string(s.initial_workers),
       fmt::format("expected at most num_workers, {}", s.num_workers));
  if (!s.secret.empty()) need(is_subdomain(s.secret), "secret", s.secret, "expected the name of a secret");
  populated(s.populate_env_names, {});
  check_cluster_spec(s.cluster_spec);
  if (auto const size = to_json(s).size(); size > longest_job)
    throw usage_error(fmt::format(
        "the description of the job has {} bytes, but the master's environment has room for {}: shorten {}",
        size, longest_job,
        s.by.empty() ? "the command, --envs or --cluster_spec" : "spec.flags or the templates"));
}

}  // namespace edl::kubernetes

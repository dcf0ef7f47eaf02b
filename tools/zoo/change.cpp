// SPDX-License-Identifier: Apache-2.0
#include "change.hpp"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "edl/core/error.hpp"
#include "edl/platform/kubernetes/objects.hpp"
#include "pods.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
namespace k8s = platform::kubernetes;

json options(char const* propagation = "Background") {
  return {{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"propagationPolicy", propagation}};
}

/// Whether it was there.
bool remove_one(cluster& c, std::string const& path) {
  try {
    c.api.remove(path, options());
    return true;
  } catch (k8s::api_error const& bad) {
    if (bad.code() != 404) throw;
    return false;
  }
}

/// "workers=3,servers=" says nothing of servers.
std::string without_blanks(std::string const& answer) {
  std::string text;
  for (std::string const& part : split(answer, ','))
    if (!part.ends_with('=')) text += (text.empty() ? "" : ", ") + part;
  return text;
}

char const* const scaled_at = "/metadata/annotations/elasticdl~1scaled";

}  // namespace

bool delete_job(cluster& c, std::string const& job) {
  k8s::job_spec const spec{.name = job, .space = c.space};
  bool const master = remove_one(c, c.path("pods", k8s::pod_name(job, {platform::role::master, 0})));
  bool any = master;
  any |= remove_one(c, c.path("services", k8s::master_service(spec).at("metadata").at("name")));
  any |= remove_one(c, c.path("secrets", k8s::token_secret(spec, "").at("metadata").at("name")));
  if (!master)  // nothing owns what is left
    for (json const& pod : c.pods_of(job))
      any |= remove_one(c, c.path("pods", text_at(pod, "/metadata/name")));
  return any;
}

std::vector<flag> remove_flags() {
  auto all = cluster_flags();
  all.push_back({.name = "wait",
                 .fallback = "false",
                 .help = "return when all of its pods are gone",
                 .what = flag::kind::truth});
  all.push_back({.name = "timeout", .fallback = "600", .help = "seconds to wait at most"});
  return all;
}

int remove(words const& line) {
  command_line const l("delete", remove_flags(), line, 1, 100, "the job's name");
  auto const limit = std::chrono::seconds(l.number("timeout", 1, 86'400));
  cluster c = connect(l);
  for (std::string const& job : l.arguments()) {
    if (!delete_job(c, job)) c.master_of(job);  // says that there is no such job
    fmt::print("job {} is deleted{}\n", job, l.truth("wait") ? "; waiting for its pods to end" : "");
    std::fflush(stdout);
  }
  if (!l.truth("wait")) return done;
  auto const until = std::chrono::steady_clock::now() + limit;
  bool told = false;
  for (std::string const& job : l.arguments())
    for (;;) {
      json pods;
      if (!answered([&] { pods = c.pods_of(job); }, until, told)) continue;
      if (pods.empty()) break;
      if (std::chrono::steady_clock::now() > until)
        throw error(fmt::format("{} pods of job '{}' are still there after {} s, {} among them", pods.size(),
                                job, limit.count(), text_at(pods[0], "/metadata/name")));
      std::this_thread::sleep_for(500ms);
    }
  return done;
}

std::vector<flag> scale_flags() {
  auto all = cluster_flags();
  all.push_back({.name = "num_workers", .help = "workers that there are to be"});
  all.push_back({.name = "num_ps_pods", .help = "servers that there are to be"});
  all.push_back({.name = "timeout", .fallback = "30", .help = "seconds to wait for the master's answer"});
  return all;
}

int scale(words const& line) {
  command_line const l("scale", scale_flags(), line, 1, 1, "the job's name");
  std::string const& job = l.arguments()[0];
  json wanted{{"elasticdl/scaled", nullptr}};  // an older answer is none to this question
  for (auto const& [name, annotation] :
       {std::pair{"num_workers", "elasticdl/num-workers"}, {"num_ps_pods", "elasticdl/num-ps-pods"}})
    if (l.given(name)) wanted[annotation] = std::to_string(l.number(name, 1, 10'000));
  if (wanted.size() == 1) throw usage_error("scale: how many? give --num_workers or --num_ps_pods");
  auto const limit = std::chrono::seconds(l.number("timeout", 1, 3600));
  cluster c = connect(l);
  json pod = c.master_of(job);
  if (pod_state const state = state_of(pod); state.ended)
    throw error(fmt::format("job '{}' has ended ({}): nothing of it can be scaled", job, state.status));
  std::string const path = c.path("pods", text_at(pod, "/metadata/name"));
  c.api.patch(path, json{{"metadata", {{"annotations", wanted}}}});
  bool told = false;
  for (auto const until = std::chrono::steady_clock::now() + limit;;) {
    if (!answered([&] { pod = c.api.get(path); }, until, told)) continue;
    if (std::string const answer = text_at(pod, scaled_at); answer.starts_with("refused"))
      throw error(fmt::format("the master of job '{}' {}", job, answer));
    else if (!answer.empty())
      return fmt::print("job {}: {}\n", job, without_blanks(answer)), done;
    if (std::chrono::steady_clock::now() > until)
      throw error(fmt::format(
          "the master of job '{0}' did not answer within {1} s; it will when it runs: `edl explain {0}`", job,
          limit.count()));
    std::this_thread::sleep_for(200ms);
  }
}

}  // namespace edl::tool

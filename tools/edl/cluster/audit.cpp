// SPDX-License-Identifier: Apache-2.0
#include "cluster/audit.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "cluster/cluster.hpp"
#include "cluster/pods.hpp"
#include "cluster/training_jobs.hpp"
#include "common/advice.hpp"
#include "edl/app/audit.hpp"
#include "edl/base/bucket/cache.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

/// Removes the pod, whatever becomes of the rest.
class passing_pod {
 public:
  passing_pod(cluster& c, std::string job, json const& pod)
      : cluster_(c), job_(std::move(job)), path_(c.path("pods", pod.at("metadata").at("name"))) {
    cluster_.api.create(c.path("pods"), pod);
  }
  passing_pod(passing_pod const&) = delete;
  ~passing_pod() {
    try {
      cluster_.api.remove(path_,
                          json{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"gracePeriodSeconds", 0}});
    } catch (std::exception const& bad) {
      fmt::print(stderr, "edl: {} stays: {}\n", path_, bad.what());
    }
  }

  passing_pod& operator=(passing_pod const&) = delete;

  /// Waits for its end.
  pod_state end(std::chrono::seconds limit) const {
    auto const until = clock::now() + limit;
    bool announced = false;
    for (std::string shown;;) {
      pod_state s;
      if (!answered([&] { s = state_of(cluster_.api.get(path_)); }, until, announced)) continue;
      if (s.ended) return s;
      std::string const why =
          s.hinders ? in_words(s.hinders->reason, s.hinders->message, cluster_.named(job_)) : "";
      if (s.hinders && s.hinders->hopeless) throw error("the reading pod cannot start: " + why);
      if (clock::now() > until)
        throw error(fmt::format("the reading pod has not ended after {} s{}{}", limit.count(),
                                why.empty() ? "" : ": ", why));
      if (!why.empty() && why != shown) fmt::print(stderr, "edl: the reading pod waits: {}\n", shown = why);
      std::this_thread::sleep_for(300ms);
    }
  }

  std::string log() const {
    std::string text;
    cluster_.api.stream(
        path_ + "/log", {},
        [&](std::string_view piece) {
          text.append(piece);
          return text.size() < 16u << 20;
        },
        30s, [] { return false; });
    return text;
  }

 private:
  cluster& cluster_;
  std::string job_, path_;
};

/// The master's pod; of a TrainingJob whose pods are gone, what it would be made from.
json pod_of_master(cluster& c, std::string const& job) {
  auto const above = find_training_job(c, job);
  if (!above) return master_of(c, job);
  for (json const& pod : own_pods(c.pods_of(job), above->resource.uid))
    if (role_name(pod) == "master") return pod;
  if (!above->fault.empty()) throw error(above->fault);
  json pod = json::parse(above->resource.spec.master);
  json& command = pod["spec"]["containers"][0]["command"] =
      json::array({above->resource.spec.model, above->resource.spec.command});
  for (std::string const& flag : above->resource.spec.flags) command.push_back(flag);
  return pod;
}

/// The value of a flag; empty: it is not given.
std::string value_of(words const& command, std::string const& name) {
  std::string const flag = "--" + name + "=";
  for (std::string const& word : command)
    if (word.rfind(flag, 0) == 0) return word.substr(flag.size());
  return {};
}

int audit_job(command_line const& l) {
  pod_answer const found = ask_pod(l, {"audit"}, {});
  fmt::print("{}{}", found.text, found.text.empty() || found.text.back() == '\n' ? "" : "\n");
  return found.succeeded ? done : failed;
}

}  // namespace

pod_answer ask_pod(command_line const& l, words const& before, words const& behind) {
  std::string const& job = l.arguments()[0];
  auto const limit = std::chrono::seconds(l.number("timeout"));
  cluster c = connect(l);
  json const master = pod_of_master(c, job);
  std::string const directory =
      l.text("checkpoint_dir").empty() ? checkpoint_dir_of(master) : l.text("checkpoint_dir");
  if (directory.empty())
    throw usage_error(fmt::format(
        "job '{}' has no --checkpoint_dir, and keeps nothing to read: if its volumes have one, name "
        "it with that flag",
        job));
  json one = audit_pod(master, job, directory);
  json& command = one["spec"]["containers"][0]["command"];
  json wrapped = json::array({command[0]});
  for (std::string const& word : before) wrapped.push_back(word);
  wrapped.push_back(directory);
  for (std::string const& word : behind) wrapped.push_back(word);
  command = std::move(wrapped);
  passing_pod const pod(c, job, one);
  pod_state const end = pod.end(limit);
  return {end.phase == "Succeeded", pod.log()};
}

std::string checkpoint_dir_of(json const& master) { return value_of(command_of(master), "checkpoint_dir"); }

json audit_pod(json const& master, std::string const& job, std::string const& directory) {
  words const command = command_of(master);
  if (command.empty())
    throw error(fmt::format("the pod of job '{}' has no command: edl did not make it", job));
  json const& from = master.at("spec");
  json const& container = from.at("containers").at(0);
  json one{{"name", "audit"},
           {"image", container.at("image")},
           {"command", json::array({command[0], "audit", directory})}};
  for (char const* key : {"imagePullPolicy", "securityContext", "resources"})
    if (container.contains(key)) one[key] = container.at(key);
  json spec{{"restartPolicy", "Never"}, {"automountServiceAccountToken", false}};
  for (char const* key : {"securityContext", "imagePullSecrets", "nodeSelector", "tolerations", "affinity"})
    if (from.contains(key)) spec[key] = from.at(key);
  // What the API server added is the old pod's own: its way to the API server, which an audit does not need.
  auto const is_access = [](std::string const& name) { return name.rfind("kube-api-access-", 0) == 0; };
  for (json const& v : from.value("volumes", json::array()))
    if (!is_access(v.at("name"))) spec["volumes"].push_back(v);
  for (json const& m : container.value("volumeMounts", json::array()))
    if (!is_access(m.at("name"))) one["volumeMounts"].push_back(m);
  // A bucket is read as the job itself does, whose copies lie where it keeps its own.
  if (bucket::names_objects(directory)) {
    for (json const& v : container.value("env", json::array()))
      if (!kubernetes::reserved_variable(v.at("name"))) one["env"].push_back(v);
    if (container.contains("envFrom")) one["envFrom"] = container.at("envFrom");
    if (from.contains("serviceAccountName")) spec["serviceAccountName"] = from.at("serviceAccountName");
    if (std::string const cache = value_of(command, "data_cache"); !cache.empty())
      one["env"].push_back({{"name", "XDG_CACHE_HOME"}, {"value", cache}});
  }
  spec["containers"] = json::array({one});
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", "elasticdl-" + job + "-audit"}, {"labels", {{"app", "elasticdl-audit"}}}}},
          {"spec", spec}};
}

std::vector<flag> audit_flags() {
  auto all = cluster_flags();
  all.push_back(
      {.name = "checkpoint_dir",
       .help = "of a job: the directory in its volumes, or s3://BUCKET/PREFIX; without it the job's own"});
  all.push_back({.name = "timeout",
                 .fallback = "300",
                 .help = "of a job: seconds to wait for the pod that reads it",
                 .type = flag::value_type::whole,
                 .least = 1,
                 .most = 86400});
  return all;
}

int audit(words const& line) {
  command_line const l("audit", audit_flags(), line, 1, 1, "a directory of checkpoints, or a job's name");
  std::string const& what = l.arguments()[0];
  if (what.find('/') == what.npos && !std::filesystem::exists(what)) return audit_job(l);
  app::audit const found = app::audit_checkpoint(what);
  app::write(std::cout, found);
  return found.exact() ? done : failed;
}

}  // namespace edl::tool

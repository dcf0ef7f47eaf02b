// SPDX-License-Identifier: Apache-2.0
#include "submit/submission_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "edl/core/names.hpp"
#include "edl/job/config/flags.hpp"
#include "edl/job/config/foreign_flags.hpp"

namespace edl::tool {

std::vector<gone_flag> gone_flags() {
  std::vector<gone_flag> all;
  for (foreign_flag const& f : foreign_flags()) {
    flag is{.name = std::string(f.name), .fallback = std::string(f.fallback)};
    if (!f.fallback.empty()) is.type = flag::value_type::truth;
    all.push_back({is, std::string(f.why)});
  }
  // The program has these two, and a pod decides them.
  all.push_back({{.name = "host"}, "in a pod every role listens on the pod's address"});
  all.push_back({{.name = "port"}, "in a pod the master listens on port 50001, behind its service"});
  return all;
}

std::vector<flag> job_flags() {
  auto all = cluster_flags();
  std::vector<flag> const more{
      {.name = "image_name", .help = "the job's image: holds the program that --model_def names"},
      {.name = "worker_image", .help = "image of workers and servers; without it --image_name"},
      {.name = "model_def",
       .help = "the program in the image: its name, or a dotted name with it as the last but one part "
               "(mnist.mnist_functional_api.custom_model: mnist_functional_api), or its source's directory",
       .aliases = {"model_file"}},
      {.name = "model_zoo",
       .help = "directory of the model zoo, if the image is built from it at submission "
               "(--docker_image_repository); an existing image needs none"},
      {.name = "image_base",
       .help = "build the image at submission, in this one: one with edl installed",
       .aliases = {"base_image"}},
      {.name = "docker_image_repository",
       .help = "build the image from --model_zoo at submission, and push it here",
       .aliases = {"docker_image_prefix"}},
      {.name = "docker_base_url", .help = "address of the Docker engine; without it $DOCKER_HOST"},
      {.name = "master_resource_request",
       .fallback = "cpu=0.1,memory=1024Mi",
       .help = "resource requests of the master"},
      {.name = "master_resource_limit", .help = "its resource limits; without them: the requests"},
      {.name = "worker_resource_request",
       .fallback = "cpu=1,memory=4096Mi",
       .help = "resource requests of a worker"},
      {.name = "worker_resource_limit", .help = "its resource limits; without them: the requests"},
      {.name = "ps_resource_request",
       .fallback = "cpu=1,memory=4096Mi",
       .help = "resource requests of a server"},
      {.name = "ps_resource_limit", .help = "its resource limits; without them: the requests"},
      {.name = "master_pod_priority", .help = "priority class of the master's pod"},
      {.name = "ps_pod_priority", .help = "priority class of servers' pods"},
      {.name = "worker_pod_priority",
       .help = "priority class of workers' pods: its name, or the share of them that is of class high, the "
               "others "
               "low (0.5, high=0.5)"},
      {.name = "volume",
       .help = "claim_name=C,mount_path=P or host_path=D,mount_path=P[,type=Directory][,sub_path=S]; several "
               "joined "
               "by ;"},
      {.name = "image_pull_policy",
       .fallback = "Always",
       .help = "when nodes pull the image",
       .choices = {"Always", "IfNotPresent", "Never"}},
      {.name = "image_pull_secrets", .help = "secrets with the registry's credentials, joined by ,"},
      {.name = "restart_policy",
       .fallback = "Never",
       .help = "of servers' and workers' containers; the master replaces pods anyway",
       .choices = {"Never", "OnFailure", "Always"}},
      {.name = "service_account",
       .help = "service account of the master's pod, with the permissions that `edl rbac` prints; without "
               "it: edl if the namespace has it, or default"},
      {.name = "grace_seconds",
       .fallback = "30",
       .help = "time that a pod has to return its leases before it is killed",
       .type = flag::value_type::whole,
       .least = 0,
       .most = 3600},
      {.name = "envs", .help = "variables of every container: k1=v1,k2=v2"},
      {.name = "populate_env_names",
       .help = "expression: the master's variables that fully match it go to servers and workers"},
      {.name = "cluster_spec",
       .help = "JSON or YAML file that changes the pods: labels, tolerations, affinity, …"},
      {.name = "cluster_spec_json", .help = "the same, in the flag itself"},
      {.name = "aux_params", .help = "disable_relaunch=True: lost pods are not replaced"},
      {.name = "file",
       .help = "YAML or JSON file of flags, as name: value; the command line overrides it",
       .aliases = {"f"}},
      {.name = "yaml", .help = "print the objects into this file and submit nothing; - for standard output"},
      {.name = "dry_run",
       .help = "check and submit nothing; server: let the API server check the objects, too",
       .choices = {"client", "server"}},
      {.name = "detach",
       .fallback = "false",
       .help = "return as soon as the job is submitted",
       .type = flag::value_type::truth},
      {.name = "wait",
       .fallback = "false",
       .help = "wait until the job has ended, and end as it did",
       .type = flag::value_type::truth},
      {.name = "follow",
       .fallback = "false",
       .help = "the same, printing the logs of all its pods",
       .type = flag::value_type::truth},
      {.name = "start_timeout",
       .fallback = "120",
       .help = "seconds to wait for the master's pod to run, before edl explains why it does not and lets it "
               "wait",
       .type = flag::value_type::whole,
       .least = 0,
       .most = 86400},
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<flag> model_flags(std::string const& name) {
  auto all = edl::flags_of(value_of<edl::command>(name).value(), "edl");
  for (flag& f : all) f.needed = false;  // a file may say it
  // The program's tries a job on one machine; a submission has its own.
  std::erase_if(all, [](flag const& f) { return f.name == "dry_run"; });
  return all;
}

std::vector<flag> submission_flags(std::string const& command) {
  auto all = job_flags();
  std::set<std::string> names;
  for (flag const& f : all) names.insert(f.name);
  auto const gone = gone_flags();
  auto const is_gone = [&](std::string const& name) {
    return std::ranges::any_of(gone, [&](gone_flag const& g) { return g.flag.name == name; });
  };
  for (flag& f : model_flags(command))
    if (!is_gone(f.name) && names.insert(f.name).second) all.push_back(std::move(f));
  for (gone_flag const& g : gone)
    if (names.insert(g.flag.name).second) all.push_back(g.flag);
  return all;
}

}  // namespace edl::tool

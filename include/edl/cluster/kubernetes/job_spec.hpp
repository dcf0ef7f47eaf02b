// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "edl/base/platform/platform.hpp"

namespace edl::kubernetes {

/// Amounts by Kubernetes' names: {"cpu": "0.2", "memory": "1024Mi", "nvidia.com/gpu": "1"}.
using resources = std::map<std::string, std::string>;

/// An example is "cpu=0.2,memory=1024Mi,gpu=1". Keys are cpu, memory, disk and ephemeral-storage (the same
/// for Kubernetes; the greater counts), gpu (nvidia.com/gpu), VENDOR/gpu, nvidia.com/NAME. Amounts are as in
/// ElasticDL: sizes have a unit. Throws usage_error, which quotes the key and what is expected; `flag` is its
/// name.
resources parse_resources(std::string const& flag, std::string const& text);

/// A claim or a directory of the node, mounted into every pod of the job.
struct volume {
  std::string claim_name, host_path, type;  ///< one of the first two; `type` of the host path: "Directory", …
  std::string mount_path, sub_path;
  bool read_only = false;
};

/// "host_path=a,mount_path=b;claim_name=c,mount_path=d,sub_path=e,read_only=true". Accepts keys of older
/// tools without meaning (volume_name). Throws usage_error.
std::vector<volume> parse_volumes(std::string const& text);

/// "k1=v1,k2=v2": a comma inside a value stays with it, because a name must follow one that separates.
/// Throws usage_error.
platform::environment parse_environment(std::string const& flag, std::string const& text);

/// Whether a variable defines a process's role in its job, so that users must not set it: EDL_ROLE,
/// MASTER_ADDR, …
bool reserved_variable(std::string const& name);

/// Those of `mine` whose names `expression` (ECMAScript) matches from end to end, without reserved ones.
/// Throws usage_error for an invalid expression.
platform::environment populated(std::string const& expression, platform::environment const& mine);

/// The priority class of worker `id`, by "" (none), "high", "low", a fraction, "high=0.5" or any other
/// class's name. A fraction such as "0.5" is that share of the workers, rounded up, that is high; the rest is
/// low. They are chosen from both ends of the ids: 0, 9, 1, 8, 2 of ten. "high=0.5" is the first half,
/// rounded down. A worker beyond `num_workers` is not in the share. Throws usage_error for a fraction outside
/// [0, 1] and for an invalid class name.
std::string worker_priority(std::string const& flag_value, std::uint32_t id, std::uint32_t num_workers);

/// The properties of one role's pods.
struct role_spec {
  resources request, limit;
  std::string priority;  ///< of a class; of workers, as `worker_priority` reads it
};

/// The limits of a container: the given ones, or, if there are none, the requests. Resources that cannot be
/// overcommitted (GPUs) are always limited to the request.
resources limit_of(resources const& request, resources const& limit);

/// The object that owns others: they are deleted with it.
struct owner {
  std::string name, uid;
  std::string api_version = "v1", kind = "Pod";
  bool empty() const { return uid.empty(); }
};

/// Everything about a job in a cluster, besides the command of its processes. The master gets it as JSON in
/// EDL_JOB and creates the other pods from it.
struct job_spec {
  std::string name, space = "default";  ///< `space`: the namespace
  std::string image, worker_image;      ///< `worker_image` empty: `image`
  std::vector<std::string> command;     ///< of every container: the program in the image, and its flags
  std::uint32_t num_workers = 0, num_servers = 0;
  role_spec master, server, worker;
  std::string image_pull_policy = "Always", restart_policy = "Never";
  std::vector<std::string> image_pull_secrets;
  std::string service_account;  ///< of the master; empty: the namespace's default
  std::vector<volume> volumes;
  platform::environment variables;  ///< of every container
  std::string
      populate_env_names;    ///< expression: the master's variables that fully match it go to the others
  std::string cluster_spec;  ///< JSON: pod_spec, {master,ps,worker}_pod_spec, service_spec; empty: none
  bool relaunch = true;      ///< false: --aux_params=disable_relaunch=True
  std::uint32_t grace_seconds = 30;  ///< between SIGTERM and SIGKILL: time to hand back leases

  // Of a job that a TrainingJob describes.
  owner by;                           ///< of all the job's objects; empty: the master's pod owns its members
  std::string secret;                 ///< name of the Secret with the token; empty: "elasticdl-NAME"
  std::uint32_t initial_workers = 0;  ///< to start with, of at most `num_workers`; 0: all of them
  /// PodTemplateSpecs as JSON, by which servers' and workers' pods are made (`pod_template.hpp`); empty:
  /// none.
  std::string server_template, worker_template;

  /// How many servers have a copy of each part of the model. Set by the master from the job, not in the JSON.
  std::uint32_t server_copies = 1;
};

/// An object of what differs from `job_spec{}`; keys are the flags' names where there is a flag. Limits are
/// written out: as `limit_of` says.
/// Throws usage_error when a text is not UTF-8.
std::string to_json(job_spec const& spec);

/// Longest JSON of a job, in bytes. The master gets it as a variable, for which Linux has room for 128 KiB.
inline constexpr std::size_t longest_job = std::size_t{100} << 10;

/// Throws error if `text` is not a job, or has fields unknown to this version.
job_spec job_from_json(std::string const& text);

/// "elasticdl-NAME-master", "elasticdl-NAME-ps-0", "elasticdl-NAME-worker-3".
std::string pod_name(std::string const& job, process_id const& who);

/// The selector of a job's pods: "elasticdl-job-name=NAME".
std::string job_selector(std::string const& job);

/// Longest name of a job, in characters. With it the pod of worker 99999 has a name of 63 characters, the
/// limit of labels and container names.
inline constexpr std::size_t longest_job_name = 40;

/// Throws usage_error if API servers would refuse the spec's objects: the name is not a DNS label or makes a
/// pod's name longer than 63 characters, a policy is unknown, the image is missing, a limit is below its
/// request, a variable is reserved, a template has no container, a cluster_spec is not a JSON object or has
/// unknown keys, or the job's JSON is longer than `longest_job`.
void check(job_spec const& spec);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/job_spec.ipp"
#include "edl/cluster/kubernetes/job_spec_check.ipp"
#include "edl/cluster/kubernetes/job_spec_json.ipp"
#endif

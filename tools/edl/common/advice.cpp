// SPDX-License-Identifier: Apache-2.0
#include "common/advice.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace edl::tool {
namespace {

bool has(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }

remark of_scheduling(std::string const& message, std::string const& flags) {
  if (has(message, "unbound") || has(message, "persistentvolumeclaim"))
    return {
        "waits for its volume",
        fmt::format("`kubectl get pvc{}` shows the claim; --volume=claim_name=… must name one that is bound",
                    for_kubectl(flags))};
  if (has(message, "Insufficient"))
    return {"waits for room",
            "request less with --worker_resource_request (or --ps_, --master_), free or add nodes, or give a "
            "higher priority class"};
  if (has(message, "taint"))
    return {"no node takes it", "add tolerations with --cluster_spec, or untainted nodes"};
  if (has(message, "affinity") || has(message, "selector"))
    return {"no node fits", "change the affinity in --cluster_spec, or label nodes"};
  return {"waits for a node", fmt::format("`kubectl get nodes{}` shows which are ready", for_kubectl(flags))};
}

}  // namespace

std::string for_kubectl(std::string flags) {
  std::string const ours = " --force_use_kube_config_file";
  if (auto const at = flags.find(ours); at != flags.npos) flags.erase(at, ours.size());
  return flags;
}

remark advise(std::string const& reason, std::string const& message, std::string const& job,
              std::string const& by) {
  std::string const flags = job.substr(std::min(job.find(' '), job.size()));
  bool const of_master = by.empty() || by == "edl-master";
  if (reason == "Failed" && !of_master) {
    // What a kubelet says of all that keeps a container from running.
    for (char const* kind : {"ErrImageNeverPull", "InvalidImageName", "ImagePullBackOff", "ErrImagePull"})
      if (has(message, kind)) return advise(kind, message, job);
    return advise(has(message, "pull image") ? "ErrImagePull" : "RunContainerError", message, job);
  }
  if (reason == "BackOff" && has(message, "pulling image")) return advise("ErrImagePull", message, job);
  if (reason == "Unschedulable" || reason == "FailedScheduling") return of_scheduling(message, flags);
  if (reason == "ErrImageNeverPull")
    return {"its image is not on the node",
            "build the image there, or give --image_pull_policy=IfNotPresent and push it to a registry"};
  if (reason == "InvalidImageName") return {"its image has an invalid name", "change --image_name"};
  if (reason == "ErrImagePull" || reason == "ImagePullBackOff")
    return {"its image cannot be pulled",
            "check --image_name, `edl zoo push` it, and give --image_pull_secrets if the registry needs "
            "credentials"};
  if (reason == "CreateContainerConfigError")
    return {"an object that it needs does not exist",
            fmt::format("`edl doctor{}` checks secrets and volumes", flags)};
  if (reason == "RunContainerError" || reason == "StartError" || reason == "ContainerCannotRun")
    return {"the container does not start", "--model_def must name a program of the image"};
  if (reason == "CrashLoopBackOff")
    return {"its program ends again and again", fmt::format("`edl logs {}` shows why", job)};
  if (reason == "OOMKilled" || reason == "OutOfMemory")
    return {"it used more memory than its limit",
            "raise memory in --worker_resource_limit (or --ps_, --master_)"};
  if (reason == "Evicted")
    return {"its node was short of something", "request enough with --…_resource_request"};
  if (reason == "NodePressure") return {"one of its nodes is short of something", ""};
  if (reason == "NodeAvoided") return {"one of its nodes is not to be trusted", ""};
  if (reason == "Preempted" || reason == "Preempting")
    return {"pods of a higher priority took its place", "it comes back as soon as it has room"};
  if (reason == "FailedMount" || reason == "FailedAttachVolume")
    return {"a volume cannot be mounted", "--volume must name an existing claim or directory"};
  if (reason == "FailedCreate" || has(message, "exceeded quota"))
    return {
        "the namespace's quota is used up",
        fmt::format("`kubectl describe quota{}` shows it; request less, or raise it", for_kubectl(flags))};
  if (reason == "FailedCreatePodSandBox") return {"its node cannot make the pod", ""};
  if (reason == "Unhealthy") return {"does not reply to its node", ""};
  if (reason == "CannotStart") return {"the cluster rejected a pod", ""};
  if (reason == "WorkerRelaunched") return {"a worker was replaced", ""};
  if (reason == "ServerRelaunched") return {"a server was replaced", ""};
  if (reason == "Scaled") return {"the job's size changed", ""};
  if (reason == "Finished") return {"the job is done", ""};
  if (reason == "Failed")
    return {"the job failed", fmt::format("`edl logs {} --role=master` shows why", job)};
  if (reason == "Scheduled") return {"has a node", ""};
  if (reason == "Pulling") return {"its image is being pulled", ""};
  if (reason == "Pulled") return {"its image is present", ""};
  if (reason == "Created") return {"its container is made", ""};
  if (reason == "Started") return {"runs", ""};
  if (reason == "Killing") return {"is shutting down", ""};
  if (reason == "BackOff")
    return {"is retried after a pause", fmt::format("`edl logs {}` shows why it ended", job)};
  return {};
}

std::string in_words(std::string const& reason, std::string const& message, std::string const& job,
                     std::string const& by) {
  std::string const remedy = advise(reason, message, job, by).remedy;
  std::string text = fmt::format("{}{}{}", reason, message.empty() ? "" : ": ", message);
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  return remedy.empty() ? text : text + "; " + remedy;
}

}  // namespace edl::tool

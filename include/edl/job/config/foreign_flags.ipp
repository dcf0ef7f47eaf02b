// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/core/inline.hpp"
#include "edl/job/config/foreign_flags.hpp"

namespace edl {
namespace detail {

/// Flags that determine where a job runs and in which image: `edl` has them.
inline constexpr std::string_view of_the_cluster[] = {"image_name",
                                                      "worker_image",
                                                      "docker_image_repository",
                                                      "docker_image_prefix",
                                                      "image_base",
                                                      "base_image",
                                                      "docker_base_url",
                                                      "volume",
                                                      "namespace",
                                                      "context",
                                                      "kubeconfig",
                                                      "request_timeout",
                                                      "image_pull_policy",
                                                      "image_pull_secrets",
                                                      "restart_policy",
                                                      "service_account",
                                                      "grace_seconds",
                                                      "envs",
                                                      "populate_env_names",
                                                      "cluster_spec",
                                                      "cluster_spec_json",
                                                      "file",
                                                      "yaml",
                                                      "dry_run",
                                                      "detach",
                                                      "wait",
                                                      "follow",
                                                      "start_timeout",
                                                      "force_use_kube_config_file",
                                                      "aux_params",
                                                      "master_resource_request",
                                                      "master_resource_limit",
                                                      "worker_resource_request",
                                                      "worker_resource_limit",
                                                      "ps_resource_request",
                                                      "ps_resource_limit",
                                                      "master_pod_priority",
                                                      "worker_pod_priority",
                                                      "ps_pod_priority"};

/// Flags that determine which program an image runs: `edl` has them.
inline constexpr std::string_view of_the_image[] = {"model_zoo", "model_def", "model_file"};

/// Other programs' names for flags of edl.
inline constexpr std::pair<std::string_view, std::string_view> named_otherwise[] = {
    {"batch_size", "minibatch_size"},
    {"train_batch_size", "minibatch_size"},
    {"epochs", "num_epochs"},
    {"max_epochs", "num_epochs"},
    {"num_train_epochs", "num_epochs"},
    {"steps", "max_step"},
    {"max_steps", "max_step"},
    {"train_steps", "max_step"},
    {"workers", "num_workers"},
    {"nproc_per_node", "num_workers"},
    {"output_dir", "output"},
    {"export_dir", "output"},
    {"data", "training_data"},
    {"data_dir", "training_data"},
    {"train_data", "training_data"},
    {"val_data", "validation_data"},
    {"test_data", "validation_data"},
    {"ckpt_dir", "checkpoint_dir"},
    {"save_steps", "checkpoint_steps"},
    {"eval_steps", "evaluation_steps"},
    {"logging_steps", "log_loss_steps"},
    {"resume", "checkpoint_dir"},
    {"grad_clip", "clip_norm"},
    {"max_grad_norm", "clip_norm"},
    {"accumulate_grad_batches", "grads_to_wait"},
    {"gradient_accumulation_steps", "grads_to_wait"}};

}  // namespace detail

EDL_INLINE std::vector<foreign_flag> const& foreign_flags() {
  static constexpr std::string_view compiled =
      "the model's struct has it, and was compiled with it; nothing is looked up by name";
  static constexpr std::string_view one_loop =
      "the program's own training loop is the only one, and all of its parts always run";
  static std::vector<foreign_flag> const all{
      {"feed", compiled, {}},
      {"dataset_fn", compiled, {}},
      {"input_fn", compiled, {}},
      {"loss", compiled, {}},
      {"optimizer", compiled, {}},
      {"eval_metrics_fn", compiled, {}},
      {"callbacks",
       "edl has no callbacks: the struct's schedule sets the learning rate, --max_step ends a job, and "
       "--checkpoint_steps, --evaluation_steps and --output control what is written, and when",
       {}},
      {"custom_data_reader",
       "the format of records is found out from the files; the struct's `open` reads one of its own",
       {}},
      {"prediction_outputs_processor",
       "the struct's on_predictions takes the predictions, and without it they are files in "
       "--prediction_outputs",
       {}},
      {"codec_type", "the format of records is found out from the files", {}},
      {"data_reader_params", "the format of records is found out from the files", {}},
      {"extra_pypi_index", "images hold binaries, and no Python packages are installed", {}},
      {"job_command", one_loop, {}},
      {"need_elasticdl_job_service", one_loop, "false"},
      {"need_task_manager", one_loop, "true"},
      {"need_pod_manager", one_loop, "true"},
      {"task_fault_tolerance", one_loop, "true"},
      {"relaunch_timeout_worker", "a worker too long at a task loses it to another, always", "false"},
      {"need_tf_config", "roles find each other through the master; no TF_CONFIG is needed", "false"},
      {"use_go_ps", "edl has one kind of parameter server", "false"},
      {"evaluation_start_delay_secs",
       "evaluations run every --evaluation_steps versions, not by the clock",
       {}},
      {"evaluation_throttle_secs", "evaluations run every --evaluation_steps versions, not by the clock", {}},
      {"docker_tlscert", "DOCKER_HOST, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH name the Docker engine", {}},
      {"docker_tlskey", "DOCKER_HOST, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH name the Docker engine", {}},
      {"worker_id", "the master numbers the processes that it starts; by hand, WORKER_ID does", {}},
      {"ps_id", "the master numbers the processes that it starts; by hand, PS_ID does", {}},
      {"master_addr", "MASTER_ADDR gives processes the master's address", {}},
      {"ps_addrs", "workers get the servers' addresses from the master", {}},
      {"job_type", "the command and --validation_data determine what a job does", {}},
  };
  return all;
}

EDL_INLINE std::string why_not_here(std::string_view name) {
  if (std::ranges::find(detail::of_the_cluster, name) != std::end(detail::of_the_cluster))
    return "is for a job in a cluster, which `edl` submits; this command trains on this machine: leave it "
           "out";
  if (std::ranges::find(detail::of_the_image, name) != std::end(detail::of_the_image))
    return "is not needed: this binary is the model; leave it out";
  for (auto const& [theirs, ours] : detail::named_otherwise)
    if (theirs == name) return fmt::format("is --{} here", ours);
  if (name == "learning_rate" || name == "lr" || name == "weight_decay")
    return "belongs to the model here: set it in its schedule or optimiser, or as a hyperparameter, --set "
           "NAME=VALUE";
  for (foreign_flag const& f : foreign_flags())
    if (f.name == name) return fmt::format("has no meaning here: {}; leave it out", f.why);
  return {};
}

}  // namespace edl

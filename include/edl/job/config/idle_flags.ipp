// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/core/inline.hpp"
#include "edl/job/config/idle_flags.hpp"

namespace edl {
namespace detail {

inline bool is_local(parsed_flags const& a) { return a.job.strategy == strategy::local; }
inline bool sums(parsed_flags const& a) { return a.job.strategy == strategy::allreduce; }
inline bool no_sums(parsed_flags const& a) { return !sums(a); }
inline bool no_servers(parsed_flags const& a) { return a.job.strategy != strategy::parameter_server; }
inline bool asynchronous_servers(parsed_flags const& a) { return !no_servers(a) && a.job.training.use_async; }
inline bool synchronous_servers(parsed_flags const& a) { return !no_servers(a) && !a.job.training.use_async; }
inline bool without_checkpoints(parsed_flags const& a) {
  return a.job.command == command::train && a.job.checkpoints.checkpoint_dir.empty();
}
inline bool does_not_train(parsed_flags const& a) { return a.job.command != command::train; }
inline bool on_processor(parsed_flags const& a) { return a.job.compute.device == worker::device_kind::cpu; }
inline bool rounds(parsed_flags const& a) { return a.job.training.outer_steps > 1; }
inline bool one_round(parsed_flags const& a) { return a.job.training.outer_steps == 1; }
inline bool no_page(parsed_flags const& a) { return !a.job.observe.dashboard || a.job.dry_run; }

}  // namespace detail

EDL_INLINE std::vector<idle_flag> const& idle_flags() {
  using namespace detail;
  static constexpr std::string_view one_step = "all-reduce sums the gradients of all workers into each step",
                                    at_once =
                                        "Local is one process, which makes each minibatch a step at once",
                                    one_process = "Local is one process, and accepts no connections",
                                    no_page_is_served = "only --dashboard=PORT serves a page",
                                    none_kept = "nothing is kept without --checkpoint_dir",
                                    of_a_gpu = "it is for GPUs, and --device=cpu computes without one";
  static std::vector<idle_flag> const all{
      {"use_async", sums, one_step},
      {"use_async", [](parsed_flags const& a) { return is_local(a) && a.job.training.get_model_steps == 1; },
       at_once},
      {"grads_to_wait", sums,
       "all-reduce sums the gradients of all workers into each step; --fixed_global_batch keeps their "
       "number"},
      {"grads_to_wait", asynchronous_servers, "with --use_async each gradient is a step at once"},
      {"sync_version_tolerance", sums, one_step},
      {"sync_version_tolerance", is_local, at_once},
      {"sync_version_tolerance", asynchronous_servers, "with --use_async no gradient is too old"},
      {"lr_staleness_modulation", sums, "all-reduce's gradients are all of the newest version"},
      {"lr_staleness_modulation", is_local, "Local's gradients are all of the newest version"},
      {"get_model_steps", sums, "all-reduce's workers have the model themselves"},
      {"get_model_steps", [](parsed_flags const& a) { return is_local(a) && !a.job.training.use_async; },
       "only with --use_async does a worker train a copy of its own between pulls"},
      {"get_model_steps", synchronous_servers,
       "only with --use_async does a worker train a copy of its own between pulls"},
      {"outer_steps", is_local, "Local is one process, and sends nothing"},
      {"outer_learning_rate", one_round, "it is for --outer_steps"},
      {"outer_momentum", one_round, "it is for --outer_steps"},
      {"lr_staleness_modulation", rounds, "the rounds of --outer_steps always count less the older they are"},
      {"verify_gradients", is_local, "Local is one process, with no second one to compare with"},
      {"leave_bad_nodes", is_local, "Local is one process, without siblings"},
      {"gradients", is_local, "Local is one process, and sends no gradients"},
      {"fixed_global_batch", no_sums, "it is for --distribution_strategy=AllreduceStrategy"},
      {"allreduce_transport", no_sums, "it is for --distribution_strategy=AllreduceStrategy"},
      {"table_copies", no_sums, "it is for --distribution_strategy=AllreduceStrategy"},
      {"small_tables_mib", no_sums, "it is for --distribution_strategy=AllreduceStrategy"},
      {"ps_replicas", sums, "all-reduce has no servers: each worker has a copy of the model"},
      {"ps_replicas", is_local, "Local has no servers"},
      {"ps_ranges", no_servers, "this strategy has no servers"},
      {"relaunch_on_worker_failure", is_local, "Local has no workers to replace"},
      {"master_timeout", is_local, "Local has no master that could be away"},
      {"preemption_notice", is_local, "Local is one process, with nobody to hand over to"},
      {"host", is_local, one_process},
      {"port", is_local, one_process},
      {"metrics_port", is_local, one_process},
      {"transport_security", is_local, one_process},
      {"keep_checkpoint_max", without_checkpoints, none_kept},
      {"history_steps",
       [](parsed_flags const& a) {
         return without_checkpoints(a) && a.job.observe.tensorboard_log_dir.empty() &&
                !a.job.observe.dashboard;
       },
       "nothing is kept without --checkpoint_dir or --tensorboard_log_dir, or shown without --dashboard"},
      {"dashboard", [](parsed_flags const& a) { return a.job.dry_run; }, "--dry_run is over too soon"},
      {"dashboard_host", no_page, no_page_is_served},
      {"dashboard_certificate", no_page, no_page_is_served},
      {"dashboard_key", no_page, no_page_is_served},
      {"ignore_damaged_checkpoints", without_checkpoints, none_kept},
      {"skip_mismatch",
       [](parsed_flags const& a) { return a.job.checkpoints.checkpoint_dir_for_init.empty(); },
       "it needs --checkpoint_dir_for_init to take variables from"},
      {"activations",
       [](parsed_flags const& a) {
         return does_not_train(a) && a.job.compute.precision != precision::bfloat16;
       },
       "only training keeps results for the backward pass"},
      {"precision",
       [](parsed_flags const& a) { return on_processor(a) && a.job.compute.precision == precision::tf32; },
       "tf32 is for GPUs, and --device=cpu computes without one"},
      {"keep_samples", on_processor, of_a_gpu},
      {"kernel_cache",
       [](parsed_flags const& a) {
         return a.job.compute.deterministic || a.job.training.verify_gradients > 0 ||
                a.job.compute.kernels != kernels::measured;
       },
       "nothing is measured with --deterministic or --verify_gradients, or other --kernels than measured"},
      {"num_minibatches_per_task", [](parsed_flags const& a) { return a.records_per_task > 0; },
       "--records_per_task sets the size of a task"},
  };
  return all;
}

EDL_INLINE std::vector<std::string> idle_notes(parsed_flags const& a, cli::command_line const& given) {
  std::vector<std::string> notes;
  for (idle_flag const& f : idle_flags())
    if (f.idle(a) && given.changed(std::string(f.name)))
      notes.push_back(fmt::format("--{} does nothing here: {}", f.name, f.why));
  return notes;
}

}  // namespace edl

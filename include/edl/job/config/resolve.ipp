// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <system_error>

#include "edl/base/bucket/cache.hpp"
#include "edl/base/platform/notice_source.hpp"
#include "edl/cli/flag.hpp"
#include "edl/compute/optim/part_rates.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/quantity.hpp"
#include "edl/core/text.hpp"
#include "edl/job/config/idle_flags.hpp"
#include "edl/job/config/resolve.hpp"

namespace edl {
namespace detail {

inline void resolve_processes(job& j) {
  if (j.strategy == strategy::allreduce && j.processes.num_ps_pods > 0)
    throw usage_error("--distribution_strategy=AllreduceStrategy has no servers: leave out --num_ps_pods");
  if (j.strategy == strategy::local && (j.processes.num_workers > 0 || j.processes.num_ps_pods > 0))
    throw usage_error(
        "--distribution_strategy=Local is one process: leave out --num_workers and --num_ps_pods");
  if (j.strategy != strategy::local && j.processes.num_workers == 0) j.processes.num_workers = 2;
  if (j.strategy == strategy::parameter_server && j.processes.num_ps_pods == 0) j.processes.num_ps_pods = 1;
  if (j.strategy != strategy::parameter_server)
    j.processes.ps_replicas = 1;  // of servers, of which there are none
  if (j.processes.ps_replicas > std::max(1, j.processes.num_ps_pods))
    throw usage_error(fmt::format("--ps_replicas={} needs as many servers: add --num_ps_pods={}",
                                  j.processes.ps_replicas, j.processes.ps_replicas));
  platform::make_notice_source(j.processes.preemption_notice);  // whether it can be read
  if (j.processes.ps_ranges == 0) j.processes.ps_ranges = j.processes.num_ps_pods;
  if (j.processes.ps_ranges < j.processes.num_ps_pods)
    throw usage_error(fmt::format("--ps_ranges={}: fewer than --num_ps_pods={}", j.processes.ps_ranges,
                                  j.processes.num_ps_pods));
}

inline void resolve_split(job& j, std::string const& share) {
  auto const n = number_from<double>(share);
  if (!n || !(*n >= 0 && *n < 1))
    throw usage_error(fmt::format("--validation_split={}: expected at least 0 and less than 1", share));
  j.data.validation_split = *n;
  if (j.command == command::train && j.data.validation_split > 0 && !j.data.validation_data.empty())
    throw usage_error("--validation_split takes records of --training_data: leave out --validation_data");
}

/// Checks the paths that must be directories, and those that may name objects of buckets.
inline void check_buckets(job& j) {
  for (auto const& [flag, path] :
       {std::pair{"wrong", &j.evaluation.wrong}, std::pair{"data_cache", &j.data.data_cache},
        std::pair{"profile", &j.compute.profile}, std::pair{"kernel_cache", &j.compute.kernel_cache},
        std::pair{"log_file_path", &j.log.log_file_path},
        std::pair{"preemption_notice", &j.processes.preemption_notice}})
    if (path->starts_with("s3://") || path->starts_with("file:s3://"))
      throw usage_error(
          fmt::format("--{}={}: only records, checkpoints, models, predictions and event files may lie in "
                      "buckets: name a path of a machine or of a volume (docs/data.md, Buckets)",
                      flag, *path));
  for (auto const& [flag, path] :
       {std::pair{"checkpoint_dir", &j.checkpoints.checkpoint_dir},
        std::pair{"checkpoint_dir_for_init", &j.checkpoints.checkpoint_dir_for_init},
        std::pair{"output", &j.outputs.output},
        std::pair{"tensorboard_log_dir", &j.observe.tensorboard_log_dir},
        std::pair{"prediction_outputs", &j.outputs.prediction_outputs}})
    if (path->starts_with("s3://") && path->find_first_of("*?[") != path->npos)
      throw usage_error(fmt::format("--{}={}: write it without *, ? and [", flag, *path));
  std::string& checkpoints = j.checkpoints.checkpoint_dir;
  if (bucket::names_objects(checkpoints)) checkpoints = bucket::without_slashes(checkpoints);
  try {
    bytes_of(j.data.data_cache_size);
  } catch (error const& e) {
    throw usage_error(fmt::format("--data_cache_size={}: {}", j.data.data_cache_size, e.what()));
  }
}

inline void resolve_tasks(job& j, std::uint64_t records_per_task) {
  if (records_per_task == 0) return;
  auto const minibatch = std::uint64_t(j.data.minibatch_size);
  if (records_per_task % minibatch != 0 || records_per_task / minibatch > 1 << 20)
    throw usage_error(fmt::format("--records_per_task={}: expected a multiple of --minibatch_size={}",
                                  records_per_task, j.data.minibatch_size));
  j.data.num_minibatches_per_task = int(records_per_task / minibatch);
}

/// Rounds of workers' own steps: each is pushed when it ends.
inline void resolve_rounds(job& j) {
  auto& t = j.training;
  if (!(t.outer_learning_rate > 0) || !(t.outer_learning_rate <= 10))
    throw usage_error(
        fmt::format("--outer_learning_rate={}: expected more than 0, and at most 10", t.outer_learning_rate));
  if (!(t.outer_momentum >= 0 && t.outer_momentum < 1))
    throw usage_error(
        fmt::format("--outer_momentum={}: expected at least 0 and less than 1", t.outer_momentum));
  if (j.command != command::train || j.strategy == strategy::local) t.outer_steps = 1;
  if (t.outer_steps == 1) return;
  auto const refuse = [](std::string_view why) { throw usage_error(fmt::format("--outer_steps: {}", why)); };
  if (j.strategy == strategy::allreduce)
    refuse(
        "rounds are pushed to parameter servers, and need no all-reduce: give "
        "--distribution_strategy=ParameterServerStrategy");
  if (t.grads_to_wait > 1 || t.sync_version_tolerance)
    refuse("each round is a step: leave out --grads_to_wait and --sync_version_tolerance");
  if (t.get_model_steps > 1) refuse("a worker pulls after each round: leave out --get_model_steps");
  if (t.verify_gradients > 0)
    refuse("a round cannot be computed again by another worker: leave out --verify_gradients");
  // Of what a round passes by, servers have one state only.
  for (auto const& [flag, steps] : {std::pair{"evaluation_steps", j.evaluation.evaluation_steps},
                                    std::pair{"checkpoint_steps", j.checkpoints.checkpoint_steps}})
    if (steps > 0 && steps < std::uint64_t(t.outer_steps))
      throw usage_error(fmt::format("--{}={}: a round of --outer_steps={} is pushed whole: give at least {}",
                                    flag, steps, t.outer_steps, t.outer_steps));
  t.use_async = true;
  t.get_model_steps = t.outer_steps;
}

inline void resolve_steps(job& j) {
  bool const nccl =
      j.strategy == strategy::allreduce && j.training.allreduce_transport == allreduce_transport::nccl;
  if (nccl && (j.training.fixed_global_batch || j.training.gradients == gradient_format::bfloat16))
    throw usage_error(
        fmt::format("--allreduce_transport=nccl has no sums in a fixed order, nor of bfloat16: leave out {}",
                    j.training.fixed_global_batch ? "--fixed_global_batch" : "--gradients=bfloat16"));
  if (!(j.training.moving_average < 1))
    throw usage_error(
        fmt::format("--moving_average={}: expected at least 0 and less than 1", j.training.moving_average));
  if (!(j.training.verify_gradients <= 0.1f) ||
      (j.training.verify_gradients > 0 && j.training.verify_gradients < 1e-9f))
    throw usage_error(
        fmt::format("--verify_gradients={}: expected 0, or 1e-9 to 0.1; 0.01 is one minibatch in a hundred",
                    j.training.verify_gradients));
  if (nccl && j.training.moving_average > 0)
    throw usage_error(
        "--allreduce_transport=nccl makes steps on GPUs, and the hosts keep an average of the weights: leave "
        "out --moving_average");
  if (nccl && !j.training.freeze.empty())
    throw usage_error(
        "--allreduce_transport=nccl makes steps on the GPUs, which train all variables: leave out --freeze");
  read_rates(j.training.rates);
  resolve_rounds(j);
  if (j.training.use_async) j.training.grads_to_wait = 1;
  if (!j.training.use_async || j.strategy == strategy::allreduce) j.training.get_model_steps = 1;
  bool const together =
      !j.training.use_async && (j.training.grads_to_wait > 1 || j.training.sync_version_tolerance);
  if (j.training.lr_staleness_modulation && j.strategy == strategy::parameter_server && together)
    throw usage_error(
        "--lr_staleness_modulation is for gradients that are steps by themselves: add --use_async");
}

inline void resolve_precision(job const& j) {
  if (j.compute.precision != precision::int8) return;
  if (j.command == command::train)
    throw usage_error(
        "--precision=int8 works for evaluate and predict only: train with bfloat16, or leave it out for "
        "float32");
  if (j.compute.device == worker::device_kind::cuda)
    throw usage_error("--precision=int8 works on processors only: leave out --device=cuda");
}

inline void resolve_metrics(job& j, parsed_flags const& a) {
  if (!a.save_best.empty()) j.evaluation.save_best = read_monitor("--save_best", a.save_best);
  if (!a.early_stopping.empty()) j.evaluation.early_stopping = read_early_stopping(a.early_stopping);
  if (!j.evaluation.save_best && !j.evaluation.early_stopping) return;
  char const* const flag = j.evaluation.save_best ? "save_best" : "early_stopping";
  if (j.evaluation.evaluation_steps == 0)
    throw usage_error(
        fmt::format("--{} needs --evaluation_steps=N and --validation_data: without evaluations it has "
                    "nothing to compare",
                    flag));
  if (j.evaluation.save_best && j.checkpoints.checkpoint_dir.empty())
    throw usage_error("--save_best needs --checkpoint_dir, where the best model goes");
}

inline void resolve_export(job const& j, cli::command_line const& given) {
  if (j.command != command::train) return;
  check_export_file(given);
  if (!j.outputs.export_onnx.empty() && j.outputs.output.empty())
    throw usage_error("--export_onnx needs --output, where the exported model lies");
  for (char const* const flag : {"export_fold_batch_norm", "export_preprocess", "export_rows_as_inputs"})
    if (given.truth(flag) && j.outputs.export_onnx.empty())
      throw usage_error(
          fmt::format("--{} applies to the file that --export_onnx=FILE writes: name one", flag));
}

}  // namespace detail

EDL_INLINE void check_export_file(cli::command_line const& given) {
  std::string const& file = given.text("export_onnx");
  if (bucket::names_objects(file))
    throw usage_error(fmt::format("--export_onnx={}: no bucket is written: name a file, and copy it there",
                                  printable(file)));
  if (file.ends_with(".safetensors"))
    throw usage_error(
        fmt::format("--export_onnx={}: a file of that name is a model in edl's own format, which must not be "
                    "overwritten; give a name that ends in .onnx",
                    printable(file)));
}

EDL_INLINE resolved resolve(command what, cli::command_line const& given) {
  parsed_flags a;
  for (job_flag const& f : job_flags()) {
    if (std::ranges::find(f.commands, what) == f.commands.end()) continue;
    if (f.flag.repeats) {
      for (std::string const& value : given.all(f.flag.name)) f.put(a, value);
    } else if (given.given(f.flag.name) || f.flag.name == "job_name") {
      f.put(a, given.text(f.flag.name));
    }
  }
  job& j = a.job;
  j.command = what;
  bool const processes = j.processes.num_workers > 0 || j.processes.num_ps_pods > 0;
  j.strategy = a.strategy.value_or(processes ? strategy::parameter_server : strategy::local);
  resolved s;
  s.notes = idle_notes(a, given);
  detail::resolve_processes(j);
  detail::resolve_tasks(j, a.records_per_task);
  detail::resolve_steps(j);
  if (j.checkpoints.checkpoint_steps > 0 && j.checkpoints.checkpoint_dir.empty())
    throw usage_error("--checkpoint_steps needs --checkpoint_dir, where the checkpoints go");
  detail::resolve_split(j, a.validation_split);
  detail::check_buckets(j);
  if (j.evaluation.evaluation_steps > 0 && what == command::train && j.data.validation_data.empty() &&
      j.data.validation_split == 0)
    throw usage_error(
        "--evaluation_steps needs records to evaluate on: add --validation_data or --validation_split");
  detail::resolve_export(j, given);
  if (j.observe.tensorboard_histograms > 0 || j.observe.tensorboard_pictures > 0) {
    std::string const flag =
        j.observe.tensorboard_histograms > 0 ? "--tensorboard_histograms" : "--tensorboard_pictures";
    if (j.observe.tensorboard_log_dir.empty())
      throw usage_error(flag + " needs --tensorboard_log_dir, where they go");
    if (j.strategy != strategy::local)
      throw usage_error(flag +
                        " works in a job of one process, which has the whole model: leave out --num_workers "
                        "and --num_ps_pods");
  }
  if (what == command::train && j.evaluation.worst > 0 &&
      (!j.observe.dashboard || j.evaluation.evaluation_steps == 0))
    throw usage_error(
        "--worst: a training shows these records on its page: add --dashboard=PORT and --evaluation_steps=N, "
        "or evaluate a version of it");
  if (what == command::evaluate && j.evaluation.worst > 0 && j.evaluation.wrong.empty() &&
      j.strategy != strategy::local)
    throw usage_error(
        "--worst in several processes needs --wrong=DIR, a directory that all of them can read and write: "
        "their results are merged there");
  if (j.observe.dashboard_certificate.empty() != j.observe.dashboard_key.empty())
    throw usage_error("--dashboard_certificate and --dashboard_key belong together: give both, or none");
  cli::list_of("prediction_columns", j.outputs.prediction_columns);
  if (j.outputs.prediction_format == prediction_format::npy && !j.outputs.prediction_columns.empty())
    throw usage_error(
        "--prediction_columns and --prediction_format=npy: an array holds only the model's numbers; use "
        "jsonl");
  detail::resolve_precision(j);
  detail::resolve_metrics(j, a);
  s.job = j;
  return s;
}

}  // namespace edl

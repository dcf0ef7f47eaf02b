// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "edl/core/inline.hpp"
#include "edl/core/names.hpp"
#include "edl/job/config/flags.hpp"

namespace edl {
namespace detail::job_flags {

template <class E>
cli::words all_names() {
  auto const& names_in_order = names(E{});
  return {names_in_order.begin(), names_in_order.end()};
}

inline void read(std::string& into, std::string const& value) { into = value; }
inline void read(bool& into, std::string const& value) { into = cli::parse_truth("", value); }
template <class T>
  requires std::is_arithmetic_v<T>
void read(T& into, std::string const& value) {
  into = cli::parse_number<T>(value);
}
template <class E>
  requires std::is_enum_v<E>
void read(E& into, std::string const& value) {
  into = *value_of<E>(value);
}
template <class T>
void read(std::optional<T>& into, std::string const& value) {
  read(into.emplace(), value);
}

inline std::string written(std::string const& value) { return value; }
inline std::string written(float value) { return fmt::format("{}", value); }
inline std::string written(bool value) { return value ? "true" : "false"; }
template <class T>
  requires std::is_arithmetic_v<T>
std::string written(T value) {
  return std::to_string(value);
}
template <class E>
  requires std::is_enum_v<E>
std::string written(E value) {
  return std::string(name_of(value));
}
template <class T>
std::string written(std::optional<T> const& value) {
  return value ? written(*value) : std::string();
}

template <class T>
struct held {
  using type = T;
};
template <class T>
struct held<std::optional<T>> {
  using type = T;
};

/// The part of the parsed flags with this type.
template <class Part>
Part& part(parsed_flags& a) {
  auto& j = a.job;
  return std::get<Part&>(std::tie(a, j, j.data, j.compute, j.training, j.evaluation, j.observe, j.checkpoints,
                                  j.outputs, j.processes, j.log));
}

/// Builds the flags' table. What a row does not set is as in the previous row, or as its type implies.
class table {
 public:
  class row {
   public:
    explicit row(job_flag& of) : entry_(of) {}
    row from(std::int64_t least, std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
      entry_.flag.least = least, entry_.flag.most = most;
      return *this;
    }
    row upto(double highest) { return entry_.flag.highest = highest, *this; }
    row alias(std::string name) { return entry_.flag.aliases.push_back(std::move(name)), *this; }
    row only(std::vector<command> commands) { return entry_.commands = std::move(commands), *this; }
    row needed_by(std::vector<command> commands) { return entry_.needs = std::move(commands), *this; }
    /// Repeated values are joined with ';' into one text.
    row repeated(std::string job::* member) {
      entry_.flag.repeats = true;
      entry_.put = [member](parsed_flags& a, std::string const& value) {
        std::string& all = a.job.*member;
        all += (all.empty() ? "" : ";") + value;
      };
      return *this;
    }
    /// ElasticDL has the flag under this name, or under the same one.
    row elasticdl(std::string name = {}) {
      entry_.elasticdl = name.empty() ? entry_.flag.name : std::move(name);
      return *this;
    }

   private:
    job_flag& entry_;
  };

  void group(std::string name) { group_ = std::move(name); }

  /// `member` belongs to `parsed_flags`, to the job, or to one of its parts.
  template <class T, class Part>
  row flag(std::string name, T Part::* member, std::string read_by, std::string help) {
    return add<typename held<T>::type>(
        std::move(name), written(Part().*member), std::move(read_by), std::move(help),
        [member](parsed_flags& a, std::string const& value) { read(part<Part>(a).*member, value); });
  }

  std::vector<job_flag> take() { return std::move(all_); }

 private:
  template <class T>
  row add(std::string name, std::string fallback, std::string read_by, std::string help,
          std::function<void(parsed_flags&, std::string const&)> put) {
    job_flag f;
    f.flag = {
        .name = std::move(name), .fallback = std::move(fallback), .help = std::move(help), .group = group_};
    f.read_by = std::move(read_by), f.put = std::move(put);
    f.commands = {command::train, command::evaluate, command::predict};
    if constexpr (std::is_enum_v<T>) f.flag.choices = all_names<T>();
    if constexpr (std::same_as<T, bool>) f.flag.type = cli::flag::value_type::truth;
    if constexpr (std::floating_point<T>) {
      f.flag.type = cli::flag::value_type::number;
      f.flag.lowest = 0;
      f.flag.highest = double(std::numeric_limits<T>::max());
    }
    if constexpr (std::integral<T> && !std::same_as<T, bool>) {
      f.flag.type = cli::flag::value_type::whole;
      f.flag.least = 0;
    }
    all_.push_back(std::move(f));
    return row(all_.back());
  }

  std::string group_;
  std::vector<job_flag> all_;
};

constexpr std::uint64_t most_processes = 10'000, most_records = 1 << 20;

inline void data(table& t) {
  using enum command;
  t.group("Data");
  t.flag("training_data", &job_options::data::training_data, "master, workers",
         "records to train on: a folder of pictures, a table, a directory of RecordIO files, or the "
         "published MNIST or CIFAR-10 files; a list or a pattern of such paths works, too")
      .alias("training_data_dir")
      .only({train})
      .needed_by({train})
      .elasticdl();
  t.flag("validation_data", &job_options::data::validation_data, "master, workers",
         "records to evaluate on, in any format of --training_data")
      .alias("evaluation_data_dir")
      .only({train, evaluate})
      .needed_by({evaluate})
      .elasticdl();
  t.flag("validation_split", &parsed_flags::validation_split, "master, workers",
         "share of --training_data to hold out for evaluation, in place of --validation_data: 0.1 holds out "
         "one of every ten consecutive records, drawn from --seed; evaluate: use that share of "
         "--validation_data")
      .only({train, evaluate});
  t.flag("worst", &job_options::evaluation::worst, "master, workers",
         "report this many records with the highest loss, highest first; train: of the last evaluation, on "
         "the page of --dashboard; 0: none")
      .from(0, 10'000)
      .only({train, evaluate});
  t.flag(
       "wrong", &job_options::evaluation::wrong, "workers",
       "directory for the records that the model classifies wrongly: pictures as PNG, others in wrong.jsonl")
      .only({evaluate});
  t.flag("prediction_data", &job_options::data::prediction_data, "master, workers", "records to predict")
      .only({predict})
      .needed_by({predict})
      .elasticdl();
  t.flag(
       "prediction_outputs", &job_options::outputs::prediction_outputs, "workers",
       "directory, or s3://BUCKET/PREFIX, for the predictions, which are written as one file in the order of "
       "the data")
      .only({predict});
  t.flag("prediction_format", &job_options::outputs::prediction_format, "master, workers",
         "format of the predictions: a table with a header, JSON lines, a NumPy array, or RecordIO")
      .only({predict});
  t.flag("prediction_columns", &job_options::outputs::prediction_columns, "workers",
         "features of each record to write beside its prediction, separated by ',': id,name")
      .only({predict});
  t.flag("data_cache", &job_options::data::data_cache, "master, workers",
         "directory for cached objects of s3:// paths, and for those to upload, shared by the processes of a "
         "machine; without the flag $XDG_CACHE_HOME/edl or ~/.cache/edl");
  t.flag("data_cache_size", &job_options::data::data_cache_size, "master, workers",
         "largest total size of the cached objects; beyond it those not in use are removed, least recently "
         "used first");
  t.flag("overfit_batches", &job_options::data::overfit_batches, "master, workers",
         "train on only the first so many minibatches of the data, in every epoch, to debug a model; 0: on "
         "all of them")
      .from(0, most_records)
      .only({train});
  t.flag("num_epochs", &job_options::data::num_epochs, "master, workers",
         "passes over the records; 0 or less: no limit")
      .from(-1'000'000'000, 1'000'000'000)
      .only({train})
      .elasticdl();
  t.flag("max_step", &job_options::data::max_step, "master",
         "stop after exactly this many steps, even in the middle of a task; all-reduce: after this many "
         "minibatches; 0: no limit")
      .only({train})
      .elasticdl();
  t.flag("shuffle", &job_options::data::shuffle, "master, workers",
         "visit tasks, and the records of each task, in an order drawn from --seed")
      .only({train});
  t.flag("minibatch_size", &job_options::data::minibatch_size, "master, workers",
         "records in one step of one worker")
      .from(1, most_records)
      .elasticdl();
  t.flag("num_minibatches_per_task", &job_options::data::num_minibatches_per_task, "master",
         "minibatches that a worker leases at a time")
      .from(1, most_records)
      .elasticdl();
  t.flag("records_per_task", &parsed_flags::records_per_task, "master",
         "--num_minibatches_per_task in records: a multiple of --minibatch_size; 0: use that flag")
      .only({train})
      .elasticdl();
  t.flag("missing", &job_options::data::missing, "master, workers",
         missing_flag().help + "; not given: as in the training of the model, if that is known");
  t.flag("skip_damaged", &job_options::data::skip_damaged, "master, workers",
         "skip and count damaged records and files instead of stopping");
  t.flag("max_damaged", &job_options::data::max_damaged, "master",
         "with --skip_damaged: largest share of the records that may be skipped (one record always may); "
         "beyond it the job ends with an error")
      .upto(1);
  t.flag("loader_threads", &job_options::data::loader_threads, "workers",
         "threads that read and decode ahead, for each data set; 0: the compute threads do so between steps "
         "(with a GPU: one thread for each core)")
      .from(0, 256);
  t.flag("max_task_retries", &job_options::data::max_task_retries, "master",
         "attempts at a task that fails; if the content of a record is the cause, only one other worker, if "
         "any, tries it again")
      .from(1, 1000);
}

inline void computing(table& t) {
  t.group("Computing");
  t.flag("num_threads", &job_options::compute::num_threads, "workers",
         "compute threads of a worker; 0: the cores that its cgroup grants, shared with the other workers of "
         "a local job")
      .from(0, 1024);
  t.flag("device", &job_options::compute::device, "workers",
         "device that computes; auto: a GPU if the machine has one");
  t.flag("precision", &job_options::compute::precision, "workers",
         "precision of products; tf32: on a GPU, with factors rounded to 11 bits; bfloat16: with factors "
         "rounded to 8 bits, and so are the samples between convolutions, on a GPU between all layers; int8: "
         "with factors quantised to 8 bits, for evaluate and predict on a processor");
  t.flag("kernels", &job_options::compute::kernels, "workers",
         "how kernels are chosen; measured: the fastest for each shape; fixed: by rule; direct: by rule, "
         "without Winograd's algorithm; own: without a library");
  t.flag("kernel_cache", &job_options::compute::kernel_cache, "workers",
         "file that stores the measurements of kernels; none: no file; without the flag: edl/kernels in the "
         "user's cache directory");
  t.flag("deterministic", &job_options::compute::deterministic, "workers",
         "give the same bits in every run on the same kind of machine with the same number of threads: uses "
         "--kernels=fixed in place of measured");
  t.flag("keep_samples", &job_options::compute::keep_samples, "workers",
         "keep samples in GPU memory after the first epoch; auto: if a quarter of the free memory is enough; "
         "on: fail if they do not fit");
  t.flag("activations", &job_options::compute::activations, "workers",
         "which results between layers are kept for the backward pass; recomputed: all but those of "
         "normalisations and gelus, on a GPU with room all; float32: all; bfloat16: all, in half the memory; "
         "compact: like recomputed, but kept as bfloat16, on a GPU like recomputed; without the flag: "
         "compact with --precision=bfloat16, otherwise recomputed; float32 also keeps samples between layers "
         "in float32 for any --precision of a processor");
  t.flag("memory_budget", &job_options::compute::memory_budget, "workers",
         "MB that the network may take, as --explain_plan counts them; to stay within it, as few results as "
         "possible are recomputed in the backward pass (activation checkpointing), with the same bits; on "
         "processors only; 0: no limit")
      .from(0, 1'000'000'000)
      .only({command::train});
  t.flag("explain_plan", &job::explain_plan, "the command itself",
         "print how the network is computed (variables, steps, memory, kernels), and exit");
  t.flag("dry_run", &job::dry_run, "all",
         "try the data, a step, an evaluation, a checkpoint and the export with one minibatch for each "
         "worker, report the results, and keep nothing")
      .only({command::train});
  t.flag("profile", &job_options::compute::profile, "workers",
         "directory for a profile of each worker: the time for reading, each layer, the loss, the optimiser, "
         "evaluation and waiting, as a table and as a trace for Perfetto; profiles of an earlier run are "
         "removed");
}

inline void training(table& t) {
  std::vector<command> const train{command::train};
  t.group("Training");
  t.flag("use_async", &job_options::training::use_async, "servers, workers",
         "apply each gradient as soon as it arrives")
      .only(train)
      .elasticdl();
  t.flag("gradients", &job_options::training::gradients, "workers",
         "format in which gradients travel; bfloat16: half the bytes, rounded to 8 bits; they are summed in "
         "float32")
      .only(train);
  t.flag("grads_to_wait", &job_options::training::grads_to_wait, "master, servers",
         "synchronous training: minibatches whose gradients are averaged into one step; with 1, each "
         "gradient is a step as soon as it arrives, even one computed from an older version")
      .from(1, most_records)
      .only(train)
      .elasticdl();
  t.flag("sync_version_tolerance", &job_options::training::sync_version_tolerance, "servers",
         "synchronous training: versions that a gradient may be behind before it must be computed again; "
         "without the flag 0, and with --grads_to_wait=1 no limit")
      .only(train)
      .elasticdl();
  t.flag(
       "lr_staleness_modulation", &job_options::training::lr_staleness_modulation, "servers",
       "asynchronous training: divide the learning rate by the number of versions that a gradient is behind")
      .only(train)
      .elasticdl();
  t.flag("fixed_global_batch", &job_options::training::fixed_global_batch, "master, workers",
         "all-reduce: a step always has --num_workers minibatches and gives the same bits, however many "
         "workers run")
      .only(train);
  t.flag("allreduce_transport", &job_options::training::allreduce_transport, "workers",
         "all-reduce: where gradients are summed; auto: the workers' GPUs by NCCL if all of them can join, "
         "otherwise the hosts; ring: the hosts")
      .only(train);
  t.flag(
       "table_copies", &job_options::training::table_copies, "workers",
       "all-reduce: workers that hold each row of the embedding tables once these exceed --small_tables_mib; "
       "if all of them are lost, the job goes back to a checkpoint; 0: every worker holds all rows")
      .from(0, most_processes);
  t.flag("small_tables_mib", &job_options::training::small_tables_mib, "workers",
         "all-reduce: size of all embedding tables, optimiser slots included, in MiB, up to which every "
         "worker holds all rows")
      .from(0, 1 << 20);
  t.flag("get_model_steps", &job_options::training::get_model_steps, "workers",
         "asynchronous training: pull the model every so many minibatches, and train on the local copy in "
         "between")
      .from(1, most_records)
      .only(train)
      .elasticdl();
  t.flag("outer_steps", &job_options::training::outer_steps, "master, servers, workers",
         "parameter servers: each worker makes so many steps of its own, and then pushes their sum, for slow "
         "links between the machines; 1: each gradient is pushed")
      .from(1, 4096)
      .only(train);
  t.flag("outer_learning_rate", &job_options::training::outer_learning_rate, "servers",
         "with --outer_steps: the rate of the servers' steps")
      .only(train);
  t.flag("outer_momentum", &job_options::training::outer_momentum, "servers",
         "with --outer_steps: Nesterov's momentum of the servers' steps")
      .only(train);
  t.flag("clip_value", &job_options::training::clip_value, "workers",
         "limit the absolute value of each element of a minibatch's gradient; 0: no limit")
      .only(train);
  t.flag("clip_norm", &job_options::training::clip_norm, "workers",
         "scale a minibatch's gradient, rows of tables included, to at most this Euclidean norm; 0: no limit")
      .only(train);
  t.flag("verify_gradients", &job_options::training::verify_gradients, "master, workers",
         "share of the minibatches, at most 0.1, that a second worker with the same kind of processor "
         "computes again; a worker whose gradients are wrong is replaced, and its work is undone; 0: none")
      .only(train);
  t.flag("leave_bad_nodes", &job_options::training::leave_bad_nodes, "master, workers",
         "each worker tests its machine first, and exits if that computes or stores data wrongly; a worker "
         "that is much slower than the others is replaced, in a cluster on another node")
      .only(train);
  t.flag("moving_average", &job_options::training::moving_average, "servers, workers",
         "decay of a moving average of the weights, less than 1; evaluations, --output and --save_best use "
         "the average in place of the weights; 0: no average")
      .only(train);
  t.flag("evaluation_steps", &job_options::evaluation::evaluation_steps, "master, workers",
         "evaluate every so many versions of the model, and the last one; 0: only the last one")
      .only(train)
      .elasticdl();
  t.flag("save_best", &parsed_flags::save_best, "master",
         "METRIC[:max|min]: keep the model with the best value of this metric, as "
         "CHECKPOINT_DIR/best/model.safetensors")
      .only(train);
  t.flag("early_stopping", &parsed_flags::early_stopping, "master",
         "METRIC[:max|min][,patience=N][,min_delta=X]: end the job after N evaluations in a row (3) that did "
         "not improve the metric by more than X (0)")
      .only(train);
  t.flag("log_loss_steps", &job_options::observe::log_loss_steps, "workers",
         "log the loss every so many versions")
      .from(1)
      .only(train)
      .elasticdl();
  t.flag("history_steps", &job_options::observe::history_steps, "master",
         "with --checkpoint_dir: write a line of history.jsonl every so many versions and at each "
         "evaluation; 0: only at evaluations")
      .only(train);
  t.flag("tensorboard_log_dir", &job_options::observe::tensorboard_log_dir, "master",
         "directory or s3://BUCKET/PREFIX for TensorBoard event files with the scalars of the history")
      .only(train)
      .elasticdl();
  t.flag("tensorboard_histograms", &job_options::observe::tensorboard_histograms, "master",
         "with --tensorboard_log_dir: write a histogram of each variable and of its gradient every so many "
         "versions, in a job of one process (Local) on a processor; 0: none")
      .only(train);
  t.flag("tensorboard_pictures", &job_options::observe::tensorboard_pictures, "master",
         "with --tensorboard_log_dir: write the first so many records of the evaluation data, or else of the "
         "training data, as the network sees them, in a job of one process (Local) whose network takes "
         "pictures")
      .from(0, 1000)
      .only(train);
}

inline void model(table& t) {
  using enum command;
  t.group("Model");
  t.flag("checkpoint_dir", &job_options::checkpoints::checkpoint_dir, "master",
         "directory or s3://BUCKET/PREFIX for checkpoints; resumes from the newest")
      .only({train})
      .elasticdl();
  t.flag(
       "checkpoint_steps", &job_options::checkpoints::checkpoint_steps, "master",
       "write a checkpoint every so many versions of the model, and of the last one; 0: only of the last one")
      .only({train})
      .elasticdl();
  t.flag("delta_checkpoints", &job_options::checkpoints::delta_checkpoints, "all",
         "checkpoints in a row that store only the changed rows of embedding tables, before the next one "
         "stores all; 0: each stores all")
      .from(0, 1000)
      .only({train});
  t.flag("keep_checkpoint_max", &job_options::checkpoints::keep_checkpoint_max, "master",
         "number of newest checkpoints to keep; 0: all")
      .from(0, 1'000'000'000)
      .only({train})
      .elasticdl();
  t.flag("ignore_damaged_checkpoints", &job_options::checkpoints::ignore_damaged_checkpoints, "master",
         "if no checkpoint in --checkpoint_dir is usable, start from the beginning instead of stopping")
      .only({train});
  t.flag("checkpoint_dir_for_init", &job_options::checkpoints::checkpoint_dir_for_init, "master",
         "where initial values come from: a checkpoint (version-N), a --checkpoint_dir (its newest one), an "
         "exported model.safetensors or an --output directory with one; also s3://BUCKET/KEY")
      .needed_by({evaluate, predict})
      .elasticdl();
  t.flag("base_model", &job_options::checkpoints::base_model, "master, workers",
         "of a network with adapters: the model that is adapted, given like --checkpoint_dir_for_init. Every "
         "process reads it; evaluate and predict by themselves find that of the training");
  t.flag("skip_mismatch", &job_options::checkpoints::skip_mismatch, "master, servers, workers",
         "with --checkpoint_dir_for_init: load variables that match in name and shape, and leave the others "
         "at their initial values")
      .only({train});
  t.flag("freeze", &job_options::training::freeze, "all",
         "variables that are not trained: names or shell patterns (*, ?, [ab]), separated by ','")
      .only({train});
  t.flag("rates", &job_options::training::rates, "all",
         "factors of the learning rate for parts of the model, as conv2d*=0.1,dense/kernel=2; names of "
         "variables and tables, or patterns as in --freeze; they come after those of the model, and the last "
         "match counts")
      .only({train});
  t.flag("output", &job_options::outputs::output, "master", "directory, or s3://BUCKET/PREFIX, for the model")
      .only({train})
      .elasticdl();
  t.flag("export_onnx", &job_options::outputs::export_onnx, "master",
         "also write the trained model of --output to this file as ONNX; if it exceeds 1 GiB, its tensors "
         "are stored beside it in FILE.CRC32.data")
      .only({train});
  t.flag("export_fold_batch_norm", &job_options::outputs::export_fold_batch_norm, "master",
         "with --export_onnx: fold batch normalisation into the weights of the convolution or dense layer "
         "before it")
      .only({train});
  t.flag("export_preprocess", &job_options::outputs::export_preprocess, "master",
         "with --export_onnx: the file takes the raw numbers of a record, and contains the factors and "
         "constants by which `feed` turns them into inputs")
      .only({train});
  t.flag("export_rows_as_inputs", &job_options::outputs::export_rows_as_inputs, "master",
         "with --export_onnx: leave embedding tables out of the file, which then takes their rows in place "
         "of ids")
      .only({train});
  t.flag("output_format", &job_options::evaluation::format, "master",
         "format of the printed metrics: a line for a person, or a JSON object")
      .alias("o")
      .only({evaluate});
  t.flag("seed", &job::seed, "all", "seed of initial values, shuffling and dropout");
  t.flag("set", &job::set, "all",
         "set a hyperparameter that the model declares, as rate=0.05; for several repeat --set, or separate "
         "them by ';' or ','")
      .alias("model_params")
      .repeated(&job::set)
      .elasticdl("model_params");
}

inline void processes(table& t) {
  t.group("Job");
  t.flag("job_name", &job::name, "all",
         "name of the job in logs and checkpoints; a job resumes only from its own checkpoints")
      .elasticdl();
  t.flag("distribution_strategy", &parsed_flags::strategy, "all",
         "Local: one process; ParameterServerStrategy: a master, servers and workers; AllreduceStrategy: a "
         "master, and workers that each hold a copy of the model")
      .elasticdl();
  t.flag("num_workers", &job_options::processes::num_workers, "master, workers",
         "number of workers; 0: 2 of them, if the strategy needs any")
      .from(0, most_processes)
      .elasticdl();
  t.flag("num_ps_pods", &job_options::processes::num_ps_pods, "master, servers",
         "number of parameter servers; 0: one, if the strategy needs any")
      .from(0, most_processes)
      .elasticdl();
  t.flag("ps_replicas", &job_options::processes::ps_replicas, "master",
         "servers that hold each range of the variables; with 2, an update is acknowledged once both have "
         "it, and the loss of one server loses nothing")
      .from(1, 2);
  t.flag("ps_ranges", &job_options::processes::ps_ranges, "master, servers",
         "ranges that the variables are divided into, which is the largest number of servers that `scale` "
         "allows; 0: --num_ps_pods")
      .from(0, most_processes);
  t.flag("relaunch_on_worker_failure", &job_options::processes::relaunch_on_worker_failure, "master",
         "how often a worker that fails by itself is replaced; being killed does not count, except for lack "
         "of memory")
      .from(0, 1'000'000)
      .elasticdl();
  t.flag("master_timeout", &job_options::processes::master_timeout, "servers, workers",
         "seconds that workers and servers wait for an absent master before they exit with code 75")
      .from(1, 30 * 24 * 3600);
  t.flag(
      "preemption_notice", &job_options::processes::preemption_notice, "servers, workers",
      "where a process learns that its machine is about to be taken away, so that it hands over before: aws, "
      "gcp, azure: this cloud's metadata service; auto: the one that answers; file:PATH: a file that then "
      "exists; off: nowhere");
  t.flag("host", &job_options::processes::host, "all",
         "address that a process listens on and announces to the others");
  t.flag("port", &job_options::processes::port, "master", "port of the master; 0: any free port")
      .from(0, 65535)
      .elasticdl();
  t.flag("metrics_port", &job_options::processes::metrics_port, "all",
         "serve GET /metrics (OpenMetrics) on --host at this port; 0: any free port; on one machine the "
         "master uses this port, and the other processes any free ones; without the flag: no metrics")
      .from(0, 65535);
  t.flag("transport_security", &job_options::processes::transport_security, "all",
         "protection of TCP connections between the job's processes; tls: TLS 1.3 with a key derived from "
         "EDL_JOB_TOKEN; none: anybody with control of the network can read and alter them");
}

inline void log(table& t) {
  t.group("Log");
  t.flag("log_level", &job_options::log::log_level, "all", "lowest severity that is logged").elasticdl();
  t.flag("verbose", &job_options::log::verbose, "all",
         "also log flags, addresses and source locations, as --log_level=DEBUG does, and as roles in a "
         "cluster or started by hand do");
  t.flag("dashboard", &job_options::observe::dashboard, "master",
         "serve a read-only page about the running job at this port; 0: any free port, which the log names; "
         "without the flag: no page")
      .from(0, 65535)
      .only({command::train});
  t.flag("dashboard_host", &job_options::observe::dashboard_host, "master",
         "address that --dashboard listens on; clients on other machines must send the job's token: "
         "EDL_JOB_TOKEN, or the one in the log")
      .only({command::train});
  t.flag("dashboard_certificate", &job_options::observe::dashboard_certificate, "master",
         "PEM file of the certificate chain with which --dashboard uses TLS")
      .only({command::train});
  t.flag("dashboard_key", &job_options::observe::dashboard_key, "master",
         "PEM file of the private key of --dashboard_certificate")
      .only({command::train});
  t.flag("log_file_path", &job_options::log::log_file_path, "all",
         "also append the log of every process to this file")
      .elasticdl();
}

inline std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

/// "needed", the value, or nothing.
inline std::string default_cell(job_flag const& f) {
  if (f.flag.name == "job_name") return "the binary's name";
  return f.needs.size() == f.commands.size() ? "needed"
         : f.flag.fallback.empty()           ? ""
                                             : "`" + f.flag.fallback + "`";
}

inline std::string type_cell(cli::flag const& f) {
  using enum cli::flag::value_type;
  if (!f.choices.empty()) return fmt::format("`{}`", fmt::join(f.choices, "`, `"));
  if (f.type == truth) return "true or false";
  if (f.type == number && f.highest < double(std::numeric_limits<float>::max()))
    return fmt::format("{} to {}", f.lowest, f.highest);
  if (f.type == number) return fmt::format("{} or more", f.lowest);
  if (f.type != whole) return "text";
  bool const open = f.most == std::numeric_limits<std::uint64_t>::max();
  return open ? fmt::format("{} or more", f.least) : fmt::format("{} to {}", f.least, f.most);
}

}  // namespace detail::job_flags

EDL_INLINE std::vector<job_flag> const& job_flags() {
  static std::vector<job_flag> const all = [] {
    detail::job_flags::table t;
    for (auto* part : {detail::job_flags::data, detail::job_flags::computing, detail::job_flags::training,
                       detail::job_flags::model, detail::job_flags::processes, detail::job_flags::log})
      part(t);
    return t.take();
  }();
  return all;
}

EDL_INLINE cli::flag missing_flag() {
  return {.name = "missing",
          .fallback = "auto",
          .help =
              "cells of CSV and TSV files that count as empty, separated by ',': NA,?; auto: NA, "
              "N/A, n/a, null, NULL, None, ? and -, in columns of numbers; auto,x: these and x, in all "
              "columns"};
}

EDL_INLINE std::vector<cli::flag> flags_of(command c, std::string const& program) {
  auto const has = [c](std::vector<command> const& of) { return std::ranges::find(of, c) != of.end(); };
  std::vector<cli::flag> all;
  for (job_flag const& f : job_flags()) {
    if (!has(f.commands)) continue;
    all.push_back(f.flag);
    all.back().needed = has(f.needs);
    if (f.flag.name == "job_name") all.back().fallback = program;
  }
  return all;
}

EDL_INLINE std::string flags_as_markdown() {
  using namespace detail::job_flags;
  std::string out, group;
  for (job_flag const& f : edl::job_flags()) {
    if (f.flag.group != group) {
      group = f.flag.group;
      out += fmt::format(
          "\n### {}\n\n| flag | value | default | for | read by | ElasticDL's | meaning |\n"
          "|---|---|---|---|---|---|---|\n",
          group);
    }
    std::string commands;
    for (command const c : f.commands)
      commands += (commands.empty() ? "" : " ") + std::string(1, name_of(c)[0]);
    out += fmt::format("| `--{}` | {} | {} | {} | {} | {} | {} |\n", f.flag.name, type_cell(f.flag),
                       default_cell(f), commands, f.read_by,
                       f.elasticdl.empty()          ? ""
                       : f.elasticdl == f.flag.name ? "the same"
                                                    : "`--" + f.elasticdl + "`",
                       cell(f.flag.help));
  }
  return out;
}

}  // namespace edl

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

/// The one part of what was parsed that has this type.
template <class Part>
Part& part(parsed_flags& a) {
  auto& j = a.job;
  return std::get<Part&>(std::tie(a, j, j.data, j.compute, j.training, j.evaluation, j.observe, j.checkpoints,
                                  j.outputs, j.processes, j.log));
}

/// The flags one after the other; what a row does not say is as in the row before it, or as its type has it.
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
    /// Several values are one text, with ';' between them.
    row repeated(std::string job::* member) {
      entry_.flag.repeats = true;
      entry_.put = [member](parsed_flags& a, std::string const& value) {
        std::string& all = a.job.*member;
        all += (all.empty() ? "" : ";") + value;
      };
      return *this;
    }
    /// ElasticDL has it by this name, or its own.
    row elasticdl(std::string name = {}) {
      entry_.elasticdl = name.empty() ? entry_.flag.name : std::move(name);
      return *this;
    }

   private:
    job_flag& entry_;
  };

  void group(std::string name) { group_ = std::move(name); }

  /// `member` is one of `parsed_flags`, of the job, or of one of its parts.
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
  t.flag(
       "training_data", &job_options::data::training_data, "master, workers",
       "records to train on: a folder of pictures, a table, a directory of RecordIO files, or the published "
       "MNIST or CIFAR-10 files; also a list or a pattern of paths")
      .alias("training_data_dir")
      .only({train})
      .needed_by({train})
      .elasticdl();
  t.flag("validation_data", &job_options::data::validation_data, "master, workers",
         "records to evaluate on, in any of these formats")
      .alias("evaluation_data_dir")
      .only({train, evaluate})
      .needed_by({evaluate})
      .elasticdl();
  t.flag("validation_split", &parsed_flags::validation_split, "master, workers",
         "share of --training_data that is evaluated on and not trained, in place of --validation_data: 0.1 "
         "holds out one record of ten in a row, drawn from --seed; evaluate: that share of --validation_data")
      .only({train, evaluate});
  t.flag("worst", &job_options::evaluation::worst, "master, workers",
         "tell the records with the highest loss, so many of them, the highest first; train: of the last "
         "evaluation, on the page of --dashboard; 0: none")
      .from(0, 10'000)
      .only({train, evaluate});
  t.flag("wrong", &job_options::evaluation::wrong, "workers",
         "directory for the records of which the model says a wrong class: pictures as PNG, others in "
         "wrong.jsonl")
      .only({evaluate});
  t.flag("prediction_data", &job_options::data::prediction_data, "master, workers",
         "records to apply the model to")
      .only({predict})
      .needed_by({predict})
      .elasticdl();
  t.flag("prediction_outputs", &job_options::outputs::prediction_outputs, "workers",
         "directory that the predictions are written to, as one file in the order of the data")
      .only({predict});
  t.flag(
       "prediction_format", &job_options::outputs::prediction_format, "master, workers",
       "what the predictions are written as: a table with a header, JSON lines, an array of NumPy, RecordIO")
      .only({predict});
  t.flag("prediction_columns", &job_options::outputs::prediction_columns, "workers",
         "features of the records that are written beside their predictions, with ',' between them: id,name")
      .only({predict});
  t.flag(
      "data_cache", &job_options::data::data_cache, "master, workers",
      "directory that objects of s3:// paths are copied to, which processes of a machine share; without it "
      "$XDG_CACHE_HOME/edl or ~/.cache/edl");
  t.flag(
      "data_cache_size", &job_options::data::data_cache_size, "master, workers",
      "how large all copies may be together; those that nobody uses are removed, the longest unused first");
  t.flag("overfit_batches", &job_options::data::overfit_batches, "master, workers",
         "train on the first so many minibatches of the data only, in every epoch, to look for errors in a "
         "model; 0: on all")
      .from(0, most_records)
      .only({train});
  t.flag("num_epochs", &job_options::data::num_epochs, "master, workers",
         "passes over the records; 0 or less: without end")
      .from(-1'000'000'000, 1'000'000'000)
      .only({train})
      .elasticdl();
  t.flag("max_step", &job_options::data::max_step, "master",
         "stop after exactly so many steps, also amid a task; all-reduce: after so many minibatches; 0: no "
         "limit")
      .only({train})
      .elasticdl();
  t.flag("shuffle", &job_options::data::shuffle, "master, workers",
         "visit tasks and their records in an order drawn from the seed")
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
         "the same in records, a multiple of --minibatch_size; 0: by that flag")
      .only({train})
      .elasticdl();
  t.flag("missing", &job_options::data::missing, "master, workers", missing_flag().help);
  t.flag("skip_damaged", &job_options::data::skip_damaged, "master, workers",
         "leave damaged records and files out, and count them, instead of stopping");
  t.flag(
       "max_damaged", &job_options::data::max_damaged, "master",
       "with --skip_damaged: the share of the records that may be left out, and always one; more of them end "
       "the job with an error")
      .upto(1);
  t.flag("loader_threads", &job_options::data::loader_threads, "workers",
         "threads that read and decode ahead, for each data set; 0: the computing ones do, between steps "
         "(beside a GPU: as many as cores)")
      .from(0, 256);
  t.flag("max_task_retries", &job_options::data::max_task_retries, "master",
         "how often a task that fails is tried, but for what a record holds: then one other worker tries it, "
         "if any")
      .from(1, 1000);
}

inline void computing(table& t) {
  t.group("Computing");
  t.flag(
       "num_threads", &job_options::compute::num_threads, "workers",
       "threads that a worker computes with; 0: the cores that its cgroup grants, shared with other workers "
       "of a local job")
      .from(0, 1024);
  t.flag("device", &job_options::compute::device, "workers", "what computes; auto: a GPU where there is one");
  t.flag("precision", &job_options::compute::precision, "workers",
         "how exactly products are computed; tf32: on a GPU, with factors rounded to 11 bits; bfloat16: with "
         "factors rounded to 8 bits, and what lies between convolutions, on a GPU between all layers; int8: "
         "with factors quantised to 8 bits, of evaluate and predict on a processor");
  t.flag("kernels", &job_options::compute::kernels, "workers",
         "how kernels are chosen; measured: the fastest for every shape; fixed: by rule; direct: by rule and "
         "without Winograd's algorithm; own: without a library");
  t.flag("kernel_cache", &job_options::compute::kernel_cache, "workers",
         "file that remembers what was measured; none: no file; without the flag: edl/kernels in the user's "
         "cache");
  t.flag("deterministic", &job_options::compute::deterministic, "workers",
         "the same bits from every run on such a machine with as many threads: --kernels=fixed for measured");
  t.flag("keep_samples", &job_options::compute::keep_samples, "workers",
         "keep samples in a GPU's memory after the first epoch; auto: where a quarter of its free memory is "
         "enough; on: an error where they do not fit");
  t.flag("activations", &job_options::compute::activations, "workers",
         "how results between layers are kept for the backward pass; recomputed: all but those of "
         "normalisations and gelus, on a GPU with room all; float32: all; bfloat16: all, in half the memory; "
         "compact: as recomputed, and what is kept as bfloat16, on a GPU as recomputed; without the flag: "
         "compact with --precision=bfloat16, else recomputed; float32 keeps samples between layers in "
         "float32 for any --precision of a processor");
  t.flag("memory_budget", &job_options::compute::memory_budget, "workers",
         "MB that the network may take, as --explain_plan counts them; results are computed again in the "
         "backward pass where that saves enough (activation checkpointing), as few as possible, and without "
         "another bit; of processors; 0: no bound")
      .from(0, 1'000'000'000)
      .only({command::train});
  t.flag("explain_plan", &job::explain_plan, "the command itself",
         "print how the network is computed (variables, steps, memory, kernels), and end");
  t.flag("dry_run", &job::dry_run, "all",
         "try data, a step, an evaluation, a checkpoint and the exported model with one minibatch for each "
         "worker, say what was done, and keep nothing")
      .only({command::train});
  t.flag(
      "profile", &job_options::compute::profile, "workers",
      "directory for where each worker's time goes: reading, layers, loss, optimiser, evaluation, waiting, "
      "and each layer, as a table and as a trace for Perfetto; such files of an earlier run are removed");
}

inline void training(table& t) {
  std::vector<command> const train{command::train};
  t.group("Training");
  t.flag("use_async", &job_options::training::use_async, "servers, workers", "apply every gradient at once")
      .only(train)
      .elasticdl();
  t.flag("gradients", &job_options::training::gradients, "workers",
         "how gradients travel; bfloat16: in half the bytes, rounded to 8 bits; they are added in float32")
      .only(train);
  t.flag("grads_to_wait", &job_options::training::grads_to_wait, "master, servers",
         "synchronous: minibatches whose gradients are averaged into one step; with 1 each gradient is a "
         "step as soon as it arrives, also one of an older version")
      .from(1, most_records)
      .only(train)
      .elasticdl();
  t.flag("sync_version_tolerance", &job_options::training::sync_version_tolerance, "servers",
         "synchronous: versions that a gradient may be behind, or it is computed again; without the flag 0, "
         "and with --grads_to_wait=1 any number")
      .only(train)
      .elasticdl();
  t.flag("lr_staleness_modulation", &job_options::training::lr_staleness_modulation, "servers",
         "asynchronous: divide the learning rate by the versions that a gradient is behind")
      .only(train)
      .elasticdl();
  t.flag(
       "fixed_global_batch", &job_options::training::fixed_global_batch, "master, workers",
       "all-reduce: a step has --num_workers minibatches, and the same bits, however many workers there are")
      .only(train);
  t.flag(
       "allreduce_transport", &job_options::training::allreduce_transport, "workers",
       "all-reduce: what sums gradients; auto: the workers' GPUs by NCCL where all can be joined, the hosts "
       "otherwise; ring: the hosts")
      .only(train);
  t.flag("table_copies", &job_options::training::table_copies, "workers",
         "all-reduce: workers that have each row of the tables, once these are not small; the loss of all of "
         "them takes the job back to a checkpoint; 0: every worker has all rows")
      .from(0, most_processes);
  t.flag("small_tables_mib", &job_options::training::small_tables_mib, "workers",
         "all-reduce: mebibytes of rows in all tables, optimiser's slots included, up to which every worker "
         "has all of them")
      .from(0, 1 << 20);
  t.flag("get_model_steps", &job_options::training::get_model_steps, "workers",
         "asynchronous: pull the model every so many minibatches; between them train on the own copy")
      .from(1, most_records)
      .only(train)
      .elasticdl();
  t.flag("clip_value", &job_options::training::clip_value, "workers",
         "cut each element of a minibatch's gradient to at most this, either way; 0: none")
      .only(train);
  t.flag("clip_norm", &job_options::training::clip_norm, "workers",
         "scale a minibatch's gradient, rows of tables included, to at most this Euclidean norm; 0: none")
      .only(train);
  t.flag("verify_gradients", &job_options::training::verify_gradients, "master, workers",
         "share of the minibatches, up to 0.1, that a second worker of the same kind of processor computes "
         "again: a worker whose gradients are wrong is replaced, and what it did is undone; 0: none")
      .only(train);
  t.flag(
       "leave_bad_nodes", &job_options::training::leave_bad_nodes, "master, workers",
       "a worker tries its machine before it begins, and ends where that computes or remembers wrongly; one "
       "that is slow beside its siblings hands over to another, in a cluster on another node")
      .only(train);
  t.flag("moving_average", &job_options::training::moving_average, "servers, workers",
         "share of a moving average of the weights that each step keeps, less than 1; evaluations, --output "
         "and --save_best take the average in place of the weights; 0: none")
      .only(train);
  t.flag("evaluation_steps", &job_options::evaluation::evaluation_steps, "master, workers",
         "evaluate every so many versions of the model, and the last; 0: the last only")
      .only(train)
      .elasticdl();
  t.flag("save_best", &parsed_flags::save_best, "master",
         "METRIC[:max|min]: keep the model of the version with the best value, as "
         "CHECKPOINT_DIR/best/model.safetensors")
      .only(train);
  t.flag("early_stopping", &parsed_flags::early_stopping, "master",
         "METRIC[:max|min][,patience=N][,min_delta=X]: end the job when N evaluations in a row (3) were not "
         "better by more than X (0)")
      .only(train);
  t.flag("log_loss_steps", &job_options::observe::log_loss_steps, "workers",
         "log the loss every so many versions")
      .from(1)
      .only(train)
      .elasticdl();
  t.flag("history_steps", &job_options::observe::history_steps, "master",
         "with --checkpoint_dir: a line of history.jsonl every so many versions, and for each evaluation; 0: "
         "for evaluations only")
      .only(train);
  t.flag("tensorboard_log_dir", &job_options::observe::tensorboard_log_dir, "master",
         "directory for TensorBoard's event files, with the scalars of the history")
      .only(train)
      .elasticdl();
  t.flag(
       "tensorboard_histograms", &job_options::observe::tensorboard_histograms, "master",
       "with --tensorboard_log_dir: a histogram of each variable and of its gradient every so many versions, "
       "in a job of one process (Local) on the processor; 0: none")
      .only(train);
  t.flag("tensorboard_pictures", &job_options::observe::tensorboard_pictures, "master",
         "with --tensorboard_log_dir: the first so many records that are evaluated, or else trained, as the "
         "network sees them, in a job of one process (Local) whose network takes pictures")
      .from(0, 1000)
      .only(train);
}

inline void model(table& t) {
  using enum command;
  t.group("Model");
  t.flag("checkpoint_dir", &job_options::checkpoints::checkpoint_dir, "master",
         "directory of checkpoints, and of the newest one that the job goes on from")
      .only({train})
      .elasticdl();
  t.flag("checkpoint_steps", &job_options::checkpoints::checkpoint_steps, "master",
         "write a checkpoint every so many versions of the model, and of the last; 0: of the last only")
      .only({train})
      .elasticdl();
  t.flag(
       "delta_checkpoints", &job_options::checkpoints::delta_checkpoints, "all",
       "so many checkpoints in a row have of embedding tables what has changed, before one has all again; 0: "
       "each has all")
      .from(0, 1000)
      .only({train});
  t.flag("keep_checkpoint_max", &job_options::checkpoints::keep_checkpoint_max, "master",
         "newest checkpoints that stay; 0: all")
      .from(0, 1'000'000'000)
      .only({train})
      .elasticdl();
  t.flag("ignore_damaged_checkpoints", &job_options::checkpoints::ignore_damaged_checkpoints, "master",
         "start anew when no checkpoint in --checkpoint_dir can be used any more, instead of stopping")
      .only({train});
  t.flag(
       "checkpoint_dir_for_init", &job_options::checkpoints::checkpoint_dir_for_init, "master",
       "what to start from: a checkpoint (version-N); a --checkpoint_dir, whose newest checkpoint is taken; "
       "an exported model.safetensors, or the --output directory that holds one")
      .needed_by({evaluate, predict})
      .elasticdl();
  t.flag("skip_mismatch", &job_options::checkpoints::skip_mismatch, "master, servers, workers",
         "with --checkpoint_dir_for_init: take variables of the same name and shape, and leave the others at "
         "their initial values")
      .only({train});
  t.flag("freeze", &job_options::training::freeze, "all",
         "names of variables that are not trained, or patterns of them as of a shell (*, ?, [ab]), with ',' "
         "between them")
      .only({train});
  t.flag("rates", &job_options::training::rates, "all",
         "factors of the learning rate for parts of the model, as conv2d*=0.1,dense/kernel=2; names of "
         "variables and tables, or patterns as for --freeze; behind those of the model, and the last match "
         "counts")
      .only({train});
  t.flag("output", &job_options::outputs::output, "master",
         "directory that the trained model is written to, model.safetensors")
      .only({train})
      .elasticdl();
  t.flag("export_onnx", &job_options::outputs::export_onnx, "master",
         "file that the trained model of --output is written to as ONNX, too; where it is larger than 1 GiB, "
         "its tensors lie beside it in FILE.CRC32.data")
      .only({train});
  t.flag("export_fold_batch_norm", &job_options::outputs::export_fold_batch_norm, "master",
         "with --export_onnx: put batch normalisation into the weights of the convolution or dense layer "
         "before "
         "it")
      .only({train});
  t.flag(
       "export_preprocess", &job_options::outputs::export_preprocess, "master",
       "with --export_onnx: the file takes the record's numbers, and has the factors and constants by which "
       "`feed` makes inputs of them")
      .only({train});
  t.flag("export_rows_as_inputs", &job_options::outputs::export_rows_as_inputs, "master",
         "with --export_onnx: leave embedding tables out of the file, which takes their rows in place of ids")
      .only({train});
  t.flag("output_format", &job_options::evaluation::format, "master",
         "how the metrics are printed: a line for a person, or an object of JSON")
      .alias("o")
      .only({evaluate});
  t.flag("seed", &job::seed, "all", "of initial values, shuffling and dropout");
  t.flag(
       "set", &job::set, "all",
       "value of a hyperparameter that the model declares, as rate=0.05; several as --set again, or with ';' "
       "or ',' between them")
      .alias("model_params")
      .repeated(&job::set)
      .elasticdl("model_params");
}

inline void processes(table& t) {
  t.group("Job");
  t.flag("job_name", &job::name, "all",
         "name of the job, in logs and checkpoints; a job goes on from its own only")
      .elasticdl();
  t.flag("distribution_strategy", &parsed_flags::strategy, "all",
         "Local: one process; ParameterServerStrategy: a master, servers and workers; AllreduceStrategy: a "
         "master, and workers that have a copy of the model each")
      .elasticdl();
  t.flag("num_workers", &job_options::processes::num_workers, "master, workers",
         "worker processes; 2 where a strategy needs them")
      .from(0, most_processes)
      .elasticdl();
  t.flag("num_ps_pods", &job_options::processes::num_ps_pods, "master, servers",
         "parameter server processes; 1 where the strategy needs one")
      .from(0, most_processes)
      .elasticdl();
  t.flag("ps_replicas", &job_options::processes::ps_replicas, "master",
         "servers that keep each range of the variables; with 2, every update is at both before it is "
         "acknowledged, and the loss of one loses nothing")
      .from(1, 2);
  t.flag("ps_ranges", &job_options::processes::ps_ranges, "master, servers",
         "ranges that the variables are cut into, so many servers there can ever be (`scale`); 0: "
         "--num_ps_pods")
      .from(0, most_processes);
  t.flag("relaunch_on_worker_failure", &job_options::processes::relaunch_on_worker_failure, "master",
         "how often a worker that fails by itself is replaced; kills do not count, but those for memory")
      .from(0, 1'000'000)
      .elasticdl();
  t.flag("master_timeout", &job_options::processes::master_timeout, "servers, workers",
         "seconds that workers and servers wait for a master that is away, before they end with exit code 75")
      .from(1, 30 * 24 * 3600);
  t.flag("host", &job_options::processes::host, "all",
         "address that a process listens on, and that the others are told");
  t.flag("port", &job_options::processes::port, "master", "port of the master; 0: any free one")
      .from(0, 65535)
      .elasticdl();
  t.flag("metrics_port", &job_options::processes::metrics_port, "all",
         "answer GET /metrics (OpenMetrics) at --host and this port; 0: any free one. On one machine the "
         "master "
         "has the port, and the others any free ones; nowhere, where none is given")
      .from(0, 65535);
  t.flag(
      "transport_security", &job_options::processes::transport_security, "all",
      "TCP connections between the job's processes; tls: TLS 1.3 with a key that EDL_JOB_TOKEN stands for; "
      "none: readable and alterable by whoever controls the network");
}

inline void log(table& t) {
  t.group("Log");
  t.flag("log_level", &job_options::log::log_level, "all", "least severity that is logged").elasticdl();
  t.flag("verbose", &job_options::log::verbose, "all",
         "log flags, addresses and places in the source, too, as --log_level=DEBUG does, and as roles in a "
         "cluster or started by hand do");
  t.flag("dashboard", &job_options::observe::dashboard, "master",
         "port of a page that shows the job while it runs, and that nothing can be changed by; 0: any free "
         "one, which the log tells; without the flag there is none")
      .from(0, 65535)
      .only({command::train});
  t.flag("dashboard_host", &job_options::observe::dashboard_host, "master",
         "address that --dashboard is served at; off this machine whoever asks gives the job's token, "
         "EDL_JOB_TOKEN, or the one that the log tells")
      .only({command::train});
  t.flag("dashboard_certificate", &job_options::observe::dashboard_certificate, "master",
         "PEM file of a certificate and what vouches for it, with which --dashboard speaks TLS")
      .only({command::train});
  t.flag("dashboard_key", &job_options::observe::dashboard_key, "master", "PEM file of its private key")
      .only({command::train});
  t.flag("log_file_path", &job_options::log::log_file_path, "all",
         "append the log of every process to this file as well")
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
          .fallback = job_options::data().missing,
          .help =
              "cells of CSV and TSV files that count as empty ones, with ',' between them: NA,?; auto: NA, "
              "N/A, n/a, null, NULL, None, ? and -, in columns of numbers"};
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "edl/base/net/security/transport_security.hpp"
#include "edl/compute/device/cpu/options.hpp"
#include "edl/compute/device/cuda/options.hpp"
#include "edl/compute/nn/storage.hpp"
#include "edl/core/log.hpp"
#include "edl/job/config/monitor.hpp"
#include "edl/job/worker/trainer_options.hpp"

namespace edl {

/// The command of a job.
enum class command { train, evaluate, predict };

constexpr std::array<std::string_view, 3> names(command) { return {"train", "evaluate", "predict"}; }

enum class strategy { local, parameter_server, allreduce };

constexpr std::array<std::string_view, 3> names(strategy) {
  return {"Local", "ParameterServerStrategy", "AllreduceStrategy"};
}

/// The format of sent gradients; they are summed in float32.
enum class gradient_format { float32, bfloat16 };

constexpr std::array<std::string_view, 2> names(gradient_format) { return {"float32", "bfloat16"}; }

/// How the gradients of an all-reduce job are summed.
enum class allreduce_transport {
  automatic,  ///< by the workers' GPUs with NCCL if all can join, otherwise by the hosts
  nccl,
  ring  ///< by the hosts
};

constexpr std::array<std::string_view, 3> names(allreduce_transport) { return {"auto", "nccl", "ring"}; }

/// How results are printed.
enum class result_format { text, json };

constexpr std::array<std::string_view, 2> names(result_format) { return {"text", "json"}; }

/// The format of a predictions file.
enum class prediction_format { csv, jsonl, npy, recordio };

constexpr std::array<std::string_view, 4> names(prediction_format) {
  return {"csv", "jsonl", "npy", "recordio"};
}

/// The options of a job from its command line, by subject. Names and defaults are those of the flags
/// (`job/config/flags.hpp`).
struct job_options {
  /// Records, and their distribution.
  struct data {
    std::string training_data, validation_data, prediction_data;
    std::string data_cache;                 ///< directory of copies of objects; empty: the user's cache
    std::string data_cache_size = "100Gi";  ///< of all copies, as `bytes_of` reads it
    double validation_split = 0;            ///< share of the training data held out for evaluation
    /// Cells of tables that count as empty, for `data::read_missing_words`; not set: those of the model that
    /// evaluates or predicts, else "auto".
    std::optional<std::string> missing;
    bool skip_damaged = false;
    float max_damaged = 0.01f;  ///< share of records that may be skipped so
    bool shuffle = true;
    int minibatch_size = 64;
    int num_minibatches_per_task = 8;
    int max_task_retries = 3;
    int overfit_batches = 0;     ///< train only on this many minibatches; 0: on all
    int num_epochs = 1;          ///< ≤ 0: for ever
    std::uint64_t max_step = 0;  ///< 0: no limit
    int loader_threads = 0;      ///< separate ones; 0: the compute threads

    std::uint64_t records_per_task() const {
      return std::uint64_t(minibatch_size) * std::uint64_t(num_minibatches_per_task);
    }
  };

  /// The compute options of workers.
  struct compute {
    int num_threads = 0;  ///< 0: by the granted cores
    worker::device_kind device = worker::device_kind::any;
    edl::precision precision = edl::precision::float32;  ///< of products
    edl::kernels kernels = edl::kernels::measured;
    std::string kernel_cache;
    bool deterministic = false;
    worker::keep_samples keep_samples = worker::keep_samples::automatic;  ///< of a GPU
    std::optional<nn::storage> activations;  ///< not set: compact for bfloat16 products, otherwise recomputed
    int memory_budget = 0;                   ///< MB that a worker's network may take; 0: no limit
    std::string profile;                     ///< directory for the workers' profiles
  };

  /// How gradients become steps.
  struct training {
    bool use_async = false;
    int grads_to_wait = 1;
    std::optional<std::uint64_t> sync_version_tolerance;  ///< not set: 0; no limit if grads_to_wait is 1
    bool lr_staleness_modulation = false;
    int get_model_steps = 1;
    int outer_steps = 1;  ///< a worker's own steps that are pushed together; 1: each gradient is pushed
    float outer_learning_rate = 1, outer_momentum = 0;  ///< of the servers' steps with these
    gradient_format gradients = gradient_format::float32;
    bool fixed_global_batch = false;
    edl::allreduce_transport allreduce_transport = edl::allreduce_transport::automatic;
    int table_copies = 2;                 ///< workers that have each row by all-reduce; 0: all of them
    int small_tables_mib = 256;           ///< size of tables up to which all workers have all rows
    float clip_value = 0, clip_norm = 0;  ///< of a minibatch's gradient; 0: it is not clipped
    bool leave_bad_nodes = false;         ///< workers check their machine, and slow ones are replaced
    float verify_gradients = 0;           ///< share of minibatches that a second worker recomputes; 0: none
    float moving_average = 0;             ///< decay of the average of the weights; 0: no average
    std::string freeze;                   ///< patterns of variables that are not trained, separated by ','
    std::string rates;                    ///< factors of the rate for parts, as `read_rates` reads them
  };

  struct evaluation {
    std::uint64_t evaluation_steps = 0;
    std::optional<monitor> save_best;
    std::optional<edl::early_stopping> early_stopping;
    std::optional<rate_plateau> plateau;  ///< of the model's schedule; no flag sets it
    bool asks_model = false;  ///< whether the model's `on_evaluation` may end the job; no flag sets it
    std::uint64_t worst = 0;  ///< number of records with the highest loss that an evaluation reports
    std::string wrong;        ///< directory for wrongly classified records; empty: none
    result_format format = result_format::text;  ///< of the output of evaluate
  };

  /// The options of a job's output.
  struct observe {
    std::uint64_t log_loss_steps = 100;
    std::uint64_t history_steps = 100;  ///< steps between lines of `history.jsonl`; 0: only evaluations
    std::string tensorboard_log_dir;    ///< for event files; empty: none
    std::uint64_t tensorboard_histograms = 0;  ///< versions between histograms of the variables; 0: none
    std::uint64_t tensorboard_pictures = 0;    ///< number of records
    std::optional<std::uint16_t> dashboard;    ///< port of the page that shows the job; 0: any
    std::string dashboard_host = "127.0.0.1";  ///< where it is served
    std::string dashboard_certificate;         ///< PEM file; empty: without TLS
    std::string dashboard_key;                 ///< PEM file of its private key
  };

  struct checkpoints {
    std::string checkpoint_dir, checkpoint_dir_for_init;
    std::string base_model;  ///< of a network with adapters
    std::uint64_t checkpoint_steps = 0;
    std::uint64_t delta_checkpoints = 8;
    int keep_checkpoint_max = 0;              ///< 0: all
    bool ignore_damaged_checkpoints = false;  ///< start anew if none in checkpoint_dir can be used
    bool skip_mismatch = false;               ///< use the matching variables of checkpoint_dir_for_init
  };

  struct outputs {
    std::string output;                   ///< directory of the trained model
    std::string export_onnx;              ///< file to which it is also written as ONNX
    bool export_fold_batch_norm = false;  ///< there: fold into the weights of the previous layer
    bool export_preprocess = false;       ///< there: include what `feed` computes from a record's numbers
    bool export_rows_as_inputs = false;   ///< there: make rows of tables inputs, and omit the tables
    std::string prediction_outputs = "predictions";  ///< directory of the predictions
    edl::prediction_format prediction_format = edl::prediction_format::csv;
    std::string prediction_columns;  ///< features of the records, separated by ','
  };

  /// The job's processes, and how they connect.
  struct processes {
    int num_workers = 0;
    int num_ps_pods = 0;
    int ps_replicas = 1;
    int ps_ranges = 0;  ///< of the variables; 0: one for each server
    int relaunch_on_worker_failure = 1;
    int master_timeout = 900;               ///< seconds that workers and servers wait for an absent master
    std::string preemption_notice = "off";  ///< as `platform::make_notice_source` reads it
    net::transport_security transport_security = net::transport_security::tls;  ///< of TCP connections
    std::string host = "127.0.0.1";             ///< where this process listens
    std::uint16_t port = 0;                     ///< of the master; 0: any
    std::optional<std::uint16_t> metrics_port;  ///< of /metrics; not set: none; 0: any port
  };

  struct log {
    severity log_level = severity::info;
    std::string log_file_path;
    bool verbose = false;  ///< also log flags, addresses and source locations
  };
};

/// All options of a job from its command line. Every role reads the same.
struct job {
  edl::command command = edl::command::train;
  edl::strategy strategy = edl::strategy::local;
  std::string name;
  std::uint64_t seed = 1;
  std::string set;              ///< hyperparameters as given, `name=value;…`
  std::string hyperparameters;  ///< all of the model's, with their current values, in the same form
  bool explain_plan = false;    ///< only print how the network is computed
  bool dry_run = false;         ///< only try everything once, and keep nothing

  job_options::data data;
  job_options::compute compute;
  job_options::training training;
  job_options::evaluation evaluation;
  job_options::observe observe;
  job_options::checkpoints checkpoints;
  job_options::outputs outputs;
  job_options::processes processes;
  job_options::log log;

  /// Whether a training's evaluations decide on something: the best model, its end, or the learning rate.
  bool judges() const {
    return command == edl::command::train && evaluation.evaluation_steps > 0 &&
           (evaluation.save_best || evaluation.early_stopping || evaluation.plateau || evaluation.asks_model);
  }

  /// Whether training pauses at a version until it has been evaluated. With a fixed order of sums nothing may
  /// depend on the duration of an evaluation: neither its decisions, nor the version at which they end the
  /// job. Where evaluations reduce the rate, it must be the same in all workers, and after a restart; with
  /// servers each task carries its rate, so nothing rests.
  bool rests_to_evaluate() const {
    bool const fixed = strategy == edl::strategy::allreduce && training.fixed_global_batch;
    return judges() && (fixed || (evaluation.plateau && strategy != edl::strategy::parameter_server));
  }
};

/// Number of minibatches whose gradients are averaged into one step, by servers or by the process of `Local`.
inline std::uint64_t minibatches_of_a_step(job const& j) {
  bool const waits = j.strategy != edl::strategy::allreduce && !j.training.use_async;
  return waits ? std::uint64_t(j.training.grads_to_wait) : 1;
}

}  // namespace edl

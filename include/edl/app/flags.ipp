// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <numeric>

#include "edl/app/flags.hpp"
#include "edl/app/foreign_flags.hpp"
#include "edl/app/idle_flags.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/device/cpu/options.hpp"
#include "edl/device/cuda/options.hpp"
#include "edl/nn/storage.hpp"
#include "edl/version.hpp"
#include "edl/worker/trainer.hpp"

namespace edl::app {
namespace detail {

inline constexpr char const* command_words[] = {"train", "evaluate", "predict", "data", "audit", "scale"};

/// A whole number within bounds, said as people write them. The default bound is none.
template <class T = std::uint64_t>
CLI::Validator whole(T least, T most = std::numeric_limits<T>::max()) {
  bool const open = most == std::numeric_limits<T>::max();
  std::string const bounds =
      open ? fmt::format("of at least {}", least) : fmt::format("from {} to {}", least, most);
  return CLI::Validator(
      [=](std::string& text) {
        T n{};
        auto const [end, failure] = std::from_chars(text.data(), text.data() + text.size(), n);
        bool const good =
            failure == std::errc{} && end == text.data() + text.size() && n >= least && n <= most;
        return good ? std::string() : fmt::format("expected a whole number {}, not '{}'", bounds, text);
      },
      open ? std::string() : fmt::format("[{} - {}]", least, most));
}

/// A share of something: more than 0, at most 1.
inline CLI::Validator share() {
  return CLI::Validator(
      [](std::string& text) {
        double x = 0;
        auto const [end, failure] = std::from_chars(text.data(), text.data() + text.size(), x);
        bool const good = failure == std::errc{} && end == text.data() + text.size() && x > 0 && x <= 1;
        return good ? std::string()
                    : fmt::format("expected a number of more than 0, and at most 1, not '{}'", text);
      },
      std::string());
}

/// What a word of a command line is as a flag: its name without dashes and value. Empty: it is none.
inline std::string flag_of(std::string const& word) {
  return word.rfind("--", 0) == 0 ? word.substr(2, word.find('=') - 2) : std::string();
}

/// What is wrong with a command line, in our words.
inline std::string plain(CLI::ParseError const& bad, CLI::App const& command) {
  std::string const said = bad.what();
  std::string const flag = said.substr(0, said.find(':'));
  if (bad.get_name() == "RequiredError" && said.find("subcommand") != said.npos)
    return fmt::format("a command is missing: {}",
                       fmt::join(std::begin(command_words), std::end(command_words), ", "));
  if (bad.get_name() == "ArgumentMismatch" && said.find("At Most 1") != said.npos)
    return fmt::format("{} is given twice", flag);
  if (bad.get_name() == "ConversionError")
    if (auto const at = said.find("--"), is = said.find(" = ", at); at != said.npos && is != said.npos) {
      std::string const name = said.substr(at, is - at);
      CLI::Option const* const o = command.get_option_no_throw(name);
      return fmt::format("{}={}: expected {}", name, said.substr(is + 3),
                         o && o->get_expected_min() == 0 ? "true or false" : "a number");
    }
  return said;
}

/// Declares flags and remembers their names, so that a misspelt one can be answered with the nearest.
struct declare {
  CLI::App& app;
  std::vector<std::string>& names;

  template <class T>
  CLI::Option* value(std::string const& spelling, T& into, std::string const& help) {
    note(spelling);
    return app.add_option(spelling, into, help)->capture_default_str();
  }
  /// `--f`, `--f=true|yes|t|y` and their opposites.
  CLI::Option* truth(std::string const& name, bool& into, std::string const& help) {
    note("--" + name);
    return app.add_flag("--" + name, into, help)->default_str(into ? "true" : "false");
  }
  void note(std::string const& spelling) {
    for (std::size_t at = 0; at < spelling.size();) {
      auto const end = std::min(spelling.find(',', at), spelling.size());
      names.push_back(spelling.substr(at + 2, end - at - 2));
      at = end + 1;
    }
  }
};

EDL_INLINE void common(declare d, job& j, std::string& how, std::string& level) {
  d.app.option_defaults()->group("Job");
  d.value("--job_name", j.name, "name of the job, in logs and checkpoints");
  d.value("--distribution_strategy", how,
          "Local: one process. ParameterServerStrategy: a master, servers and workers. AllreduceStrategy: a "
          "master, and workers that have a copy of the model each")
      ->check(CLI::IsMember({"Local", "ParameterServerStrategy", "AllreduceStrategy"}));
  d.value("--num_workers", j.num_workers, "worker processes (2 unless Local)")
      ->check(detail::whole(0, 10000));
  d.value("--num_ps_pods", j.num_ps_pods, "parameter server processes (1 with ParameterServerStrategy)")
      ->check(detail::whole(0, 10000));
  d.value("--ps_replicas", j.ps_replicas,
          "servers that keep each part of the variables: with 2, the loss of one loses nothing")
      ->check(detail::whole(1, 2));
  d.value("--ps_ranges", j.ps_ranges,
          "parts that the variables are cut into: so many servers there can ever be; 0: --num_ps_pods")
      ->check(detail::whole(0, 10000));
  d.value("--relaunch_on_worker_failure", j.relaunch_on_worker_failure,
          "how often a worker that fails by itself is replaced; kills do not count")
      ->check(detail::whole(0, 1000000));
  d.value(
       "--master_timeout", j.master_timeout,
       "seconds that workers and servers wait for a master that is away, before they end with exit code 75")
      ->check(detail::whole(1, 30 * 24 * 3600));
  d.value("--host", j.host, "address that this machine's processes listen on");
  d.value("--port", j.port, "port of the master; 0: any free one")->check(detail::whole(0, 65535));
  d.value(
       "--transport_security", j.transport_security,
       "TCP connections between the job's processes: tls: TLS 1.3 with a key that EDL_JOB_TOKEN stands for; "
       "none: readable and alterable by whoever controls the network, where that is nobody else, or another "
       "layer encrypts")
      ->check(CLI::IsMember({"tls", "none"}));
  d.app.option_defaults()->group("Data");
  d.value("--minibatch_size", j.minibatch_size, "records in one step of one worker")
      ->check(detail::whole(1, 1 << 20));
  d.value("--num_minibatches_per_task", j.num_minibatches_per_task,
          "minibatches that a worker leases at a time")
      ->check(detail::whole(1, 1 << 20));
  d.truth("skip_damaged", j.skip_damaged, "count damaged records and files instead of stopping");
  d.value("--loader_threads", j.loader_threads,
          "threads beside the computing ones that read and decode ahead; 0: the computing ones do, between "
          "steps")
      ->check(detail::whole(0, 256));
  d.value("--num_threads", j.num_threads,
          "threads that a worker computes with; 0: as many as it is granted cores, or its share of them")
      ->check(detail::whole(0, 1024));
  d.value("--device", j.device, "what computes: auto: a GPU where there is one; cpu; cuda")
      ->check(CLI::IsMember(worker::device_names));
  d.value("--precision", j.precision,
          "of a GPU: float32; tf32: factors of products are rounded to 11 bits; bfloat16: what lies between "
          "layers, and weights in products, is rounded to 8 bits (variables, sums and steps stay float32)")
      ->check(CLI::IsMember(precision_names));
  d.value(
       "--keep_samples", j.keep_samples,
       "keep what was fed once in a GPU's memory, so that records are read in the first epoch alone: auto: "
       "where a quarter of its free memory is enough; on; off")
      ->check(CLI::IsMember(worker::keep_samples_names));
  d.value("--kernels", j.kernels,
          "what computes: measured: the fastest for every shape; fixed: a rule instead of the clock; direct: "
          "the "
          "same without Winograd's algorithm; own: none of a library")
      ->check(CLI::IsMember(kernels_names));
  d.value("--kernel_cache", j.kernel_cache,
          "file that remembers what was measured; none: no file (default: edl/kernels in the user's cache)");
  d.truth(
      "deterministic", j.deterministic,
      "the same bits from every run on such a machine with as many threads: --kernels=fixed for measured");
  d.value("--max_task_retries", j.max_task_retries, "how often a task that fails is tried")
      ->check(detail::whole(1, 1000));
  d.app.option_defaults()->group("Model");
  d.value("--seed", j.seed, "of initial values, shuffling and dropout")
      ->check(detail::whole<std::uint64_t>(0));
  d.value("--checkpoint_dir_for_init", j.checkpoint_dir_for_init,
          "what to start from: a checkpoint (version-N), a --checkpoint_dir, whose newest checkpoint is "
          "taken, an "
          "exported model.safetensors, or the --output directory that holds one");
  d.value(
       "--activations", j.activations,
       "what is kept of the results between layers for the way back: recomputed: all but what can cheaply be "
       "computed again; float32: all; bfloat16: all, rounded, in half the memory")
      ->check(CLI::IsMember(nn::storage_names));
  d.app.option_defaults()->group("Log");
  d.truth("explain_plan", j.explain_plan,
          "print how the network is computed (steps, memory, kernels), and end");
  d.value("--profile", j.profile,
          "directory for where each worker's time goes, layer by layer: a table, and a trace for Perfetto");
  d.value("--log_level", level, "least severity that is logged")
      ->transform(CLI::IsMember({"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}, CLI::ignore_case));
  d.value("--log_file_path", j.log_file_path, "append the log of every process to this file as well");
}

EDL_INLINE void training(declare d, job& j, std::uint64_t& records_per_task) {
  d.app.option_defaults()->group("Data");
  d.value("--training_data,--training_data_dir", j.training_data,
          "records to train on: a directory of RecordIO files, a CSV file, or the published MNIST or "
          "CIFAR-10 files")
      ->required();
  d.value("--validation_data,--evaluation_data_dir", j.validation_data,
          "records to evaluate on, in any of these formats");
  d.value("--num_epochs", j.num_epochs, "passes over the records; 0 or less: without end")
      ->check(detail::whole(-1000000000, 1000000000));
  d.value("--max_step", j.max_step,
          "stop after exactly so many steps, with all-reduce after so many minibatches; 0: no limit")
      ->check(detail::whole<std::uint64_t>(0));
  d.truth("shuffle", j.shuffle, "visit tasks and their records in an order drawn from the seed");
  d.value("--records_per_task", records_per_task,
          "the same as --num_minibatches_per_task, in records; 0: by that flag")
      ->check(detail::whole<std::uint64_t>(0));
  d.app.option_defaults()->group("Training");
  d.truth(
      "fixed_global_batch", j.fixed_global_batch,
      "all-reduce: a step has --num_workers minibatches, and the same bits, however many workers there are");
  d.value(
       "--allreduce_transport", j.allreduce_transport,
       "what sums gradients: auto: the workers' GPUs by NCCL where all can be joined, the hosts otherwise; "
       "nccl; ring: the hosts")
      ->check(CLI::IsMember({"auto", "nccl", "ring"}));
  d.truth("use_async", j.use_async, "apply every gradient at once");
  d.value("--gradients", j.gradients,
          "how gradients travel to the servers: float32, or bfloat16: rounded, in half the bytes")
      ->check(CLI::IsMember({"float32", "bfloat16"}));
  d.value("--grads_to_wait", j.grads_to_wait,
          "synchronous: gradients averaged into one step; 1: each is a step as it comes, however old")
      ->check(detail::whole(1, 1 << 20));
  d.value("--sync_version_tolerance", j.sync_version_tolerance,
          "synchronous: versions that a gradient may be behind, or it is computed again (0, but with "
          "--grads_to_wait=1 any number)")
      ->check(detail::whole<std::uint64_t>(0));
  d.truth("lr_staleness_modulation", j.lr_staleness_modulation,
          "asynchronous: divide the learning rate by the versions that a gradient is behind");
  d.value("--get_model_steps", j.get_model_steps,
          "pull the model every so many steps; between them train on the own copy")
      ->check(detail::whole(1, 1 << 20));
  d.value("--evaluation_steps", j.evaluation_steps,
          "evaluate every so many versions of the model; 0: at the end only")
      ->check(detail::whole<std::uint64_t>(0));
  d.value("--log_loss_steps", j.log_loss_steps, "log the loss every so many steps")
      ->check(detail::whole<std::uint64_t>(1));
  d.app.option_defaults()->group("Model");
  d.value("--checkpoint_dir", j.checkpoint_dir, "where checkpoints go");
  d.value("--checkpoint_steps", j.checkpoint_steps,
          "checkpoint every so many versions of the model; 0: at the end only")
      ->check(detail::whole<std::uint64_t>(0));
  d.truth("ignore_damaged_checkpoints", j.ignore_damaged_checkpoints,
          "start anew when no checkpoint in --checkpoint_dir can be used any more, instead of stopping");
  d.value("--keep_checkpoint_max", j.keep_checkpoint_max, "newest checkpoints that stay; 0: all")
      ->check(detail::whole(0, 1000000000));
  d.value("--output", j.output, "directory that the trained model is written to");
}

EDL_INLINE void conversion_flags(declare d, conversion& c) {
  d.value("--from", c.from,
          "records to read: the published MNIST or CIFAR-10 files, RecordIO, CSV, or synthetic:train, "
          "synthetic:test")
      ->required();
  d.value("--to", c.to, "directory to write RecordIO shards into")->required();
  d.value("--records_per_shard", c.records_per_shard, "records in one file")
      ->check(detail::whole<std::uint64_t>(1));
  d.value("--compressor", c.compressor, "none, snappy or gzip")
      ->check(CLI::IsMember({"none", "snappy", "gzip"}));
  d.value("--fraction", c.fraction, "share of the records to take, from the first")->check(detail::share());
}

/// Resolves what one flag means for others; see the flags' table in docs/jobs.md.
EDL_INLINE void settle_strategy(job& j, std::string const& how) {
  bool const wants_servers =
      how.empty() ? j.num_workers > 0 || j.num_ps_pods > 0 : how == "ParameterServerStrategy";
  j.how = how == "AllreduceStrategy" ? strategy::allreduce
          : wants_servers            ? strategy::parameter_server
                                     : strategy::local;
}

/// The same for the flags that depend on `j.how`.
EDL_INLINE void settle(job& j, std::string const& level, std::uint64_t records_per_task) {
  static constexpr char const* levels[] = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"};
  j.log_level = severity(std::find(std::begin(levels), std::end(levels), level) - std::begin(levels));
  if (j.how == strategy::allreduce) {
    if (j.num_ps_pods > 0)
      throw usage_error("--distribution_strategy=AllreduceStrategy has no servers: leave out --num_ps_pods");
    if (j.num_workers == 0) j.num_workers = 2;
  }
  if (j.how == strategy::allreduce) {
    j.get_model_steps = 1;
    if (j.allreduce_transport == "nccl" && (j.fixed_global_batch || j.gradients == "bfloat16"))
      throw usage_error(fmt::format(
          "--allreduce_transport=nccl has no sums in a fixed order, nor of bfloat16: leave out {}",
          j.fixed_global_batch ? "--fixed_global_batch" : "--gradients=bfloat16"));
  } else if (j.how == strategy::parameter_server) {
    if (j.num_workers == 0) j.num_workers = 2;
    if (j.num_ps_pods == 0) j.num_ps_pods = 1;
  } else if (j.num_workers > 0 || j.num_ps_pods > 0) {
    throw usage_error(
        "--distribution_strategy=Local is one process: leave out --num_workers and --num_ps_pods");
  }
  if (records_per_task > 0) {
    if (records_per_task % std::uint64_t(j.minibatch_size) != 0 ||
        records_per_task / std::uint64_t(j.minibatch_size) > 1 << 20)
      throw usage_error(fmt::format("--records_per_task={}: expected a multiple of --minibatch_size={}",
                                    records_per_task, j.minibatch_size));
    j.num_minibatches_per_task = int(records_per_task / std::uint64_t(j.minibatch_size));
  }
  if (j.how != strategy::parameter_server) j.ps_replicas = 1;  // of servers, which there are none of
  if (j.ps_replicas > std::max(1, j.num_ps_pods))
    throw usage_error(fmt::format("--ps_replicas={} needs as many servers: add --num_ps_pods={}",
                                  j.ps_replicas, j.ps_replicas));
  if (j.ps_ranges == 0) j.ps_ranges = j.num_ps_pods;
  if (j.ps_ranges < j.num_ps_pods)
    throw usage_error(fmt::format("--ps_ranges={}: fewer than --num_ps_pods={}", j.ps_ranges, j.num_ps_pods));
  if (j.use_async)
    j.grads_to_wait = 1;
  else
    j.get_model_steps = 1;
  bool const together = !j.use_async && (j.grads_to_wait > 1 || j.sync_version_tolerance);
  if (j.lr_staleness_modulation && j.how == strategy::parameter_server && together)
    throw usage_error(
        "--lr_staleness_modulation is for gradients that are steps by themselves: add --use_async");
  if (j.checkpoint_steps > 0 && j.checkpoint_dir.empty())
    throw usage_error("--checkpoint_steps needs --checkpoint_dir: where should checkpoints go?");
  if (j.evaluation_steps > 0 && j.what == command::train && j.validation_data.empty())
    throw usage_error("--evaluation_steps needs --validation_data: on which records?");
}

}  // namespace detail

EDL_INLINE std::string nearest(std::string const& name, std::vector<std::string> const& known) {
  std::string best;
  std::size_t least =
      std::min(std::max<std::size_t>(2, name.size() / 3) + 1, std::max<std::size_t>(name.size(), 2) - 1);
  for (std::string const& candidate : known) {
    std::vector<std::size_t> row(candidate.size() + 1);  // Levenshtein's distance, one row at a time
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= name.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t k = 1; k <= candidate.size(); ++k) {
        std::size_t const above = row[k];
        row[k] = std::min({above + 1, row[k - 1] + 1, diagonal + (name[i - 1] != candidate[k - 1])});
        diagonal = above;
      }
    }
    if (row.back() < least) least = row.back(), best = candidate;
  }
  return best;
}

EDL_INLINE parsed parse(std::string const& program, std::vector<std::string> const& line) {
  arguments a;
  a.job.name = program;
  conversion c;
  std::string how, level = "INFO";
  std::uint64_t records_per_task = 0;

  CLI::App app{"Trains, evaluates and applies one model, on this machine or as any part of a job.", program};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("edl ") + package_version);
  std::map<CLI::App const*, std::vector<std::string>> names;
  auto const sub = [&](char const* name, char const* help) {
    auto* s = app.add_subcommand(name, help);
    // A value that starts with a dash (-1) follows its flag after "=" only; a flag given twice is a mistake
    // to tell.
    s->get_formatter()->column_width(44);
    return s;
  };
  auto* train = sub("train", "train the model");
  auto* evaluate = sub("evaluate", "compute the metrics of a trained model");
  auto* predict = sub("predict", "apply a trained model");
  auto* data = sub("data", "write records of any format that edl reads as RecordIO shards");
  detail::training({*train, names[train]}, a.job, records_per_task);
  for (auto* s : {train, evaluate, predict}) detail::common({*s, names[s]}, a.job, how, level);
  detail::declare e{*evaluate, names[evaluate]}, p{*predict, names[predict]};
  for (auto* s : {evaluate, predict}) s->option_defaults()->group("Data");
  e.value("--validation_data,--evaluation_data_dir", a.job.validation_data, "records to evaluate on")
      ->required();
  p.value("--prediction_data", a.job.prediction_data, "records to apply the model to")->required();
  p.value("--prediction_outputs", a.job.prediction_outputs,
          "directory that the predictions are written to, one file per task");
  for (auto* s : {evaluate, predict}) s->get_option("--checkpoint_dir_for_init")->required();
  detail::conversion_flags({*data, names[data]}, c);
  auto* audit = sub("audit", "tell what became of every record: in the data set, applied, lost, repeated");
  auto* scale = sub("scale", "change how many processes a running job has");
  scaling wanted;
  detail::declare s{*scale, names[scale]};
  wanted.job = program;
  s.value("--job_name", wanted.job, "which job; of this machine's and this user's");
  s.value("--num_workers", wanted.workers, "workers that there are to be")->check(detail::whole(1, 10000));
  s.value("--num_ps_pods", wanted.servers, "servers that there are to be")->check(detail::whole(1, 10000));
  std::string audited;
  audit->add_option("checkpoint", audited, "a --checkpoint_dir, or one version-N of it")->required();

  if (!line.empty() && line.front().rfind('-', 0) != 0 &&
      std::find(std::begin(detail::command_words), std::end(detail::command_words), line.front()) ==
          std::end(detail::command_words)) {
    std::string const near =
        nearest(line.front(), {std::begin(detail::command_words), std::end(detail::command_words)});
    throw usage_error(fmt::format("unknown command '{}'{}", line.front(),
                                  near.empty() ? ": expected train, evaluate, predict, data, audit or scale"
                                               : "; did you mean " + near + "?"));
  }
  try {
    std::vector<std::string> reversed(line.rbegin(), line.rend());
    app.parse(reversed);
  } catch (CLI::ExtrasError const&) {
    CLI::App const* chosen = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
    std::string word = chosen->remaining(true).empty() ? std::string() : chosen->remaining(true).front();
    if (word.empty() && !app.remaining(true).empty()) word = app.remaining(true).front();
    std::string const flag = word.substr(0, word.find('='));
    std::string const bare = flag.substr(std::min(flag.size(), flag.find_first_not_of('-')));
    if (flag.rfind("--", 0) != 0)
      throw usage_error(fmt::format("unexpected argument '{}': flags are --name=value", word));
    if (std::string const why = why_not_here(bare); !why.empty())
      throw usage_error(fmt::format("{} {}", flag, why));
    std::string const near = nearest(bare, names[chosen]);
    throw usage_error(fmt::format("unknown flag {}{}; `{} {} --help` lists all", flag,
                                  near.empty() ? "" : ": did you mean --" + near + "?", program,
                                  chosen == &app ? "" : chosen->get_name()));
  } catch (CLI::Success const& success) {
    std::ostringstream out, err;
    int const code = app.exit(success, out, err);
    return {std::nullopt, out.str() + err.str(), code};
  } catch (CLI::ParseError const& bad) {
    // A flag that is needed may be there, misspelt: that is what to tell.
    CLI::App const* chosen = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
    auto const& known = names[chosen];
    for (std::string const& word : line)
      if (std::string const bare = detail::flag_of(word);
          !bare.empty() && bare != "help" && std::ranges::find(known, bare) == known.end()) {
        if (std::string const why = why_not_here(bare); !why.empty())
          throw usage_error(fmt::format("--{} {}", bare, why));
        if (std::string const near = nearest(bare, known); !near.empty())
          throw usage_error(fmt::format("unknown flag --{}: did you mean --{}?", bare, near));
      }
    throw usage_error(fmt::format("{}; `{}{}{} --help` tells more", detail::plain(bad, *chosen), program,
                                  chosen == &app ? "" : " ", chosen == &app ? "" : chosen->get_name()));
  }

  if (data->parsed()) {
    a.data = c;
  } else if (audit->parsed()) {
    a.audit = audited;
  } else if (scale->parsed()) {
    if (!wanted.workers && !wanted.servers)
      throw usage_error("scale: how many? give --num_workers or --num_ps_pods");
    a.scale = wanted;
  } else {
    a.job.what = evaluate->parsed()  ? command::evaluate
                 : predict->parsed() ? command::predict
                                     : command::train;
    detail::settle_strategy(a.job, how);
    CLI::App const* of = app.get_subcommands().front();
    a.notes = idle_notes({a.job, records_per_task}, [&](std::string_view name) {
      auto const* const o = of->get_option_no_throw("--" + std::string(name));
      if (!o || o->count() == 0) return false;
      bool const truth = o->get_items_expected_max() == 0;
      return truth ? o->as<bool>() : o->results().back() != o->get_default_str();
    });
    detail::settle(a.job, level, records_per_task);
  }
  CLI::App const* chosen = app.get_subcommands().front();
  for (CLI::Option const* o : chosen->get_options())
    if (!o->get_lnames().empty() && o->get_lnames().front() != "help")
      a.given.emplace_back(o->get_lnames().front(),
                           o->count() ? CLI::detail::join(o->results(), ",") : o->get_default_str());
  return {a, {}, 0};
}

}  // namespace edl::app

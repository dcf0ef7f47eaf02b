// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "edl/app/arguments.hpp"
#include "edl/cli/command_line.hpp"
#include "edl/cli/nearest.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/names.hpp"
#include "edl/job/config/flags.hpp"
#include "edl/job/config/foreign_flags.hpp"
#include "edl/job/config/resolve.hpp"
#include "edl/job/train/observe/metric_history.hpp"
#include "edl/version.hpp"

namespace edl::app {
namespace detail {

struct described_command {
  char const *name, *help, *arguments;
  char const* word = "CHECKPOINT";  // name of the argument
  bool optional = false;            // whether the argument is
};

inline constexpr described_command commands[] = {
    {"train", "train the model", ""},
    {"evaluate", "compute the metrics of a trained model", ""},
    {"predict", "apply a trained model", ""},
    {"serve", "answer requests for predictions over HTTP", ""},
    {"generate", "continue a text with a trained language model", ""},
    {"export", "write a trained model as ONNX, which other programs compute", ""},
    {"data", "write records of any format that edl reads as RecordIO shards", ""},
    {"sweep", "train with many values of the hyperparameters, and report the best", ""},
    {"audit", "account for every record: in the data set, applied, lost, repeated",
     "a --checkpoint_dir, or one version-N of it"},
    {"history", "print or draw the course of the loss and the metrics of a training",
     "a --checkpoint_dir, or up to five to draw together; without it the working directory", "[DIRECTORY]…",
     true},
    {"scale", "change the number of processes of a running job", ""}};

inline cli::words command_names() {
  cli::words names;
  for (auto const& c : commands) names.emplace_back(c.name);
  return names;
}

inline std::vector<cli::flag> conversion_flags() {
  using enum cli::flag::value_type;
  conversion const defaults;
  auto const kinds = names(defaults.compressor);
  return {
      {.name = "from",
       .help =
           "records to read, in any format that --training_data takes, or synthetic:train, synthetic:test",
       .needed = true},
      {.name = "to",
       .help = "directory, or s3://BUCKET/PREFIX, to write RecordIO shards into",
       .needed = true},
      {.name = "records_per_shard",
       .fallback = std::to_string(defaults.records_per_shard),
       .help = "records in one file",
       .type = whole,
       .least = 1},
      {.name = "compressor",
       .fallback = std::string(name_of(defaults.compressor)),
       .help = "of the records",
       .choices = {kinds.begin(), kinds.end()}},
      {.name = "fraction",
       .fallback = "1",
       .help = "share of the records to take, from the first",
       .type = share},
      missing_flag()};
}

inline conversion conversion_of(cli::command_line const& l) {
  return {.from = l.text("from"),
          .to = l.text("to"),
          .compressor = *value_of<data::compressor>(l.text("compressor")),
          .records_per_shard = std::uint64_t(l.number("records_per_shard")),
          .fraction = cli::parse_number<double>(l.text("fraction")),
          .missing = l.text("missing")};
}

inline std::vector<cli::flag> scaling_flags(std::string const& program) {
  using enum cli::flag::value_type;
  return {
      {.name = "job_name",
       .fallback = program,
       .help = "name of the job, among those of this user on this machine"},
      {.name = "num_workers", .help = "number of workers to run", .type = whole, .least = 1, .most = 10'000},
      {.name = "num_ps_pods", .help = "number of servers to run", .type = whole, .least = 1, .most = 10'000}};
}

inline scaling scaling_of(cli::command_line const& l) {
  scaling wanted{.job = l.text("job_name"), .workers = {}, .servers = {}};
  if (l.given("num_workers")) wanted.workers = int(l.number("num_workers"));
  if (l.given("num_ps_pods")) wanted.servers = int(l.number("num_ps_pods"));
  if (!wanted.workers && !wanted.servers)
    throw usage_error("scale: give the new size with --num_workers or --num_ps_pods");
  return wanted;
}

/// Flags of a sweep on this machine.
inline std::vector<cli::flag> own_sweep_flags() {
  using enum cli::flag::value_type;
  std::vector<cli::flag> all{
      {.name = "output",
       .help = "directory of the sweep, or s3://BUCKET/PREFIX: a list of its trials, and a "
               "folder for each",
       .needed = true}};
  for (cli::flag& f : sweep_flags()) all.push_back(std::move(f));
  all.push_back({.name = "parallel",
                 .fallback = "0",
                 .help = "runs side by side; 0: one for each core",
                 .type = whole,
                 .least = 0,
                 .most = 1024});
  auto const formats = names(result_format{});
  all.push_back(
      {.name = "output_format",
       .fallback = "text",
       .help = "how the result is printed: a table, or an object of JSON, with progress on standard error",
       .aliases = {"o"},
       .choices = {formats.begin(), formats.end()}});
  return all;
}

/// Flags that a sweep sets for its runs.
inline bool set_by_sweep(std::string const& name) {
  static std::array<std::string_view, 5> const own{"output", "checkpoint_dir", "save_best",
                                                   "keep_checkpoint_max", "early_stopping"};
  return name.starts_with("export_") || std::ranges::find(own, name) != own.end();
}

inline std::string why_not_in_sweep(std::string const& name) {
  if (name == "early_stopping")
    return "is not for a sweep: it compares its trials after equal numbers of steps; leave it out";
  if (name.starts_with("export_"))
    return "is for one model: export the best trial's with the command export; leave it out";
  if (set_by_sweep(name)) return "is set by the sweep, for each trial; leave it out";
  return why_not_here(name);
}

inline std::vector<cli::flag> all_sweep_flags(std::string const& program) {
  std::vector<cli::flag> all = own_sweep_flags();
  for (cli::flag& f : all) f.group = "Sweep";
  for (cli::flag& f : edl::flags_of(command::train, program))
    if (!set_by_sweep(f.name)) all.push_back(std::move(f));
  return all;
}

inline sweep sweep_of(cli::command_line const& l) {
  sweep s{.options = sweep_options_of(l),
          .by = read_monitor("--by", l.text("by")),
          .parallel = int(l.number("parallel")),
          .output = l.text("output"),
          .data_cache = l.text("data_cache"),
          .train_flags = {},
          .format = *value_of<result_format>(l.text("output_format"))};
  auto const own = own_sweep_flags();
  for (auto const& [name, value] : l.in_order())
    if (std::ranges::find(own, name, &cli::flag::name) == own.end() && name != "max_step")
      s.train_flags.push_back(fmt::format("--{}={}", name, value));
  if (!l.given("validation_data") && !l.given("validation_split"))
    throw usage_error(
        "a sweep needs --validation_data or --validation_split: its trials are compared on those records");
  return s;
}

inline std::vector<cli::flag> flags_of(std::string const& name, std::string const& program) {
  if (auto const c = value_of<command>(name)) return edl::flags_of(*c, program);
  return name == "data"       ? conversion_flags()
         : name == "export"   ? export_flags(program)
         : name == "scale"    ? scaling_flags(program)
         : name == "serve"    ? serving_flags(program)
         : name == "sweep"    ? all_sweep_flags(program)
         : name == "generate" ? generating_flags()
         : name == "history"  ? history_flags()
                              : std::vector<cli::flag>{};
}

inline std::string help(std::string const& program) {
  std::string text = fmt::format(
      "Trains, evaluates and applies one model, on this machine or as any part of a job.\n\n"
      "usage: {} COMMAND [flags]\n\nCommands\n",
      program);
  for (auto const& c : commands) text += fmt::format("  {:<14} {}\n", c.name, c.help);
  return text + fmt::format("  {:<14} print the version\n\n`{} COMMAND --help` describes one.\n", "--version",
                            program);
}

/// The flags of a job that most people use.
inline constexpr std::string_view common_flags[] = {"training_data",
                                                    "validation_data",
                                                    "validation_split",
                                                    "prediction_data",
                                                    "prediction_outputs",
                                                    "prediction_format",
                                                    "prediction_columns",
                                                    "num_epochs",
                                                    "max_step",
                                                    "minibatch_size",
                                                    "num_threads",
                                                    "device",
                                                    "precision",
                                                    "dry_run",
                                                    "seed",
                                                    "set",
                                                    "distribution_strategy",
                                                    "num_workers",
                                                    "num_ps_pods",
                                                    "evaluation_steps",
                                                    "save_best",
                                                    "early_stopping",
                                                    "output",
                                                    "checkpoint_dir",
                                                    "checkpoint_steps",
                                                    "checkpoint_dir_for_init"};

inline std::string help(std::string const& program, described_command const& c, bool whole) {
  auto flags = flags_of(c.name, program);
  std::string more;
  if (value_of<command>(std::string(c.name)) && !whole) {
    auto const rare = std::erase_if(flags, [](cli::flag const& f) {
      return f.help.empty() || std::ranges::find(common_flags, f.name) == std::end(common_flags);
    });
    more = fmt::format("\n{} more flags: {} {} --help=all\n", rare, program, c.name);
  }
  return fmt::format("usage: {} {}{}{}\n{}{}\n", program, c.name,
                     *c.arguments ? " " + std::string(c.word) : "", flags.empty() ? "" : " [flags]", c.help,
                     *c.arguments ? fmt::format(" ({})", c.arguments) : "") +
         (flags.empty() ? "" : "\n" + cli::describe(flags) + more);
}

/// The reason why a command does not have a flag that another command has; empty: no command has it.
inline std::string of_another(std::string const& command, std::string const& flag) {
  auto const is = [&](cli::flag const& f) {
    return f.name == flag || std::ranges::find(f.aliases, flag) != f.aliases.end();
  };
  if (!value_of<edl::command>(command)) return {};
  for (job_flag const& f : job_flags()) {
    if (!is(f.flag)) continue;
    std::vector<std::string_view> of;
    for (edl::command const c : f.commands) of.push_back(name_of(c));
    return fmt::format("is a flag of {}, not of {}: leave it out", fmt::join(of, " and "), command);
  }
  return {};
}

/// The command that a line names. Throws usage_error, with the nearest name, if there is none.
inline described_command const& command_of(std::string const& program, cli::words const& line) {
  auto const names = command_names();
  std::string const all = fmt::format("{}", fmt::join(names, ", "));
  if (line.empty() || line.front().starts_with('-'))
    throw usage_error(fmt::format("a command is missing: {}; see `{} --help`", all, program));
  auto const found = std::ranges::find(commands, line.front(), &described_command::name);
  if (found != std::end(commands)) return *found;
  std::string const near = cli::nearest(line.front(), names);
  throw usage_error(fmt::format("unknown command '{}'{}", line.front(),
                                near.empty() ? ": expected " + all : "; did you mean " + near + "?"));
}

/// Reports a misspelt metric first, before asking for its direction.
inline void check_metrics(cli::command_line const& l, std::vector<cli::flag> const& flags,
                          std::vector<std::string> const& known) {
  for (char const* const name : {"save_best", "early_stopping", "by"}) {
    if (known.empty() || std::ranges::find(flags, name, &cli::flag::name) == flags.end()) continue;
    std::string const text = l.text(name), metric = text.substr(0, text.find_first_of(":,"));
    if (metric.empty()) continue;
    if (std::string const why = train::unknown_metric(fmt::format("--{}", name), metric, known); !why.empty())
      throw usage_error(why);
  }
}

}  // namespace detail

/// The flags of an evaluation that identify the model, and those of a training that name the output.
EDL_INLINE std::vector<cli::flag> export_flags(std::string const& program) {
  std::vector<cli::flag> all;
  for (cli::flag& f : edl::flags_of(command::evaluate, program))
    if (f.name == "checkpoint_dir_for_init" || f.name == "set") all.push_back(std::move(f));
  all.front().aliases.push_back("checkpoint");
  for (cli::flag& f : edl::flags_of(command::train, program))
    if (f.name.starts_with("export_")) all.push_back(std::move(f));
  for (cli::flag& f : all)
    if (f.name == "export_onnx") {
      f.needed = true;
      f.help = "file to write; where it is larger than 1 GiB, its tensors lie beside it in FILE.CRC32.data";
    }
  return all;
}

EDL_INLINE parsed parse(std::string const& program, std::vector<std::string> const& line,
                        train::hyperparameters const& set, std::vector<std::string> const& metrics) {
  if (!line.empty() && line.front() == "--version")
    return {.run = {}, .text = fmt::format("edl {}\n", package_version)};
  if (!line.empty() && (line.front() == "--help" || line.front() == "-h"))
    return {.run = {}, .text = detail::help(program)};
  detail::described_command const& c = detail::command_of(program, line);
  cli::words const rest(line.begin() + 1, line.end());
  if (cli::asks_for_help(rest)) {
    std::string const of_model = value_of<command>(std::string(c.name)) || c.name == std::string_view("sweep")
                                     ? train::help_text(set)
                                     : "";
    return {.run = {},
            .text = detail::help(program, c, std::ranges::count(rest, "--help=all") > 0) +
                    (of_model.empty() ? "" : "\n" + of_model)};
  }
  std::string const name = c.name;
  bool const has_argument = *c.arguments;
  cli::command_line const l(
      {.command = program + " " + name,
       .flags = detail::flags_of(name, program),
       .least = has_argument && !c.optional,
       .most = name == "history" ? most_histories : has_argument,
       .arguments = c.arguments,
       .why_unknown =
           [&](std::string const& flag) {
             if (std::ranges::find(set, flag, &cli::flag::name) != set.end())
               return fmt::format("is a hyperparameter of the model: --set {}=VALUE", flag);
             if (std::string why = detail::of_another(name, flag); !why.empty()) return why;
             return name == "sweep" ? detail::why_not_in_sweep(flag) : why_not_here(flag);
           }},
      rest);
  cli::refuse_empty(l);
  detail::check_metrics(l, detail::flags_of(name, program), metrics);
  arguments a;
  if (name == "data") {
    a.data = detail::conversion_of(l);
  } else if (name == "audit") {
    a.audit = l.arguments().front();
  } else if (name == "history") {
    a.history = history_request{.paths = l.arguments().empty() ? cli::words{"."} : l.arguments(),
                                .format = l.text("output_format"),
                                .picture = l.text("plot"),
                                .smooth = smoothing_of(l)};
  } else if (name == "sweep") {
    a.sweep = detail::sweep_of(l);
  } else if (name == "export") {
    check_export_file(l);
    a.exported = true;
    a.job.outputs.export_onnx = l.text("export_onnx");
    a.job.outputs.export_fold_batch_norm = l.truth("export_fold_batch_norm");
    a.job.outputs.export_preprocess = l.truth("export_preprocess");
    a.job.outputs.export_rows_as_inputs = l.truth("export_rows_as_inputs");
    a.job.command = command::evaluate;
    a.job.checkpoints.checkpoint_dir_for_init = l.text("checkpoint_dir_for_init");
    a.job.set = fmt::format("{}", fmt::join(l.all("set"), ";"));
  } else if (name == "serve") {
    a.serving = serving_of(l);
    a.job.set = a.serving->set;
  } else if (name == "generate") {
    a.generating = generating_of(l);
    a.job.set = a.generating->set;
  } else if (name == "scale") {
    a.scale = detail::scaling_of(l);
  } else {
    resolved s = resolve(*value_of<command>(name), l);
    a.job = std::move(s.job);
    a.notes = std::move(s.notes);
    for (cli::flag const& f : detail::flags_of(name, program))
      a.given.emplace_back(f.name,
                           f.repeats ? fmt::format("{}", fmt::join(l.all(f.name), ";")) : l.text(f.name));
  }
  return {.run = std::move(a)};
}

}  // namespace edl::app

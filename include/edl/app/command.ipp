// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "edl/app/arguments.hpp"
#include "edl/app/audit.hpp"
#include "edl/app/command.hpp"
#include "edl/app/machine_check.hpp"
#include "edl/app/master_absence.hpp"
#include "edl/app/roles.hpp"
#include "edl/app/running.hpp"
#include "edl/app/signals.hpp"
#include "edl/app/sweep.hpp"
#include "edl/base/bucket/place.hpp"
#include "edl/base/bucket/readable.hpp"
#include "edl/base/platform/platform.hpp"
#include "edl/cli/program.hpp"
#include "edl/cli/screen.hpp"
#include "edl/cli/status_line.hpp"
#include "edl/compute/data/format/convert.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/compute/device/cpu/options.hpp"
#include "edl/compute/optim/name_patterns.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/names.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/train/local/dry_run.hpp"
#include "edl/job/train/local/local.hpp"
#include "edl/job/train/observe/metric_history.hpp"
#include "edl/job/train/setup/base_model.hpp"
#include "edl/job/train/setup/onnx_model.hpp"
#include "edl/job/train/setup/records.hpp"
#include "edl/job/train/setup/setup.hpp"
#include "edl/job/train/setup/start.hpp"
#include "edl/job/worker/links.hpp"

namespace edl::app {
namespace detail {

inline int run_conversion(train::program const& p, conversion const& c) {
  bool const terminal = ::isatty(2) == 1;
  bucket::cache_options const cache{.log = logger(terminal ? severity::info : severity::warning)};
  auto const from = data::open_source(c.from, {.missing = data::read_missing_words(c.missing)},
                                      bucket::opener_of(cache, p.open));
  data::convert_options options{.records_per_shard = c.records_per_shard, .fraction = c.fraction};
  options.recordio.with = c.compressor;
  if (terminal)
    options.progress = [](std::uint64_t done, std::uint64_t of) {
      fmt::print(stderr, "\r{}/{} records{}", done, of, done == of ? "\n" : "");
    };
  data::converted made;
  bucket::place(c.to, cache).fill([&](std::string const& to) { made = data::convert(*from, to, options); });
  fmt::print("{} in {}: {}\n", counted(made.records, "record"), counted(made.files, "file"), printable(c.to));
  return 0;
}

inline std::string name_in_log(process_environment const& s) {
  return s.role.empty() || s.role == "master" ? s.role : fmt::format("{}-{}", s.role, s.id);
}

inline logger open_log(job const& j, process_environment const& s,
                       std::shared_ptr<cli::screen> const& terminal) {
  std::string const name = name_in_log(s);
  // The logs of pods, and of roles started by hand, are read later, by people who know less.
  bool const by_itself = !s.role.empty() && !is_of_a_command(s);
  log_target where{.detailed = j.log.verbose || j.log.log_level == severity::debug || by_itself,
                   .to = terminal};
  if (j.log.log_file_path.empty()) return logger(j.log.log_level, name, where);
  where.also = ::open(j.log.log_file_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (where.also < 0)
    throw usage_error(fmt::format("--log_file_path={}: {}", j.log.log_file_path, std::strerror(errno)));
  return logger(j.log.log_level, name, where);
}

/// Writes why this process ends to --log_file_path, too: what is printed last may be kept nowhere.
inline void log_end(job const& j, process_environment const& s, std::exception const& why) noexcept try {
  if (j.log.log_file_path.empty()) return;
  int const file = ::open(j.log.log_file_path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  logger(severity::error, name_in_log(s), file)
      .error(fmt::format("this process ends: {}", cli::text_of(why)));
  ::close(file);
} catch (std::exception const&) {  // out of memory; the reason is printed all the same
}

/// Where a job shows its progress in a line that is redrawn; empty: nowhere.
inline cli::status_sink status_sink_of(process_environment const& s,
                                       std::shared_ptr<cli::screen> const& terminal) {
  if (terminal) return [terminal](cli::status_line const& line) { terminal->show(line); };
  if (!s.shown) return {};
  return [](cli::status_line const& line) {
    std::string const text = cli::encode(line);
    // Short enough for an atomic write to a pipe; if one is lost, the next follows.
    [[maybe_unused]] auto const written = ::write(2, text.data(), text.size());
  };
}

/// With --dry_run: turns the job into a trial run, in a directory that all its processes know.
inline std::unique_ptr<train::dry_run_directory> prepare_dry_run(job& j, process_environment& s) {
  if (!j.dry_run) return nullptr;
  if (!s.role.empty() && s.dry_run.empty())
    throw usage_error(
        "--dry_run works on one machine, by one command: leave it out in a cluster and for roles started by "
        "hand");
  std::unique_ptr<train::dry_run_directory> own;
  if (s.role.empty()) {
    own = std::make_unique<train::dry_run_directory>();
    s.dry_run = own->path();
    ::setenv("EDL_DRY_RUN_DIR", s.dry_run.c_str(), 1);  // for the processes that this one starts
  }
  train::make_dry(j, s.dry_run);
  return own;
}

inline int run_locally(train::program& p, arguments const& a, process_environment const& s, logger const& log,
                       signals const& stop, cli::status_sink show) {
  std::atomic<int> stop_signal{0};
  // The job checks for the signal before each minibatch. Before the second check it has nothing to save,
  // because tasks are ordered only after the first one.
  std::atomic<int> asked{0};
  // A separate thread watches for the second signal: a minibatch may take long, and the second signal must
  // not be mistaken for the first.
  std::jthread const watch([&](std::stop_token const& over) {
    std::optional<int> signal;
    while (!over.stop_requested() && !signal) signal = stop.wait(std::chrono::milliseconds(20));
    if (!signal) return;
    if (asked < 2) {
      std::error_code none;
      if (!s.dry_run.empty()) std::filesystem::remove_all(s.dry_run, none);
      tell_early_stop(log, *signal);
      std::_Exit(128 + *signal);
    }
    stop_signal = *signal;
    auto const first = clock::now();
    if (train::keeps_state(a.job))
      log.warning("stopping: a checkpoint is written first; the next Ctrl-C ends the job at once");
    stop.give_back(SIGINT);
    while (!over.stop_requested()) {
      signal = stop.wait(std::chrono::milliseconds(20));
      if (!signal || !ends_at_once(*signal, clock::now() - first)) continue;
      stop.give_back(*signal);
      ::raise(*signal);
    }
  });
  int const code =
      train::run_local(p, a.job, log,
                       {.interrupted = [&] { return asked = std::min(asked + 1, 2), stop_signal != 0; },
                        .show = std::move(show),
                        .command = own_command(),
                        .token = s.token});
  return code == 0 || stop_signal == 0 ? code : 128 + stop_signal;
}

/// Sets the program's options to those that the model was trained with, unless the user has set them.
inline std::vector<train::trained_note> take_trained(train::program& p, job const& j,
                                                     process_environment const& s) {
  if (j.command == command::train || j.checkpoints.checkpoint_dir_for_init.empty()) return {};
  // Processes that one command starts on this machine use what the command has found, because the directory
  // may change.
  static constexpr char const* variable = "EDL_TRAINED_WITH";
  char const* const from_environment = is_of_a_command(s) ? std::getenv(variable) : nullptr;
  std::string const trained = from_environment ? from_environment : train::trained_hyperparameters(j);
  if (s.role.empty()) ::setenv(variable, trained.c_str(), 1);
  train::settings values;
  try {
    values = train::read_settings(trained);
  } catch (usage_error const&) {  // another program wrote this file
    return {{false, fmt::format("ignoring the hyperparameters of {}: they do not have the form of --set",
                                j.checkpoints.checkpoint_dir_for_init)}};
  }
  train::hyperparameters all = p.set;
  auto notes =
      train::set_trained(all, values, train::read_settings(j.set), j.checkpoints.checkpoint_dir_for_init);
  if (train::values_of(all) != train::values_of(p.set)) p = p.with(all);
  return notes;
}

/// Prints the names to which --freeze, --rates and weight_names refer.
inline void print_variables(std::ostream& to, parameter_layout const& of, std::string const& frozen) {
  for (std::size_t i = 0; i < of.variables.size(); ++i) {
    edl::variable const& v = of.variables[i];
    fmt::print(to, "  {:<44} ({}){}\n", v.name,
               fmt::join(v.dims.sizes.begin(), v.dims.sizes.begin() + v.dims.rank, ", "),
               v.offset >= of.parameters      ? ", not trained"
               : matches_name(frozen, v.name) ? ", frozen"
                                              : "");
  }
  for (table_shape const& t : of.tables) fmt::print(to, "  {:<44} rows of {}\n", t.name, t.width);
}

inline int run_role(train::program& p, std::string const& name, std::vector<std::string> const& line) {
  parsed const command = parse(name, line, p.set, p.metric_names);
  if (!command.run) {
    fmt::print(command.code == 0 ? stdout : stderr, "{}", command.text);
    return command.code;
  }
  arguments a = *command.run;
  if (a.data) return run_conversion(p, *a.data);
  if (a.scale) {
    scale(*a.scale);
    return 0;
  }
  if (a.sweep) return run_sweep(*a.sweep, p, signals{SIGTERM, SIGINT, SIGHUP});
  if (a.history) {
    show(*a.history);
    return 0;
  }
  if (a.audit) {
    audit const found = audit_checkpoint(*a.audit);
    write(std::cout, found);
    return found.exact() ? 0 : 1;
  }
  if (train::settings const given = train::read_settings(a.job.set); !given.empty()) {
    train::hyperparameters all = p.set;
    train::set(all, given);
    p = p.with(all);
  }
  if (a.generating) return run_generating(p, *a.generating);
  if (a.serving) return run_serving(p, *a.serving, signals{SIGTERM, SIGINT, SIGHUP});
  process_environment s = read_environment();
  auto const trained = take_trained(p, a.job, s);
  if (a.exported) {
    for (auto const& note : trained) fmt::print(stderr, "{}: {}\n", name, printable(note.text));
    logger const log(severity::info, s.role, log_target{.detailed = false});
    for (std::string const& warning : train::check_onnx(p, a.job)) log.warning(warning);
    a.job.hyperparameters = train::write_settings(train::values_of(p.set));
    auto const from =
        train::find_model(a.job.checkpoints.checkpoint_dir_for_init, log, checkpoint::check::checksums,
                          train::init_flag, train::cache_of(a.job));
    fmt::print("{}\n", train::export_onnx(p, a.job, from.path, log));
    return 0;
  }
  if (a.job.explain_plan) {
    for (auto const& note : trained) fmt::print(stderr, "{}: {}\n", name, printable(note.text));
    fmt::print(std::cout, "variables\n");
    print_variables(std::cout, p.layout, a.job.training.freeze);
    if (p.adapted) print_variables(std::cout, p.adapted->frozen, "*");
    p.explain(std::cout, train::trainer_options_of(a.job, p, std::max(1, a.job.processes.num_workers), 0));
    return 0;
  }
  if (!a.job.outputs.export_onnx.empty() && (s.role.empty() || s.role == "master"))
    for (std::string& warning : train::check_onnx(p, a.job)) a.notes.push_back(std::move(warning));
  ::prctl(PR_SET_NAME, name.c_str());  // a child starts through a link in /proc, which would become its name
  if (s.job_name.empty()) s.job_name = a.job.name;
  a.job.name = s.job_name;
  a.job.evaluation.asks_model = p.may_stop;
  if (a.job.command == command::train) a.job.evaluation.plateau = plateau_of_model(*p.rule);
  if (auto const& plateau = a.job.evaluation.plateau)
    if (std::string const why =
            train::unknown_metric(plateau_metric, plateau->monitor.metric, p.metric_names);
        !why.empty())
      throw usage_error(why);
  a.job.hyperparameters = train::write_settings(train::values_of(p.set));
  // Ctrl-C, a hangup and signals to a process group reach all processes of a command; those that the command
  // has started ignore them and leave the reaction to the command. Its master may be stopped on its own, and
  // then keeps the state.
  bool const starts_others = s.role.empty() && a.job.strategy != strategy::local;
  signals const stop = starts_others         ? signals{SIGTERM, SIGINT, SIGHUP, leave_signal()}
                       : !is_of_a_command(s) ? signals{SIGTERM, SIGINT, SIGHUP}
                       : s.role == "master"  ? signals{SIGTERM}
                                             : signals({SIGTERM}, signals::terminate::as_parent_says);
  ::signal(SIGPIPE, SIG_IGN);
  auto const directory = prepare_dry_run(a.job, s);
  auto const terminal = is_of_a_command(s) ? nullptr : cli::screen::open(2);
  logger const log = open_log(a.job, s, terminal);
  // Processes that this command started do not repeat its lines.
  if (s.role.empty() || (s.role == "master" && s.platform != "process")) {
    for (std::string const& note : a.notes) log.warning(note);
    for (auto const& note : trained) log.log(note.taken ? severity::info : severity::warning, note.text);
  }
  try {
    if (s.role != "ps" && !starts_others) train::read_base(p, a.job, log);
    if (s.role == "master") return run_master(p, a, s, log, stop, status_sink_of(s, terminal));
    if (s.role == "ps") return run_server(p, a, s, log, stop);
    if (s.role == "worker") return run_worker(p, a, s, log, stop);
    if (a.job.strategy == strategy::local)
      return run_locally(p, a, s, log, stop, status_sink_of(s, terminal));
    return run_local_job(a, log, stop, terminal);
  } catch (worker::interrupted const& e) {
    log.info(e.what());
    return 0;
  } catch (std::exception const& e) {
    log_end(a.job, s, e);
    throw;
  }
}

}  // namespace detail

EDL_INLINE int run(train::program& p, int argc, char** argv) {
  std::string name = argc > 0 ? argv[0] : "edl";
  name = name.substr(name.find_last_of('/') + 1);
  cli::hold_standard_streams();
  try {
    check_processor();
    int const code = detail::run_role(p, name, {argv + 1, argv + argc});
    cli::flush_output();
    return code;
  } catch (std::bad_alloc const&) {
    cli::complain(name,
                  "out of memory; lower --minibatch_size, use fewer processes, or give this one more "
                  "(--explain_plan prints the needs of the network)");
    return 1;
  } catch (worker::given_up const& e) {
    cli::complain(name, e.what());
    return platform::gave_up_waiting;
  } catch (untrusted_machine const& e) {
    cli::complain(name, e.what());
    return platform::bad_machine;
  } catch (std::exception const& e) {
    cli::complain(name, cli::text_of(e));
    return 1;
  }
}

}  // namespace edl::app

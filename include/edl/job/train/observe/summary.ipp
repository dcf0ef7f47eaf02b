// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/manifest.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/train/observe/metric_history.hpp"
#include "edl/job/train/observe/summary.hpp"
#include "edl/job/train/setup/start.hpp"
#include "edl/job/worker/session.hpp"

namespace edl::train {
namespace detail {

inline std::string numbers(metric_values const& of) {
  std::string text;
  for (auto const& [name, value] : of)
    text += fmt::format("{}{} {:.4g}", text.empty() ? "" : ", ", name, value);
  return text;
}

/// The newest checkpoint. A failure here is not reported as an error, because the job itself is done.
inline std::optional<std::string> newest_of(job const& j) try {
  if (j.checkpoints.checkpoint_dir.empty()) return std::nullopt;
  return checkpoint::newest_valid(checkpoints_of(j), checkpoint::check::sizes);
} catch (error const&) {
  return std::nullopt;
}

inline std::string account(master::coordinator const& c) {
  if (!c.tasks()) return {};
  auto const by_epoch = c.tasks()->done_by_epoch();
  master::task_counters const done = master::sum_of(by_epoch);
  std::uint64_t const all = c.tasks()->plan().records() * by_epoch.size();
  return fmt::format("records: {} counted once, {} skipped as damaged, {} left", done.records_done,
                     done.records_skipped, all - done.records_done - done.records_skipped);
}

/// Which of two limits ended the job, if it has two.
inline std::string step_line(ended_job const& j) {
  master::job_progress const p = j.decisions.progress();
  if (j.job.data.max_step == 0 || j.early || !p.total_records) return {};
  std::uint64_t const done = p.done.records_done + p.done.records_skipped;
  if (done < *p.total_records)
    return fmt::format("--max_step={} is reached: {} of --num_epochs={} are not trained", j.job.data.max_step,
                       counted(*p.total_records - done, "record"), j.job.data.num_epochs);
  if (p.version >= j.job.data.max_step) return {};
  return fmt::format("--max_step={} is not reached: --num_epochs={} ends at version {}", j.job.data.max_step,
                     j.job.data.num_epochs, p.version);
}

inline std::string model_line(ended_job const& j) {
  master::job_progress const p = j.decisions.progress();
  std::string text = fmt::format("model: version {}", p.version);
  auto const& e = j.seen.last_evaluation();
  bool const measured =
      std::ranges::find(e.metrics, "loss", &metric_values::value_type::first) != e.metrics.end();
  if (j.job.command == command::train && j.seen.loss() != 0)
    text += fmt::format(", loss {}{:.4g} (mean of the last minibatches, {} at most)",
                        measured ? "in training " : "", j.seen.loss(), worker::losses_shown);
  if (e.records == 0) return text;
  return text + fmt::format(", {} over {}{}", numbers(e.metrics), counted(e.records, "record"),
                            e.version == p.version ? "" : fmt::format(" at version {}", e.version));
}

/// The words of a command that set hyperparameters.
inline std::vector<std::string> settings_of(std::vector<std::string> const& command) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < command.size(); ++i)
    for (std::string const flag : {"--set", "--model_params"}) {
      if (command[i].starts_with(flag + "=")) all.push_back(command[i]);
      if (command[i] == flag && i + 1 < command.size()) all.push_back(flag + "=" + command[i + 1]);
    }
  return all;
}

/// The path of the model to which the summary's metrics belong, or of the best version. Only the exported
/// model has averaged weights.
inline std::string model_to_use(job const& j, std::string const& newest, std::string const& exported) {
  if ((j.evaluation.save_best || j.evaluation.early_stopping) && !j.checkpoints.checkpoint_dir.empty()) try {
      if (!checkpoints_of(j).at(best_path(j)).names().empty()) return best_path(j);
    } catch (error const&) {
    }
  return newest.empty() || (j.training.moving_average > 0 && !exported.empty()) ? exported : newest;
}

/// The number of epochs whose records a checkpoint has, which may exceed this command's.
inline std::int64_t epochs_of(bucket::place const& checkpoint) try {
  auto const by_epoch = checkpoint::read_manifest(checkpoint).applied().tallies();
  return by_epoch.empty() ? 0 : std::int64_t(by_epoch.rbegin()->first) + 1;
} catch (error const&) {
  return 0;
}

/// Commands that the user may want next; `newest`: the newest checkpoint, or empty.
inline std::vector<std::string> next_commands(ended_job const& j, std::string const& model,
                                              std::string const& newest) {
  std::vector<std::string> lines;
  bool const splits = j.job.data.validation_data.empty() && j.job.data.validation_split > 0;
  std::string const& data =
      j.job.data.validation_data.empty() ? j.job.data.training_data : j.job.data.validation_data;
  for (auto const& [what, flag] :
       {std::pair{"evaluate", "--validation_data="}, {"predict", "--prediction_data="}}) {
    std::vector<std::string> words{j.command.front(), what, flag + data};
    if (splits && std::string_view(what) == "evaluate") {
      words.push_back(fmt::format("--validation_split={}", j.job.data.validation_split));
      if (j.job.seed != job{}.seed) words.push_back(fmt::format("--seed={}", j.job.seed));
    }
    words.push_back("--checkpoint_dir_for_init=" + model);
    if (j.job.data.missing) words.push_back("--missing=" + *j.job.data.missing);
    if (j.job.data.skip_damaged) words.push_back("--skip_damaged");
    if (j.job.data.skip_damaged && j.job.data.max_damaged != job{}.data.max_damaged)
      words.push_back(fmt::format("--max_damaged={}", j.job.data.max_damaged));
    for (std::string const& word : settings_of(j.command)) words.push_back(word);
    lines.push_back(shell_line(words));
  }
  // The checkpoints record an early end, so a resumed job would end again at once.
  if (j.job.checkpoints.checkpoint_dir.empty() || j.early) return lines;
  auto more = j.command;
  if (j.job.data.num_epochs > 0)
    more = with_flag(more, "num_epochs",
                     std::to_string(2 * std::max<std::int64_t>(j.job.data.num_epochs,
                                                               epochs_of(checkpoints_of(j.job).at(newest)))));
  if (j.job.data.max_step > 0)
    more = with_flag(more, "max_step",
                     std::to_string(2 * std::max(j.job.data.max_step, j.decisions.progress().version)));
  lines.push_back(shell_line(more));
  return lines;
}

}  // namespace detail

EDL_INLINE std::vector<std::string> with_flag(std::vector<std::string> command, std::string const& name,
                                              std::string const& value) {
  std::string const flag = "--" + name;
  for (auto it = command.begin(); it != command.end(); ++it) {
    if (*it == flag && std::next(it) != command.end()) {
      *std::next(it) = value;
      return command;
    }
    if (!it->starts_with(flag + "=")) continue;
    *it = flag + "=" + value;
    return command;
  }
  command.push_back(flag + "=" + value);
  return command;
}

EDL_INLINE std::vector<std::string> summary(ended_job const& j, time_point now) {
  job const& of = j.job;
  double const seconds = j.seen.seconds(now);
  std::uint64_t const all = j.decisions.tasks() ? j.decisions.progress().done.records_done
                                                : j.seen.last_evaluation().records,
                      done = all - std::min(all, j.decisions.tasks() ? j.seen.records_before() : 0);
  char const* const what = of.command == command::train      ? "trained"
                           : of.command == command::evaluate ? "evaluated"
                                                             : "predicted";
  std::vector<std::string> lines{
      fmt::format("{} {} in {}{}", what, counted(done, "record"), clock_text(seconds),
                  seconds >= 0.001 ? fmt::format(", {:.0f} records/s", double(done) / seconds) : "")};
  if (std::string const account = detail::account(j.decisions); !account.empty()) lines.push_back(account);
  lines.push_back(detail::model_line(j));
  if (of.command != command::train) return lines;
  if (std::string const end = detail::step_line(j); !end.empty()) lines.push_back(end);
  auto const newest = detail::newest_of(of);
  if (newest) lines.push_back(fmt::format("checkpoint: {}", *newest));
  std::string const exported = of.outputs.output.empty() ? "" : of.outputs.output + "/model.safetensors";
  if (!exported.empty()) lines.push_back(fmt::format("exported model: {}", exported));
  std::string const model = detail::model_to_use(of, newest.value_or(""), exported);
  std::string const way = ": --checkpoint_dir=DIR keeps checkpoints and the history";
  if (model.empty())
    lines.push_back("nothing is kept" + way + ", --output=DIR the model");
  else if (of.checkpoints.checkpoint_dir.empty())
    lines.push_back("no checkpoint and no history is kept" + way);
  if (model.empty() || j.command.empty()) return lines;
  lines.push_back("next:");
  for (std::string const& one : detail::next_commands(j, model, newest.value_or("")))
    lines.push_back("  " + one);
  return lines;
}

EDL_INLINE std::vector<std::string> dry_run_report(ended_job const& j) {
  job const& of = j.job;
  auto const found = checkpoint::find_checkpoint(of.checkpoints.checkpoint_dir);
  if (!found.newest) throw error("--dry_run: cannot read the written checkpoint: " + found.warning());
  std::string const exported = of.outputs.output + "/model.safetensors";
  std::uint64_t const version = checkpoint::model_version(exported);
  std::error_code unknown;
  auto const& e = j.seen.last_evaluation();
  std::vector<std::string> lines{
      "dry run: everything works, and nothing is kept",
      fmt::format("  data: {} read of {}", counted(j.decisions.progress().done.records_done, "record"),
                  of.data.training_data),
      fmt::format("  step: {} made, in minibatches of at most {}", j.decisions.progress().version,
                  of.data.minibatch_size)};
  if (j.seen.loss() != 0) lines.back() += fmt::format(", loss {:.4g}", j.seen.loss());
  lines.push_back(fmt::format("  evaluation: {} over {} of {}", detail::numbers(e.metrics),
                              counted(e.records, "record"), of.data.validation_data));
  lines.push_back(fmt::format("  checkpoint: version {} written and read",
                              std::filesystem::path(*found.newest).filename().native().substr(8)));
  lines.push_back(fmt::format("  exported model: version {}, {} bytes", version,
                              std::filesystem::file_size(exported, unknown)));
  if (!j.plan.empty()) lines.push_back("  memory: " + j.plan);
  return lines;
}

namespace detail {

inline void say(logger const& log, progress_view const& seen, std::string const& line) {
  seen.watched() ? log.plain(line) : log.info(line);
}

}  // namespace detail

EDL_INLINE void tell(ended_job const& j, time_point now, logger const& log) {
  if (j.job.dry_run) {
    for (std::string const& line : dry_run_report(j)) fmt::print("{}\n", line);
    std::fflush(stdout);
    return;
  }
  for (std::string const& line : summary(j, now)) detail::say(log, j.seen, line);
}

EDL_INLINE void tell_evaluation(job const& j, std::string const& line, progress_view& seen,
                                logger const& log) {
  if (j.command != command::evaluate) return log.info(line);
  seen.clear();
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

EDL_INLINE void tell_stopped(std::string const& how, job const& j, progress_view const& seen,
                             std::vector<std::string> const& command, logger const& log) {
  log.warning(fmt::format("{}; {}", how, way_on(j)));
  if (j.dry_run || command.empty() || !detail::newest_of(j)) return;
  detail::say(log, seen, "go on with:");
  detail::say(log, seen, "  " + shell_line(command));
}

}  // namespace edl::train

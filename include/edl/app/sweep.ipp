// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "edl/app/sweep.hpp"
#include "edl/app/sweep_file.hpp"
#include "edl/base/bucket/cache.hpp"
#include "edl/base/bucket/place.hpp"
#include "edl/base/platform/process.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/cores.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/input_file.hpp"
#include "edl/core/log.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/train/observe/metric_history.hpp"

namespace edl::app {
namespace detail {

inline constexpr std::uint64_t longest_log = 16u << 20;  // bytes, of a trial in a bucket
inline constexpr std::chrono::seconds stop_timeout{60};  // each writes a checkpoint

/// The running runs of a sweep, and the results of the others.
class sweep_runs {
 public:
  sweep_runs(sweep const& of, train::program const& p)
      : sweep_(of),
        program_(p),
        program_file_(std::filesystem::read_symlink("/proc/self/exe").string()),
        trials_(trials_of(of.options, p.set)),
        rounds_(rounds_of(of.options)) {
    if (std::string const why = train::unknown_metric("--by", of.by.metric, p.metric_names); !why.empty())
      throw usage_error(why);
    bucket::cache_options const cache{.directory = of.data_cache, .log = logger(severity::warning)};
    file_.emplace(
        sweep_file::options{.output = of.output, .identity = identity(), .job = "sweep", .cache = cache});
    if (file_->place().in_bucket()) {
      std::string const directory = bucket::cache_directory(cache);
      remove_dead_temporaries(directory, "sweep");
      logs_.emplace(directory + "/sweep");
    }
    if (auto before = file_->read(trials_, rounds_.back())) go_on(std::move(*before));
    parallel_ = of.parallel > 0 ? of.parallel : std::max(1, granted_cores());
    threads_ = std::max(1, granted_cores() / parallel_);
  }

  int run(signals const& stop) {
    auto const seconds = [since = clock::now()] {
      return std::chrono::duration<double>(clock::now() - since).count();
    };
    for (std::size_t round = 0; round < rounds_.size(); ++round) {
      std::vector<std::size_t> left = runs_of(round, trials_, sweep_.options, sweep_.by);
      if (left.empty()) break;  // every trial has failed
      fmt::print(announced_, "round {} of {}: {} up to step {}\n", round + 1, rounds_.size(),
                 counted(left.size(), "run"), rounds_[round]);
      std::erase_if(left, [&](std::size_t i) { return trials_[i].steps >= rounds_[round]; });
      std::ranges::reverse(left);
      if (auto const signal = work(left, rounds_[round], stop)) {
        fmt::print(announced_, "stopped; the same command goes on\n");
        return 128 + *signal;
      }
    }
    fmt::print(announced_, "{}", table_of(trials_, sweep_.by));
    auto const best = best_of(trials_, sweep_.by);
    if (!best) {
      fmt::print(stderr, "every run failed; see {}/log\n", printable(directory(0)));
      return 1;
    }
    if (sweep_.format == result_format::json) print_as_json(*best);
    fmt::print(announced_,
               "{} in {:.1f} s; the best is trial {}: --set \"{}\"\nits model: {}/checkpoints/best{}\n",
               counted(trials_.size(), "trial"), seconds(), *best,
               train::write_settings(trials_[*best].values), printable(directory(*best)), figure_of(*best));
    return 0;
  }

 private:
  struct running {
    std::size_t trial;
    std::uint64_t steps;
    std::unique_ptr<platform::processes> process;
  };

  /// Takes the results of an earlier run of the same sweep.
  void go_on(std::vector<trial> before) {
    trials_ = std::move(before);
    for (std::size_t i = 0; i < trials_.size(); ++i)
      if (trial& t = trials_[i]; !t.value && t.steps > 0) {
        // A failed trial may have been killed. It restarts in the first round, at its first step: a result of
        // a later step is not comparable in that round.
        t.steps = 0;
        t.failure.clear();
        file_->check();
        place_of(i).below("checkpoints").remove_all();
      }
  }

  /// Identifies the options to which results apply.
  std::string identity() const {
    auto flags = sweep_.train_flags;
    std::ranges::sort(flags);
    return fmt::format("--by={}:{} --max_step={} --halving={} --first_steps={} {}", sweep_.by.metric,
                       sweep_.by.higher ? "max" : "min", sweep_.options.steps, sweep_.options.halving,
                       sweep_.options.first_steps, fmt::join(flags, " "));
  }

  bucket::place place_of(std::size_t trial) const {
    return file_->place().below(fmt::format("trial-{}", trial));
  }
  std::string directory(std::size_t trial) const { return place_of(trial).path(); }

  /// Where the runs of a trial write their output: in its directory, or where it is uploaded from.
  std::string log_of(std::size_t trial) const {
    return logs_ ? fmt::format("{}/trial-{}", logs_->temporary(), trial) : directory(trial) + "/log";
  }

  /// Adds what a run has written to the log of its trial in a bucket. A failure is not worth the sweep.
  void keep_log(std::size_t trial) const {
    if (!logs_) return;
    try {
      auto const at = place_of(trial);
      auto const before = at.read("log", longest_log);
      input_file const file(log_of(trial));
      std::uint64_t const size = std::min(file.size(), longest_log);
      std::string now(std::size_t(size), '\0');
      file.read(file.size() - size, std::as_writable_bytes(std::span(now)));
      if (before) now.insert(0, before->content);
      if (now.size() > longest_log) now.erase(0, now.size() - longest_log);
      file_->check();
      at.put("log", now);
      std::filesystem::remove(log_of(trial));
    } catch (std::exception const& e) {
      file_->place().warn(fmt::format("{}; this log of trial {} may be lost", e.what(), trial));
    }
  }

  std::vector<std::string> command(std::size_t trial, std::uint64_t steps) const {
    // The shell redirects the run's output to a file. A terminal's Ctrl-C is for the sweep, which then
    // signals its runs.
    std::vector<std::string> all{"sh",   "-c",          "log=$1; shift; exec setsid \"$@\" >>\"$log\" 2>&1",
                                 "sh",   log_of(trial), program_file_,
                                 "train"};
    all.insert(all.end(), sweep_.train_flags.begin(), sweep_.train_flags.end());
    auto const given = [&](std::string const& name) {
      return std::ranges::any_of(sweep_.train_flags,
                                 [&](std::string const& f) { return f.starts_with("--" + name + "="); });
    };
    all.push_back(fmt::format("--checkpoint_dir={}/checkpoints", directory(trial)));
    all.push_back(fmt::format("--max_step={}", steps));
    all.push_back(fmt::format("--save_best={}:{}", sweep_.by.metric, sweep_.by.higher ? "max" : "min"));
    all.push_back("--keep_checkpoint_max=1");
    all.push_back(fmt::format("--set={}", train::write_settings(trials_[trial].values)));
    // The last version is always evaluated.
    if (!given("evaluation_steps"))
      all.push_back(fmt::format("--evaluation_steps={}", std::uint64_t{1} << 60));
    if (!given("num_threads")) all.push_back(fmt::format("--num_threads={}", threads_));
    if (!given("num_epochs")) all.push_back("--num_epochs=0");
    return all;
  }

  /// Runs what is left, last first; returns nothing, or the signal that arrived.
  std::optional<int> work(std::vector<std::size_t>& left, std::uint64_t steps, signals const& stop) {
    std::map<std::size_t, running> under_way;
    for (;;) {
      while (!left.empty() && under_way.size() < std::size_t(parallel_)) {
        std::size_t const i = left.back();
        left.pop_back();
        place_of(i).create();
        under_way.emplace(i, running{i, steps, nullptr});
        under_way.at(i).process = std::make_unique<platform::processes>("/bin/sh", command(i, steps),
                                                                        [this, i](platform::ending const& e) {
                                                                          std::lock_guard const hold(mutex_);
                                                                          ended_.emplace_back(i, e);
                                                                        });
        under_way.at(i).process->start({role::worker, std::uint32_t(i)}, {});
      }
      if (under_way.empty()) return std::nullopt;
      if (auto const signal = stop.wait(std::chrono::milliseconds(20))) {
        end(under_way, stop);
        return signal;
      }
      if (auto const why = file_->lost()) {
        end(under_way, stop);
        throw error(*why);
      }
      std::vector<std::pair<std::size_t, platform::ending>> ended;
      {
        std::lock_guard const hold(mutex_);
        ended.swap(ended_);
      }
      for (auto const& [i, e] : ended) {
        under_way.erase(i);
        note(i, steps, e);
      }
    }
  }

  /// Each run writes a checkpoint first. A second signal kills them at once.
  void end(std::map<std::size_t, running>& under_way, signals const& stop) {
    auto const ask = [&](std::chrono::milliseconds timeout) {
      for (auto& [i, r] : under_way) r.process->stop({role::worker, std::uint32_t(i)}, timeout);
    };
    ask(stop_timeout);
    auto const first = clock::now();
    for (auto& [i, r] : under_way)
      while (r.process->pid({role::worker, std::uint32_t(i)}) != 0)
        if (auto const more = stop.wait(std::chrono::milliseconds(5));
            more && ends_at_once(*more, clock::now() - first))
          ask(std::chrono::milliseconds(0));
    for (auto& [i, r] : under_way) keep_log(i);
  }

  /// The figure of a trial's best version, which need not be its last.
  std::string figure_of(std::size_t i) const {
    train::metric_history const found(place_of(i).below("checkpoints"),
                                      std::numeric_limits<std::uint64_t>::max(), sweep_.by, {},
                                      program_.metric_names);
    if (!found.best()) return "";
    return fmt::format(" ({} {:.6g} at version {})", sweep_.by.metric,
                       found.value_of(found.best()->values, sweep_.by.metric), found.best()->version);
  }

  /// How a run ended, with the last lines of its log.
  std::string reason_of(std::size_t i, platform::ending const& e) const {
    static constexpr std::streamoff most = 4096;
    std::ifstream log(log_of(i), std::ios::binary | std::ios::ate);
    log.seekg(std::max<std::streamoff>(0, std::streamoff(log.tellg()) - most));
    std::string const words = platform::last_words(std::string(std::istreambuf_iterator<char>(log), {}));
    return platform::describe(e) + (words.empty() || e.code == 0 ? "" : ": " + words);
  }

  void note(std::size_t i, std::uint64_t steps, platform::ending const& e) {
    trial& t = trials_[i];
    t.steps = steps;
    t.value.reset();
    if (e.signal == 0 && e.code == 0) {
      train::metric_history const found(place_of(i).below("checkpoints"),
                                        std::numeric_limits<std::uint64_t>::max(), sweep_.by, {},
                                        program_.metric_names);
      double const value = found.entries().empty()
                               ? std::numeric_limits<double>::quiet_NaN()
                               : found.value_of(found.entries().back().values, sweep_.by.metric);
      if (std::isfinite(value)) t.value = value;
    }
    t.failure = t.value ? "" : reason_of(i, e);
    keep_log(i);
    file_->write(trials_);
    std::string const what = t.value
                                 ? fmt::format("{} {:.6g}", sweep_.by.metric, *t.value)
                                 : fmt::format("failed ({}); see {}/log", t.failure, printable(directory(i)));
    fmt::print(announced_, "trial {} ({}), {}: {}\n", i, train::write_settings(t.values),
               counted(steps, "step"), what);
    std::fflush(announced_);
  }

  void print_as_json(std::size_t best) const {
    auto all = nlohmann::json::parse(to_json({identity(), trials_}));
    all["best"] = {{"trial", best}, {"model", directory(best) + "/checkpoints/best"}};
    fmt::print("{}\n", all.dump(1));
  }

  sweep const& sweep_;
  train::program const& program_;
  std::string program_file_;
  std::FILE* announced_ = sweep_.format == result_format::json ? stderr : stdout;  // everything but results
  std::vector<trial> trials_;
  std::vector<std::uint64_t> rounds_;
  std::optional<sweep_file> file_;         // of two sweeps one is refused
  std::optional<durable_directory> logs_;  // never committed; with a bucket
  int parallel_ = 1, threads_ = 1;
  std::mutex mutex_;
  std::vector<std::pair<std::size_t, platform::ending>> ended_;
};

}  // namespace detail

EDL_INLINE int run_sweep(sweep const& s, train::program const& p, signals const& stop) {
  return detail::sweep_runs(s, p).run(stop);
}

}  // namespace edl::app

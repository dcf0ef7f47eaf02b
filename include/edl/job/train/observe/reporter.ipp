// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <iostream>
#include <sstream>
#include <utility>

#include "edl/compute/features/string_lookup.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/train/observe/reporter.hpp"
#include "edl/job/train/observe/summary.hpp"
#include "edl/job/train/prediction/hard_records.hpp"
#include "edl/job/train/prediction/predictions.hpp"
#include "edl/job/train/setup/setup.hpp"

namespace edl::train {

namespace detail {

inline std::unique_ptr<dashboard> page_of(job const& j, history_log::options const& o, dashboard_context c,
                                          logger const& log) {
  if (!j.observe.dashboard || j.dry_run) return nullptr;
  return std::make_unique<dashboard>(j, o.path, std::move(c), log);
}

inline constexpr std::size_t most_recent = 48;  // lines

inline std::unique_ptr<job_feed> recent_of(bool wanted, history_log::options const& o) {
  if (!wanted) return nullptr;
  auto all = std::make_unique<job_feed>("recent", nullptr, feed_bounds{.lines = most_recent});
  if (!o.path.empty()) read_earlier_lines(o.path, *all, o.like);
  return all;
}

inline history_log::options followed_by(job_feed* recent, dashboard* page, history_log::options o) {
  if (page) o.to = page->listener();
  if (recent)
    o.to = {
        .line =
            [recent, next = o.to.line](history_file::kind of, std::uint64_t step, std::string const& line) {
              recent->add_line(of, step, line);
              if (next) next(of, step, line);
            },
        .go_on_from =
            [recent, next = o.to.go_on_from](std::uint64_t step) {
              recent->drop_lines_after(step);
              if (next) next(step);
            }};
  return o;
}

}  // namespace detail

EDL_INLINE reporter::reporter(program& p, job const& j, std::uint64_t from, cli::status_sink show, logger log,
                              dashboard_context page)
    : program_(p),
      job_(j),
      log_(std::move(log)),
      history_(history_of(j, p, from)),
      recent_(detail::recent_of(page.reports, history_options(j, p))),
      page_(detail::page_of(j, history_options(j, p), std::move(page), log_)),
      log_of_steps_(detail::followed_by(recent_.get(), page_.get(), log_options()), log_),
      view_(j, log_, std::move(show)) {}

// The rate's line is of the rate with its reductions.
EDL_INLINE history_log::options reporter::log_options() const {
  history_log::options o = history_options(job_, program_);
  if (!job_.evaluation.plateau || !o.rate) return o;
  o.rate = [this, planned = std::move(o.rate)](std::uint64_t version) {
    return planned(version) * (history_ ? double(history_->rate_at(version)) : 1.0);
  };
  return o;
}

EDL_INLINE void reporter::look(master::coordinator const& decisions, master::job_progress const& p,
                               time_point now) {
  if (page_ && page_->due(now)) page_->look(decisions, p, now);
}

EDL_INLINE void reporter::say(master::log_line const& what) {
  log_.log(what.level, what.text);
  if (page_) page_->happened(what);
}

EDL_INLINE bool reporter::evaluated(master::evaluation_result const& r,
                                    master::coordinator const& decisions) {
  auto const metrics = program_.metrics(r.totals);
  view_.evaluated(metrics, r.evaluated.version, r.records);
  log_of_steps_.evaluated(decisions, r.evaluated.version, metrics, r.records);
  std::string const line = evaluation_line(program_, r, job_.evaluation.format);
  tell_evaluation(job_, line, view_, log_);
  if (page_) page_->happened({severity::info, line, master::topic::evaluation});
  if (std::string const odd = odd_metrics(job_, program_, r); !odd.empty()) log_.warning(odd);
  stop_ = {r.evaluated.version, ask_model(r, metrics)};
  return history_ && history_->is_best(r.evaluated.version, metrics);
}

EDL_INLINE std::string reporter::ask_model(master::evaluation_result const& r,
                                           std::vector<std::pair<std::string, double>> const& metrics) {
  if (!program_.on_evaluation || hook_failed_) return {};
  auto const begun = clock::now();
  std::string why;
  std::string const failed = call_hook("on_evaluation", r.evaluated.version, [&] {
    why = program_.on_evaluation({r.evaluated.version, r.records, metrics});
  });
  hook_failed_ = !failed.empty();
  if (hook_failed_) log_.error(failed);
  if (auto const took = clock::now() - begun; took > std::chrono::seconds(1))
    log_.warning(fmt::format(
        "the model's on_evaluation took {:.1f} s, in which this process served no worker; hand slow work to "
        "another thread",
        std::chrono::duration<double>(took).count()));
  return why;
}

EDL_INLINE std::function<master::verdict()> reporter::judged(master::evaluation_result const& r) {
  if (!history_) return [] { return master::verdict(); };
  auto keep = history_->take_in(r.evaluated.version, program_.metrics(r.totals),
                                stop_.first == r.evaluated.version ? stop_.second : std::string());
  master::verdict follows{history_->stopped(), history_->rates()};
  if (auto const reduced = follows.rates.find(r.evaluated.version); reduced != follows.rates.end())
    follows.line =
        fmt::format("version {}: {} makes no progress, so the learning rate is {:.4g} of the schedule's now",
                    r.evaluated.version, job_.evaluation.plateau->monitor.metric, reduced->second);
  return [keep = std::move(keep), follows = std::move(follows)] {
    keep();
    return follows;
  };
}

EDL_INLINE std::optional<std::uint64_t> reporter::stopped_at() const {
  return history_ ? history_->stopped_at() : std::nullopt;
}

EDL_INLINE std::optional<metric_history::entry> reporter::evaluation() const {
  if (auto const& last = view_.last_evaluation(); last.records > 0)
    return metric_history::entry{last.version, last.metrics};
  if (history_ && !history_->entries().empty()) return history_->entries().back();
  return std::nullopt;
}

EDL_INLINE std::optional<std::uint64_t> reporter::newest_judged() const {
  if (!history_ || history_->entries().empty()) return std::nullopt;
  return history_->entries().back().version;
}

EDL_INLINE void reporter::close(master::coordinator const& decisions, master::job_progress const& p) {
  view_.clear();
  if (page_) page_->close(decisions, p, clock::now());
  for (std::string const& line : account_lines(decisions)) log_.info(line);
  if (features::lookup_count const n{p.trained.words, p.trained.unknown}; n.words > 0)
    log_.info("trained: " + to_text(n));
  if (history_)
    for (std::string const& line : history_lines(job_, *history_)) log_.info(line);
}

EDL_INLINE void reporter::stopped(std::string const& how, std::vector<std::string> const& command) const {
  tell_stopped(how, job_, view_, command, log_);
}

EDL_INLINE void reporter::complete(master::coordinator const& decisions,
                                   std::vector<std::string> const& command, std::string const& last) const {
  invariant(decisions.over(), "a job that is complete has come to its end");
  if (job_.command == command::predict && !program_.on_predictions)
    log_.info(join_predictions(job_, decisions.tasks() ? decisions.tasks()->plan().tasks() : 0));
  if (hard_records::wanted(job_) && job_.strategy != strategy::local && job_.command != command::train)
    hard_records::join(job_, view_.last_evaluation().records, std::cout, log_);
  if (!last.empty()) log_.info(last);
  std::string plan;
  if (std::ostringstream untold; job_.dry_run && job_.compute.memory_budget > 0)
    plan = program_.explain(untold,
                            trainer_options_of(job_, program_, std::max(1, job_.processes.num_workers), 0));
  tell({job_, decisions, view_, command, stopped_at().has_value(), plan}, clock::now(), log_);
}

}  // namespace edl::train

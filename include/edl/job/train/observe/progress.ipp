// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/core/inline.hpp"
#include "edl/job/train/observe/progress.hpp"

namespace edl::train {
namespace detail {

/// The number of records after which the job ends; nothing: unlimited. With a step limit, assumes that each
/// step has a full minibatch.
inline std::optional<std::uint64_t> goal(job const& j, std::optional<std::uint64_t> of_epochs) {
  if (j.command != command::train || j.data.max_step == 0) return of_epochs;
  auto const minibatches = double(j.data.max_step) * double(minibatches_of_a_step(j));
  double const records = minibatches * j.data.minibatch_size;
  return records < double(of_epochs.value_or(~std::uint64_t{0} >> 1)) ? std::uint64_t(records) : of_epochs;
}

}  // namespace detail

EDL_INLINE std::string clock_text(double seconds) {
  auto const s = std::uint64_t(std::clamp(seconds, 0.0, 1e9));
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

EDL_INLINE std::string describe(master::job_progress const& p, double records_per_second) {
  auto const of = [](std::uint64_t done, std::optional<std::uint64_t> total) {
    return total ? fmt::format("{}/{}", done, *total) : fmt::to_string(done);
  };
  std::string text =
      fmt::format("tasks {}, records {}, {:.0f} records/s", of(p.done.tasks_done, p.total_tasks),
                  of(p.done.records_done, p.total_records), records_per_second);
  if (p.loss != 0) text += fmt::format(", loss {:.4g}", p.loss);  // evaluations report no loss
  text += fmt::format(", version {}", p.version);
  if (p.total_records && records_per_second > 0 && *p.total_records > p.done.records_done)
    text += fmt::format(", {} left",
                        clock_text(double(*p.total_records - p.done.records_done) / records_per_second));
  return text;
}

EDL_INLINE std::string outcome(master::job_progress const& p) {
  return fmt::format("version {}", p.version) + (p.loss != 0 ? fmt::format(", loss {:.4g}", p.loss) : "");
}

// Drops parts on a narrow terminal in this order: metrics, rate, loss, epoch.
EDL_INLINE cli::status_line status_of(job const& j, progress_numbers const& n) {
  cli::status_line line;
  std::uint64_t const done = n.at.done.records_done + n.at.done.records_skipped;
  if (j.command == command::train)
    line.push_back({j.data.num_epochs > 0 ? fmt::format("epoch {}/{}", n.at.epoch + 1, j.data.num_epochs)
                                          : fmt::format("epoch {}", n.at.epoch + 1),
                    2});
  if (n.records && *n.records > 0)
    line.push_back({fmt::format("{} %", std::min<std::uint64_t>(100, done * 100 / *n.records)), 0});
  line.push_back({n.rate > 0 ? fmt::format("{:.0f} records/s", n.rate) : "-- records/s", 4});
  if (n.loss != 0) line.push_back({fmt::format("loss {:.4g}", n.loss), 3});
  int rank = 5;
  for (auto const& [name, value] : n.metrics) line.push_back({fmt::format("{} {:.4g}", name, value), rank++});
  if (!n.records) return line;
  bool const known = n.rate > 0;
  double const left = *n.records > done ? double(*n.records - done) : 0;
  line.push_back({known ? fmt::format("{} left", clock_text(left / n.rate)) : "--:-- left", 1});
  return line;
}

EDL_INLINE progress_view::progress_view(job const& j, logger log, cli::status_sink show)
    : job_(j), log_(std::move(log)), show_(std::move(show)) {}

EDL_INLINE void progress_view::goes_on_from(ledger const& applied) {
  first_records_ = 0;
  for (auto const& [epoch, t] : applied.tallies()) first_records_ += t.records;
  begun_ = true;
}

EDL_INLINE std::string progress_view::update(master::job_progress const& p, time_point now) {
  using namespace std::chrono_literals;
  if (p.loss != 0) loss_ = p.loss;
  bool const begins = since_ == time_point{};
  if (begins) first_ = now;
  // A successor of a master knows what was done before once it begins to lease.
  if (!begun_) first_records_ = p.done.records_done;
  begun_ = begun_ || p.leased > 0 || p.done.records_done > 0;
  if (begins || p.done.records_done < records_) {  // the first call, or the job has rolled back
    since_ = now;
    records_ = p.done.records_done;
    if (!begins) first_records_ = std::min(first_records_, records_);
    if (!begins || !show_) return {};
  }
  if (!begins && now - shown_ < (show_ ? 250ms : 10000ms)) return {};
  shown_ = now;
  // Records are counted by whole tasks, so a rate means something only over several seconds.
  if (double const seconds = std::chrono::duration<double>(now - since_).count(); seconds >= 5) {
    double const rate = double(p.done.records_done - records_) / seconds;
    rate_ = rate_ > 0 && rate > 0 ? 0.5 * rate_ + 0.5 * rate : rate;
    since_ = now;
    records_ = p.done.records_done;
  }
  std::string const line = describe(p, rate_);
  if (show_)
    show_(status_of(job_, {.at = p,
                           .records = detail::goal(job_, p.total_records),
                           .rate = p.rate > 0 ? p.rate : rate_,
                           .loss = loss_,
                           .metrics = last_.metrics}));
  else
    log_.info(line);
  return line;
}

EDL_INLINE void progress_view::clear() {
  if (show_) show_({});
}

EDL_INLINE double progress_view::seconds(time_point now) const {
  return first_ == time_point{} ? 0 : std::chrono::duration<double>(now - first_).count();
}

}  // namespace edl::train

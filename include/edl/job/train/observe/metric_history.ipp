// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "edl/cli/nearest.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/json.hpp"
#include "edl/job/train/observe/metric_history.hpp"
#include "edl/job/train/setup/model_copy.hpp"

namespace edl::train {
namespace detail {

inline constexpr std::uint64_t longest_history = 256u << 20;  // bytes
inline constexpr char const* evaluations_name = "evaluations.json";

inline void check_metric(std::string_view option, monitor const& m, std::vector<std::string> const& known) {
  if (std::string const why = unknown_metric(option, m.metric, known); !why.empty()) throw usage_error(why);
}

/// Counts consecutive values without an improvement.
class progress_of {
 public:
  progress_of(monitor const& m, double min_delta) : monitor_(m), delta_(m.higher ? min_delta : -min_delta) {}

  /// Returns how many there are, with this one. It does not count if `pauses`, unless it is the best.
  std::uint32_t add(metric_history::metrics const& values, bool pauses = false) {
    double const value = metric_history::value_of(values, monitor_.metric);
    bool const better = std::isfinite(value) && (std::isnan(best_) || monitor_.better(value, best_ + delta_));
    if (better) best_ = value;
    return without_ = better || pauses ? 0 : without_ + 1;
  }
  void restart() { without_ = 0; }

 private:
  monitor const& monitor_;
  double delta_;
  double best_ = std::numeric_limits<double>::quiet_NaN();
  std::uint32_t without_ = 0;
};

inline nlohmann::json to_json(metric_history::entry const& e) {
  nlohmann::json values = nlohmann::json::object();
  // JSON has no number for values that are not finite.
  for (auto const& [name, value] : e.values)
    values[name] = std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
  nlohmann::json all{{"version", e.version}, {"metrics", std::move(values)}};
  if (!e.stop.empty()) all["stop"] = e.stop;
  return all;
}

inline metric_history::entry entry_of(nlohmann::json const& from) {
  metric_history::entry e{
      .version = from.at("version").get<std::uint64_t>(), .values = {}, .stop = from.value("stop", "")};
  for (auto const& [name, value] : from.at("metrics").items())
    e.values.emplace_back(name,
                          value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  return e;
}

}  // namespace detail

EDL_INLINE metric_history::metric_history(bucket::place directory, std::uint64_t from,
                                          std::optional<monitor> best, std::optional<early_stopping> stopping,
                                          std::vector<std::string> const& known,
                                          std::optional<rate_plateau> plateau)
    : place_(std::move(directory)),
      monitor_(std::move(best)),
      stopping_(std::move(stopping)),
      plateau_(std::move(plateau)) {
  if (monitor_) detail::check_metric("--save_best", *monitor_, known);
  if (stopping_) detail::check_metric("--early_stopping", stopping_->monitor, known);
  if (plateau_) detail::check_metric(plateau_metric, plateau_->monitor, known);
  if (!place_.empty()) read(from);
}

EDL_INLINE void metric_history::read(std::uint64_t from) {
  auto const found = place_.read(detail::evaluations_name, detail::longest_history);
  if (!found) return;
  std::string const& text = found->content;
  auto const refuse = [&](std::string_view why) {
    throw error(
        fmt::format("{}/{} is not a list of evaluations ({}); remove it, and only later evaluations count",
                    place_.path(), detail::evaluations_name, why));
  };
  nlohmann::json const all = parse_json(text);
  if (all.is_discarded()) refuse("it is " + why_no_json(text));
  try {
    for (auto const& one : all.at("evaluations"))
      if (entry e = detail::entry_of(one);
          e.version <= from && (entries_.empty() || entries_.back().version < e.version))
        entries_.push_back(std::move(e));
    if (!all.contains("best")) return;
    if (!monitor_)
      others_best_ = all["best"].dump();
    else if (all["best"].at("metric") == monitor_->metric)
      best_ = detail::entry_of(all["best"]);
  } catch (nlohmann::json::exception const& e) {
    refuse(e.what());
  }
}

EDL_INLINE double metric_history::value_of(metrics const& values, std::string const& name) {
  auto const found = std::ranges::find(values, name, &metrics::value_type::first);
  return found == values.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

EDL_INLINE bool metric_history::is_best(std::uint64_t version, metrics const& values) const {
  return metric_history(*this).take({version, values});
}

EDL_INLINE std::function<void()> metric_history::take_in(std::uint64_t version, metrics const& values,
                                                         std::string stop) {
  take({version, values, std::move(stop)});
  if (place_.empty()) return [] {};
  // A power failure may undo this; the version is then evaluated again.
  return [to = place_, now = text()] { to.put(detail::evaluations_name, now, forced::content); };
}

/// Records a result and returns whether it is the best so far. Evaluations that complete after the decision
/// to stop do not count: how many there are is a matter of chance.
EDL_INLINE bool metric_history::take(entry of) {
  std::erase_if(entries_, [&](entry const& e) { return e.version >= of.version; });
  bool const before = stopped();
  invariant(entries_.empty() || entries_.back().version < of.version, "evaluations ascend in version");
  entries_.push_back(std::move(of));
  if (!monitor_ || before) return false;
  double const value = value_of(entries_.back().values, monitor_->metric);
  bool const better =
      std::isfinite(value) && (!best_ || monitor_->better(value, value_of(best_->values, monitor_->metric)));
  if (better) best_ = entries_.back();
  return better;
}

EDL_INLINE std::optional<std::uint64_t> metric_history::stopped_at() const {
  std::optional<detail::progress_of> progress;
  if (stopping_) progress.emplace(stopping_->monitor, stopping_->min_delta);
  for (entry const& e : entries_)
    if (!e.stop.empty() || (progress && progress->add(e.values) >= stopping_->patience)) return e.version;
  return std::nullopt;
}

EDL_INLINE master::rate_factors metric_history::rates() const {
  master::rate_factors all;
  if (!plateau_) return all;
  plateau_options const& how = plateau_->how;
  detail::progress_of progress(plateau_->monitor, how.min_delta);
  float now = 1;
  std::uint32_t pause = 0;
  for (entry const& e : entries_) {
    std::uint32_t const without = progress.add(e.values, pause > 0);
    if (pause > 0) --pause;
    // A product below float's normal range would be no rate any more.
    float const next = std::max({now * how.factor, how.min_factor, std::numeric_limits<float>::min()});
    if (without < how.patience || next >= now) continue;
    invariant(next > 0 && next < now, "a plateau lowers the rate");
    all[e.version] = now = next;
    pause = how.cooldown;
    progress.restart();
  }
  return all;
}

EDL_INLINE float metric_history::rate_at(std::uint64_t version) const {
  auto const all = rates();
  auto const next = all.upper_bound(version);
  return next == all.begin() ? 1.0f : std::prev(next)->second;
}

EDL_INLINE std::string metric_history::stopped_by_model() const {
  auto const at = stopped_at();
  auto const found = std::ranges::find(entries_, at, [](entry const& e) { return std::optional(e.version); });
  return at && found != entries_.end() ? found->stop : std::string();
}

EDL_INLINE std::string metric_history::text() const {
  nlohmann::json all{{"evaluations", nlohmann::json::array()}};
  for (entry const& e : entries_) all["evaluations"].push_back(detail::to_json(e));
  if (!others_best_.empty()) all["best"] = nlohmann::json::parse(others_best_);
  if (best_) {
    all["best"] = detail::to_json(*best_);
    all["best"]["metric"] = monitor_->metric;
  }
  // A model's reason may be any bytes.
  return all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

EDL_INLINE std::string unknown_metric(std::string_view option, std::string const& metric,
                                      std::vector<std::string> const& known) {
  if (std::ranges::find(known, metric) != known.end()) return {};
  std::string const near = cli::nearest(metric, known);
  std::vector<std::string> names = known;
  std::ranges::stable_partition(names, [&](std::string const& name) { return name == near; });
  return fmt::format("{}={}: the model's metrics are {}{}", option, metric,
                     names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")),
                     near.empty() ? "" : fmt::format("; did you mean {}?", near));
}

EDL_INLINE std::optional<metric_history> history_of(job const& j, program const& p, std::uint64_t from) {
  if (!j.judges()) return std::nullopt;
  return metric_history(checkpoints_of(j), from, j.evaluation.save_best, j.evaluation.early_stopping,
                        p.metric_names, j.evaluation.plateau);
}

EDL_INLINE std::string best_path(job const& j) { return j.checkpoints.checkpoint_dir + "/best"; }

EDL_INLINE std::vector<std::string> history_lines(job const& j, metric_history const& h) {
  std::vector<std::string> lines;
  if (std::string const why = h.stopped_by_model(); !why.empty())
    lines.push_back(
        fmt::format("The model's on_evaluation ended the job at version {}: {}", *h.stopped_at(), why));
  else if (auto const at = h.stopped_at())
    lines.push_back(fmt::format("Early stopping: {} has made no progress in the {} up to version {}",
                                j.evaluation.early_stopping->monitor.metric,
                                counted(j.evaluation.early_stopping->patience, "evaluation"), *at));
  if (j.evaluation.save_best && !h.best() && !h.entries().empty())
    lines.push_back(
        fmt::format("No best version is kept: {} was never a number", j.evaluation.save_best->metric));
  if (auto const& best = h.best())
    lines.push_back(fmt::format("Best {}: {:.6g} at version {}, in {}", j.evaluation.save_best->metric,
                                metric_history::value_of(best->values, j.evaluation.save_best->metric),
                                best->version, best_path(j)));
  return lines;
}

}  // namespace edl::train

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/base/bucket/place.hpp"
#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/config/monitor.hpp"
#include "edl/job/master/job.hpp"
#include "edl/job/train/setup/program.hpp"

namespace edl::train {

/// The metrics of the versions that a job has evaluated, and the decisions from them: which version is the
/// best, whether the job ends early, and by how much the learning rate is reduced. All depend only on the
/// metrics in the order of versions, so that a resumed job decides as if it had never stopped. They are
/// stored in `evaluations.json` in the checkpoints' directory, which is replaced atomically. Thread safety:
/// unsafe.
class metric_history {
 public:
  using metrics = std::vector<std::pair<std::string, double>>;
  struct entry {
    std::uint64_t version = 0;
    metrics values;
    std::string stop = {};  ///< why the model's `on_evaluation` ends the job here; empty: it does not
  };

  /// Reads the file, for a job that begins at version `from`. Drops later evaluations, except the best,
  /// because its model exists. Empty `directory`: nothing is stored. Throws error for an invalid file, and
  /// usage_error if `best`, `stopping` or `plateau` names none of the `known` metrics.
  metric_history(bucket::place directory, std::uint64_t from, std::optional<monitor> best,
                 std::optional<early_stopping> stopping, std::vector<std::string> const& known,
                 std::optional<rate_plateau> plateau = {});

  /// Whether this version would be the best so far.
  bool is_best(std::uint64_t version, metrics const& values) const;

  /// Adds metrics, and stores them.
  void add(std::uint64_t version, metrics const& values) { take_in(version, values)(); }

  /// Adds metrics, and returns a function that stores them, on any thread. `stop`: as in `entry`.
  std::function<void()> take_in(std::uint64_t version, metrics const& values, std::string stop = {});

  /// The value of a metric; NaN if it is missing.
  static double value_of(metrics const& values, std::string const& name);

  /// Whether the job has ended early.
  bool stopped() const { return stopped_at().has_value(); }
  std::optional<std::uint64_t> stopped_at() const;
  /// The model's own reason, if that ended it; otherwise empty.
  std::string stopped_by_model() const;

  /// The factors of the learning rate, one for each reduction; each applies from the version whose evaluation
  /// decided it.
  master::rate_factors rates() const;
  /// The factor at a version.
  float rate_at(std::uint64_t version) const;

  std::optional<entry> const& best() const { return best_; }
  std::vector<entry> const& entries() const { return entries_; }

 private:
  void read(std::uint64_t from);
  std::string text() const;
  bool take(entry of);

  bucket::place place_;  // empty: nothing is stored
  std::optional<monitor> monitor_;
  std::optional<early_stopping> stopping_;
  std::optional<rate_plateau> plateau_;
  std::vector<entry> entries_;  // by version
  std::optional<entry> best_;
  std::string others_best_;  // JSON, of a run that kept the best, if this one does not
};

/// Why an option, e.g. "--save_best", cannot name this metric, with the model's metrics, the most similar
/// first. Empty if `known` has it.
std::string unknown_metric(std::string_view option, std::string const& metric,
                           std::vector<std::string> const& known);

/// The history for a job's options; empty if it decides by no metric.
std::optional<metric_history> history_of(job const& j, program const& p, std::uint64_t from);

/// The path of the best model.
std::string best_path(job const& j);

/// Lines for the end: the best version, its metric and its path; why the job ended early. Empty if there is
/// nothing to report.
std::vector<std::string> history_lines(job const& j, metric_history const& h);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/observe/metric_history.ipp"
#endif

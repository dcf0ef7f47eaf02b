// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/config/monitor.hpp"
#include "edl/job/train/setup/program.hpp"

namespace edl::train {

/// The metrics of the versions that a job has evaluated, and what follows from them. They say which version
/// is the best, and whether the job is to end early. Both follow from the metrics in the order of versions,
/// so that a job that goes on decides as if it had never stopped. They stand in `evaluations.json`
/// of the checkpoints' directory, which is replaced whole. Thread safety: unsafe.
class metric_history {
 public:
  using metrics = std::vector<std::pair<std::string, double>>;
  struct entry {
    std::uint64_t version = 0;
    metrics values;
  };

  /// Reads what is there, for a job that begins at version `from`. What was evaluated after it is left out.
  /// The best stays, as its model is there. Empty `directory`: nothing is kept. Throws error for a file that
  /// is none, and usage_error where `best` or `stopping` names none of the `known` metrics.
  metric_history(std::string const& directory, std::uint64_t from, std::optional<monitor> best,
                 std::optional<early_stopping> stopping, std::vector<std::string> const& known);

  /// Whether this version would be the best so far.
  bool is_best(std::uint64_t version, metrics const& values) const;

  /// Takes metrics in, and keeps them.
  void add(std::uint64_t version, metrics const& values) { take_in(version, values)(); }

  /// The same, but that what it returns keeps them, on any thread.
  std::function<void()> take_in(std::uint64_t version, metrics const& values);

  /// That of a metric; NaN where it is not there.
  static double value_of(metrics const& values, std::string const& name);

  /// Whether the job has ended early.
  bool stopped() const { return stopped_at().has_value(); }
  std::optional<std::uint64_t> stopped_at() const;

  std::optional<entry> const& best() const { return best_; }
  std::vector<entry> const& entries() const { return entries_; }

 private:
  void read(std::uint64_t from);
  std::string text() const;
  bool take(std::uint64_t version, metrics const& values);

  std::string path_;  // empty: nothing is kept
  std::optional<monitor> monitor_;
  std::optional<early_stopping> stopping_;
  std::vector<entry> entries_;  // by version
  std::optional<entry> best_;
  std::string others_best_;  // JSON, of a run that kept the best, where this one does not
};

/// Why a flag cannot name this metric: the model's metrics are others, which it tells, the nearest first.
/// Empty where `known` has it.
std::string unknown_metric(std::string_view flag, std::string const& metric,
                           std::vector<std::string> const& known);

/// The history of a job as it asks for it; nothing where it decides by no metric.
std::optional<metric_history> history_of(job const& j, program const& p, std::uint64_t from);

/// Where the best model lies.
std::string best_path(job const& j);

/// A line for the end: the best version, its metric, and where it lies; why the job ended early. Empty where
/// there is nothing to tell.
std::vector<std::string> history_lines(job const& j, metric_history const& h);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/observe/metric_history.ipp"
#endif

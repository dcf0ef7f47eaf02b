// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simulate/work_model.hpp"

namespace edl::simulate {

/// What was measured of one application of the Pollux artifact (OSDI 2021). It has times of steps by
/// placement and batch, and how far a step gets, by batch and epoch.
class pollux_application {
 public:
  /// Reads `directory`/placements.csv, scalability.csv and validation-*.csv. Throws usage_error.
  explicit pollux_application(std::string const& directory);

  int first_batch() const { return validated_.begin()->first; }
  int largest_batch() const { return validated_.rbegin()->first; }
  int least_local() const { return least_local_; }
  int most_local() const { return most_local_; }
  std::vector<int> const& local_sizes() const { return local_sizes_; }

  std::size_t epochs() const { return epochs_; }

  /// Comparable between batch sizes; in steps of the first batch.
  double progress_of(std::size_t epoch) const { return progress_[epoch]; }

  /// How much further a step with this batch gets than one with the first batch.
  double gain(double batch, std::size_t epoch) const;

  struct times {
    double step = 0, sync = 0;  ///< seconds; sync is part of step
  };
  times time_of(placement const& on, double local) const;

 private:
  struct epoch {
    double progress, sqr, var;
  };
  using by_local = std::map<int, times>;
  static times at(by_local const& of, double local);
  times between(std::size_t nodes, int workers, double local) const;

  std::string name_;
  std::map<int, std::vector<epoch>> validated_;
  std::map<std::string, by_local> placements_;
  std::map<std::size_t, std::map<int, by_local>> sizes_;  ///< nodes, workers
  std::vector<double> progress_;                          ///< of each epoch
  std::vector<int> local_sizes_;
  int least_local_ = 0, most_local_ = 0;
  std::size_t epochs_ = 0;
};

/// A job of such an application: with a fixed global batch, or with the one that gets it furthest at each
/// size and epoch.
class pollux_work : public work_model {
 public:
  pollux_work(std::shared_ptr<pollux_application const> of, int batch, bool may_change)
      : application_(std::move(of)), batch_(batch), may_change_(may_change) {}
  std::size_t parts() const override { return application_->epochs(); }
  double records(std::size_t part) const override;

  /// The largest useful number of workers: each needs the least local batch.
  int most_workers() const;

 private:
  std::vector<double> compute(placement const& on) const override;
  std::shared_ptr<pollux_application const> application_;
  int batch_;
  bool may_change_;
};

}  // namespace edl::simulate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

namespace edl::simulate {

/// How many workers a job has on each of the nodes that it uses.
using placement = std::vector<int>;

/// What a job has to do, and how fast it does it. Work is a number of parts (epochs), in which its speed may
/// differ.
class work_model {
 public:
  virtual ~work_model() = default;

  virtual std::size_t parts() const = 0;

  /// Seconds that each part takes with these workers. Remembered.
  std::vector<double> const& seconds(placement const& on) const;

  /// Records that a part counts for. With a batch that changes, records of the first batch's worth.
  virtual double records(std::size_t part) const = 0;

 protected:
  virtual std::vector<double> compute(placement const& on) const = 0;

 private:
  mutable std::map<placement, std::vector<double>> known_;
};

/// So many records, at so many a second by one worker; each further one costs every step this part of one
/// worker's time.
class plain_work : public work_model {
 public:
  plain_work(double records, double per_second, double overhead = 0)
      : records_(records), per_second_(per_second), overhead_(overhead) {}
  std::size_t parts() const override { return 1; }
  double records(std::size_t) const override { return records_; }

 private:
  std::vector<double> compute(placement const& on) const override;
  double records_, per_second_, overhead_;
};

/// How far a job is: parts, and of the next one a fraction.
class progress {
 public:
  explicit progress(work_model const& of) : model_(&of) {}
  bool done() const { return at_ >= double(model_->parts()); }

  /// Works for so many seconds; returns how many of them it needed, less when it is done.
  double work(placement const& on, double seconds);
  double seconds_left(placement const& on) const;
  double records_left() const;

  /// Records a second, now.
  double speed(placement const& on) const;

 private:
  std::size_t part() const;
  work_model const* model_;
  double at_ = 0;
};

}  // namespace edl::simulate

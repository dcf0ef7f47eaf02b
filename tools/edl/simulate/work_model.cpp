// SPDX-License-Identifier: Apache-2.0
#include "simulate/work_model.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace edl::simulate {

std::vector<double> const& work_model::seconds(placement const& on) const {
  auto const at = known_.find(on);
  return at != known_.end() ? at->second : known_.emplace(on, compute(on)).first->second;
}

std::vector<double> plain_work::compute(placement const& on) const {
  int const n = std::accumulate(on.begin(), on.end(), 0);
  return {records_ / (per_second_ * n / (1 + overhead_ * (n - 1)))};
}

std::size_t progress::part() const { return std::min(std::size_t(at_), model_->parts() - 1); }

double progress::work(placement const& on, double seconds) {
  auto const& each = model_->seconds(on);
  double spent = 0;
  while (!done()) {
    std::size_t const p = part();
    double const to_end = (double(p + 1) - at_) * each[p];
    if (spent + to_end > seconds) {
      at_ = std::min(at_ + (seconds - spent) / each[p], std::nextafter(double(p + 1), 0.0));
      return seconds;
    }
    spent += to_end;
    at_ = double(p + 1);
  }
  return spent;
}

double progress::seconds_left(placement const& on) const {
  if (done()) return 0;
  auto const& each = model_->seconds(on);
  double all = (double(part() + 1) - at_) * each[part()];
  for (std::size_t p = part() + 1; p < each.size(); ++p) all += each[p];
  return all;
}

double progress::records_left() const {
  if (done()) return 0;
  double all = (double(part() + 1) - at_) * model_->records(part());
  for (std::size_t p = part() + 1; p < model_->parts(); ++p) all += model_->records(p);
  return all;
}

double progress::speed(placement const& on) const {
  return model_->records(part()) / model_->seconds(on)[part()];
}

}  // namespace edl::simulate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "edl/job/master/coordinator.hpp"

/// The time of a simulation, its chances, and what happens when. Events of one moment happen in the order in
/// which they were asked for.
class simulated_time {
 public:
  explicit simulated_time(std::uint64_t seed) : random(seed) {}

  std::mt19937_64 random;
  double clock = 0;  // seconds
  std::uint64_t handled = 0;

 protected:
  static edl::master::time_point at(double seconds) {
    using edl::master::duration;
    return edl::master::time_point(
        std::chrono::duration_cast<duration>(std::chrono::duration<double>(seconds)));
  }

  /// Of a task whose minibatches have two records.
  static std::uint32_t minibatches_of(edl::master::task_reply const& t) {
    return std::uint32_t((t.range.records() + 1) / 2);
  }

  double uniform(double from, double to) { return from + (to - from) * double(random() >> 11) * 0x1p-53; }
  bool chance(double p) { return p > 0 && uniform(0, 1) < p; }

  template <class F>
  void after(double delay, F what) {
    std::size_t slot = actions_.size();
    if (free_.empty()) {
      actions_.emplace_back(std::move(what));
    } else {
      slot = free_.back();
      free_.pop_back();
      actions_[slot] = std::move(what);
    }
    events_.push({clock + delay, ++ordered_, slot});
  }

  template <class F>
  void every(double period, F what) {
    after(period, [this, period, what] {
      what();
      every(period, what);
    });
  }

  /// Lets the next event happen. False: there is none, or `bound` have happened.
  bool next(std::uint64_t bound) {
    if (events_.empty() || handled >= bound) return false;
    ++handled;
    auto const [time, order, slot] = events_.top();
    events_.pop();
    clock = time;
    auto const what = std::move(actions_[slot]);
    free_.push_back(slot);
    what();
    return true;
  }

 private:
  struct event {
    double time;
    std::uint64_t order;
    std::size_t slot;
    bool operator>(event const& other) const {
      return std::pair(time, order) > std::pair(other.time, other.order);
    }
  };

  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  std::vector<std::function<void()>> actions_;
  std::vector<std::size_t> free_;
  std::uint64_t ordered_ = 0;
};

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <numbers>
#include <optional>
#include <string_view>

#include "edl/core/error.hpp"
#include "edl/core/options_fit.hpp"

namespace edl {

/// A learning rate as a function of the model's version (steps applied, from 0). Any callable is one. An
/// optional `options_fit()` returns whether its options are in their ranges.
template <class S>
concept learning_rate_schedule = std::copy_constructible<S> && requires(S const s, std::uint64_t version) {
  { s(version) } -> std::convertible_to<float>;
};

/// Instantiated for the schedule of a model, so that the compiler's message names it and its missing parts.
template <class S>
struct is_a_schedule {
  static constexpr bool copies = std::copy_constructible<S>;
  static constexpr bool has_call = requires(S const s, std::uint64_t version) { s(version); };
  static constexpr bool gives_a_rate = !has_call || requires(S const s, std::uint64_t version) {
    { s(version) } -> std::convertible_to<float>;
  };
  static_assert(copies, "edl: this schedule cannot be copied");
  static_assert(has_call, "edl: this schedule has no call `float operator()(std::uint64_t version) const`");
  static_assert(gives_a_rate, "edl: this schedule does not return a rate; it should return a `float`");
};

/// Steps of a schedule: a number of them, or a share of all steps of the job's training
/// (`share_of_training`).
class step_count {
 public:
  template <class N>
    requires std::convertible_to<N, std::uint64_t> && (!std::floating_point<N>)
  constexpr step_count(N const& number) : number_(static_cast<std::uint64_t>(number)) {}

  /// Throws usage_error for a share: call `of` first, with the number of steps.
  constexpr operator std::uint64_t() const {
    if (share_ >= 0)
      throw usage_error(
          "a schedule's steps are a share of the training, and how many steps that has is unknown");
    return number_;
  }

  constexpr bool is_share() const { return share_ >= 0; }
  /// The number of steps in a training with this many steps.
  constexpr step_count of(std::uint64_t training) const {
    if (!is_share()) return *this;
    double const steps = share_ * double(training);
    auto const whole = static_cast<std::uint64_t>(steps);
    return step_count(whole + (steps - double(whole) >= 0.5 ? 1 : 0));
  }
  /// Whether it is not a share, or one in [0, 1]; and not 0 steps unless `or_none`.
  constexpr bool fits(bool or_none = true) const {
    return is_share() ? share_ <= 1 && (or_none || share_ > 0) : or_none || number_ > 0;
  }

 private:
  friend constexpr step_count share_of_training(double share);
  std::uint64_t number_ = 0;
  double share_ = -1;
};

/// A share, in [0, 1], of the steps of a job's training: its records × --num_epochs, divided by the minibatch
/// size and the minibatches per step, or --max_step. `cosine_decay{.rate = 0.1f, .steps =
/// share_of_training(1)}` ends with the job, however long that is.
constexpr step_count share_of_training(double share) {
  step_count s(0);
  s.share_ = share >= 0 ? share : 2;  // which is out of range
  return s;
}

namespace detail {

/// Calls `f` with each number of steps in a schedule of edl.
template <class Schedule, class F>
constexpr void each_step_count(Schedule& s, F&& f) {
  if constexpr (requires { s.each_step_count(f); }) s.each_step_count(f);
}

}  // namespace detail

/// When evaluations reduce a learning rate, and by how much (`reduce_on_plateau`).
struct plateau_options {
  std::string_view metric;  ///< `NAME`, `NAME:min` or `NAME:max`, as in --early_stopping
  float factor = 0.1f;
  std::uint32_t patience = 10, cooldown = 0;
  double min_delta = 0;
  float min_factor = 0;
};

/// The options of the `reduce_on_plateau` in a schedule.
template <class Schedule>
constexpr std::optional<plateau_options> plateau_of(Schedule const& s) {
  if constexpr (requires { s.plateau(); })
    return s.plateau();
  else
    return std::nullopt;
}

/// Whether a schedule has steps that are a share of the training.
template <class Schedule>
constexpr bool has_share_of_training(Schedule s) {
  bool any = false;
  detail::each_step_count(s, [&](step_count const& n) { any = any || n.is_share(); });
  return any;
}

/// The schedule in a training with this many steps.
template <class Schedule>
constexpr Schedule in_training_of(Schedule s, std::uint64_t steps) {
  detail::each_step_count(s, [&](step_count& n) { n = n.of(steps); });
  return s;
}

/// The same rate forever.
struct constant_rate {
  float rate;
  constexpr bool options_fit() const { return is_amount(rate); }
  constexpr float operator()(std::uint64_t) const { return rate; }
};

/// `{.rate = 0.1f, .then = {{5000, 0.01f}, {15000, 0.001f}}}`: 0.1 below version 5000, then 0.01, and 0.001
/// from 15000. At most eight changes, by ascending version.
struct piecewise_constant {
  struct change {
    step_count from = std::numeric_limits<std::uint64_t>::max();
    float rate = 0;
  };

  float rate;
  change then[8]{};

  constexpr bool options_fit() const {
    bool good = is_amount(rate);
    for (change const& c : then) good = good && is_amount(c.rate) && c.from.fits();
    return good;
  }
  constexpr void each_step_count(auto&& f) {
    for (change& c : then) f(c.from);
  }
  constexpr float operator()(std::uint64_t version) const {
    float now = rate;
    for (change const& c : then)
      if (version >= c.from) now = c.rate;
    return now;
  }
};

/// rate · factor^(version / steps); the quotient is rounded down with `staircase`.
struct exponential_decay {
  float rate;
  float factor;
  step_count steps;
  bool staircase = false;

  constexpr bool options_fit() const { return is_amount(rate) && is_amount(factor) && steps.fits(false); }
  constexpr void each_step_count(auto&& f) { f(steps); }
  float operator()(std::uint64_t version) const {
    double const turns = double(version) / double(steps);
    return float(double(rate) * std::pow(double(factor), staircase ? std::floor(turns) : turns));
  }
};

/// From `rate` down to `end` over `steps` as half a cosine, then `end` (Loshchilov and Hutter, "SGDR", ICLR
/// 2017, without restarts).
struct cosine_decay {
  float rate;
  step_count steps;
  float end = 0;

  constexpr bool options_fit() const { return is_amount(rate) && is_amount(end) && steps.fits(); }
  constexpr void each_step_count(auto&& f) { f(steps); }
  float operator()(std::uint64_t version) const {
    if (version >= steps) return end;
    double const way = double(version) / double(steps);
    return float(double(end) + (double(rate) - double(end)) * (1 + std::cos(std::numbers::pi * way)) / 2);
  }
};

/// Half a cosine from `rate` down to `end`, repeated. The first takes `steps`, and each following one
/// `factor` times as many as the one before. (Loshchilov and Hutter, "SGDR: stochastic gradient descent with
/// warm restarts", ICLR 2017.)
struct cosine_restarts {
  float rate;
  step_count steps;          ///< above 0
  std::uint64_t factor = 1;  ///< above 0
  float end = 0;

  constexpr bool options_fit() const {
    return is_amount(rate) && is_amount(end) && steps.fits(false) && factor > 0;
  }
  constexpr void each_step_count(auto&& f) { f(steps); }
  float operator()(std::uint64_t version) const {
    if (steps == 0) return end;
    std::uint64_t length = steps;
    if (factor <= 1) version %= steps;
    while (version >= length) {
      version -= length;
      // Longer than any job: if another factor would overflow 64 bits, this cycle never ends.
      length = length > std::numeric_limits<std::uint64_t>::max() / factor
                   ? std::numeric_limits<std::uint64_t>::max()
                   : length * factor;
    }
    return cosine_decay{rate, length, end}(version);
  }
};

/// From `rate` to `end` over `steps` as (1 − version / steps)^power, then `end`; by default a straight line.
struct polynomial_decay {
  float rate;
  step_count steps;
  float end = 0;
  float power = 1;

  constexpr bool options_fit() const {
    return is_amount(rate) && is_amount(end) && is_amount(power) && steps.fits();
  }
  constexpr void each_step_count(auto&& f) { f(steps); }
  float operator()(std::uint64_t version) const {
    if (version >= steps) return end;
    double const left = 1 - double(version) / double(steps);
    return float(double(end) +
                 (double(rate) - double(end)) * (power == 1 ? left : std::pow(left, double(power))));
  }
};

/// From `start` in a straight line up to `rate` at `peak`, and from there down to `end` at `steps`, then
/// `end`.
struct triangle {
  float rate;
  step_count peak, steps;
  float start = 0, end = 0;

  constexpr bool options_fit() const {
    bool const both_known = !peak.is_share() && !steps.is_share();
    return is_amount(rate) && is_amount(start) && is_amount(end) && peak.fits() && steps.fits() &&
           (!both_known || peak <= steps);
  }
  constexpr void each_step_count(auto&& f) { f(peak), f(steps); }
  constexpr float operator()(std::uint64_t version) const {
    if (version >= steps) return end;
    bool const up = version < peak;
    double const way = up ? double(version) / double(peak) : double(version - peak) / double(steps - peak);
    double const from = up ? double(start) : double(rate), to = up ? double(rate) : double(end);
    return float(from + (to - from) * way);
  }
};

/// Another schedule, scaled from 1/steps up to 1 during the first `steps` versions (Goyal et al., "Accurate,
/// large minibatch SGD", 2017): `warmup<cosine_decay>{.steps = 500, .then = {.rate = 0.1f, .steps =
/// 20000}}`.
template <class Schedule>
struct warmup {
  static_assert(sizeof(is_a_schedule<Schedule>) > 0);

  step_count steps;
  Schedule then;

  constexpr bool options_fit() const { return steps.fits() && edl::options_fit(then); }
  constexpr void each_step_count(auto&& f) {
    f(steps);
    detail::each_step_count(then, f);
  }
  constexpr float operator()(std::uint64_t version) const
    requires learning_rate_schedule<Schedule>
  {
    float const rate = then(version);
    return version < steps ? float(double(rate) * double(version + 1) / double(steps)) : rate;
  }
  constexpr std::optional<plateau_options> plateau() const { return plateau_of(then); }
};

template <class Schedule>
warmup(step_count, Schedule) -> warmup<Schedule>;

/// Another schedule, whose rate is multiplied by `factor` after `patience` consecutive evaluations without an
/// improvement of `metric` by more than `min_delta` (as Keras's ReduceLROnPlateau does):
/// `reduce_on_plateau<constant_rate>{.then = {0.1f}, .metric = "accuracy"}`. After a reduction the next
/// `cooldown` evaluations do not count as such. All reductions together multiply the rate by `min_factor` or
/// more.
///
/// A call returns the rate without reductions: these depend on the job's evaluations, so the master decides
/// them (docs/models.md).
template <class Schedule>
struct reduce_on_plateau {
  static_assert(sizeof(is_a_schedule<Schedule>) > 0);

  Schedule then;
  std::string_view metric;      ///< `NAME`, `NAME:min` or `NAME:max`
  float factor = 0.1f;          ///< above 0, below 1
  std::uint32_t patience = 10;  ///< evaluations, at least 1
  double min_delta = 0;
  std::uint32_t cooldown = 0;  ///< evaluations
  float min_factor = 0;        ///< at most 1

  constexpr bool options_fit() const {
    return edl::options_fit(then) && !plateau_of(then) && !metric.empty() && factor > 0 && factor < 1 &&
           patience > 0 && min_delta >= 0 && min_delta <= std::numeric_limits<double>::max() &&
           min_factor >= 0 && min_factor <= 1;
  }
  constexpr void each_step_count(auto&& f) { detail::each_step_count(then, f); }
  constexpr float operator()(std::uint64_t version) const
    requires learning_rate_schedule<Schedule>
  {
    return then(version);
  }
  constexpr std::optional<plateau_options> plateau() const {
    return plateau_options{metric, factor, patience, cooldown, min_delta, min_factor};
  }
};

}  // namespace edl

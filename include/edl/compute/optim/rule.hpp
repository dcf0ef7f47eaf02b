// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/compute/optim/decay.hpp"
#include "edl/compute/optim/optimizer.hpp"
#include "edl/compute/optim/schedule.hpp"
#include "edl/compute/optim/whole_variables.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/partition.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// An optimiser as the runtime sees it, for any model: a pure function on spans. One virtual call per span
/// and step, so that servers and workers are compiled only once. Thread safety: const, safe.
class update_rule {
 public:
  virtual ~update_rule() = default;

  /// Names of the slots, in order ("momentum"; "m", "v", …). `apply` takes as many spans of slots.
  virtual std::vector<std::string> slots() const = 0;

  /// The value of a slot's elements before the first step.
  virtual float initial(std::size_t slot) const = 0;

  /// The learning rate at a model version: the schedule, or the optimiser's own rate.
  virtual float learning_rate(std::uint64_t version) const = 0;

  /// Whether the schedule has step counts that are a share of the training's (`share_of_training`).
  virtual bool depends_on_training() const { return false; }

  /// When evaluations reduce the rate; empty: never. The caller multiplies `learning_rate` by the factor.
  virtual std::optional<plateau_options> plateau() const { return {}; }

  /// Sets the number of steps of the training. Call before the first `learning_rate` if that depends on it.
  /// Thread safety: safe.
  virtual void train_for(std::uint64_t /*steps*/) {}

  /// One step. `step` is the number of steps already applied, from 0. All spans are as long as `weights`.
  virtual void apply(std::span<float> weights, view<float> gradients, std::span<std::span<float> const> slots,
                     float learning_rate, std::uint64_t step) const = 0;

  /// `apply` on a model's parameters from number `first` on; the rule may exclude some from decay
  /// (`spared_from_decay`). Any division into spans that `borders` permits gives bitwise equal results.
  virtual void apply_at([[maybe_unused]] std::size_t first, std::span<float> weights, view<float> gradients,
                        std::span<std::span<float> const> slots, float learning_rate,
                        std::uint64_t step) const {
    apply(weights, gradients, slots, learning_rate, step);
  }

  /// The rule for the rows of a table, by its number in the layout. It lives as long as this.
  virtual update_rule const& of_table(std::size_t number) const {
    (void)number;
    return *this;
  }

  /// The offsets where spans of `apply_at` may begin and end, for an optimiser of whole variables; empty:
  /// anywhere.
  virtual view<std::size_t> borders() const { return {}; }

  /// Throws error for an option that does not fit the model, e.g. a name that no variable has.
  virtual void check(parameter_layout const& layout) const { (void)layout; }

  /// Sets how an expensive rule shares a step among threads. Call before any step.
  virtual void share(work_sharing by) { (void)by; }
};

/// An optimiser and a schedule as the runtime sees them. Without a schedule it uses the optimiser's own rate.
template <optimizer Optimizer, learning_rate_schedule Schedule = constant_rate>
class rule final : public update_rule {
 public:
  explicit rule(Optimizer o)
    requires std::same_as<Schedule, constant_rate>
      : rule(o, constant_rate{o.learning_rate}) {}
  /// `of`: the model; an optimiser may exclude parts of it from decay, or need whole variables.
  rule(Optimizer o, Schedule s, parameter_layout const& of = {})
      : optimizer_(std::move(o)),
        schedule_(std::move(s)),
        spared_(spared_from_decay(optimizer_, of)),
        variables_(whole ? of : parameter_layout{}) {
    if (!decays(optimizer_)) return;
    for (std::size_t i = 0; i < of.tables.size(); ++i)
      if (matches_name(excluded_from_decay(optimizer_), of.tables[i].name)) spared_tables_.push_back(i);
    if (!spared_tables_.empty())
      for_spared_tables_ = std::make_shared<rule>(without_decay(optimizer_), schedule_);
  }

  std::vector<std::string> slots() const override {
    std::vector<std::string> names;
    for (slot const& s : slot_list(optimizer_.slots())) names.emplace_back(s.name);
    return names;
  }

  float initial(std::size_t slot) const override { return slot_list(optimizer_.slots())[slot].initial; }

  float learning_rate(std::uint64_t version) const override {
    std::uint64_t const steps = shares_ ? std::atomic_ref(training_).load() : 0;
    return float(steps > 0 ? in_training_of(schedule_, steps)(version) : schedule_(version));
  }

  bool depends_on_training() const override { return shares_; }
  std::optional<plateau_options> plateau() const override { return plateau_of(schedule_); }
  void train_for(std::uint64_t steps) override {
    std::atomic_ref(training_).store(steps);
    if (for_spared_tables_) for_spared_tables_->train_for(steps);
  }

  void apply(std::span<float> weights, view<float> gradients, std::span<std::span<float> const> slots,
             float learning_rate, std::uint64_t step) const override {
    optimizer_.apply(weights, gradients, slots, learning_rate, step);
  }

  void apply_at(std::size_t first, std::span<float> weights, view<float> gradients,
                std::span<std::span<float> const> slots, float learning_rate,
                std::uint64_t step) const override {
    if constexpr (whole)
      variables_.each({first, first + weights.size()}, [&](variable const& v) {
        std::size_t const at = v.offset - first, n = v.dims.size();
        slot_spans own;
        for (std::size_t i = 0; i < slots.size(); ++i) own[i] = slots[i].subspan(at, n);
        (spares(v) ? without_decay(optimizer_) : optimizer_)
            .apply_whole(v, weights.subspan(at, n), gradients.subspan(at, n),
                         std::span<std::span<float> const>(own).first(slots.size()), learning_rate, step);
      });
    else if (spared_.empty())
      apply(weights, gradients, slots, learning_rate, step);
    else
      step_in_parts(optimizer_, spared_, first, weights, gradients, slots,
                    [&](Optimizer const& o, std::span<float> w, view<float> g, auto s) {
                      o.apply(w, g, s, learning_rate, step);
                    });
  }

  update_rule const& of_table(std::size_t number) const override {
    if (std::ranges::find(spared_tables_, number) == spared_tables_.end()) return *this;
    return *for_spared_tables_;
  }

  view<std::size_t> borders() const override { return whole ? variables_.borders() : view<std::size_t>{}; }

  void check([[maybe_unused]] parameter_layout const& layout) const override {
    check_excluded_from_decay(excluded_from_decay(optimizer_), layout);
    if constexpr (requires { optimizer_.check(layout); }) optimizer_.check(layout);
  }

  void share(work_sharing by) override { variables_.share(std::move(by)); }

 private:
  static constexpr bool whole = whole_optimizer<Optimizer>;
  using slot_spans = std::array<std::span<float>, slot_list{}.slots.size()>;

  bool spares(variable const& v) const {
    return std::ranges::any_of(
        spared_, [&](element_range r) { return r.first <= v.offset && v.offset + v.dims.size() <= r.last; });
  }

  Optimizer optimizer_;
  Schedule schedule_;
  bool shares_ = has_share_of_training(schedule_);
  mutable std::uint64_t training_ = 0;  // its steps; 0: not set. Via atomic_ref, because rules are moved.
  std::vector<element_range> spared_;
  std::vector<std::size_t> spared_tables_;  // their numbers
  std::shared_ptr<rule> for_spared_tables_;
  whole_variables variables_;
};

template <class Optimizer>
rule(Optimizer) -> rule<Optimizer>;

}  // namespace edl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/optim/optimizer.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/partition.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// Elements that are trained at `factor` times the rate, in the first `steps` steps, or in all steps.
struct rated_range {
  element_range elements;
  float factor = 1;
  std::uint64_t steps = 0;

  friend bool operator==(rated_range const&, rated_range const&) = default;
};

/// Rates for parts of a model, by their ranges. Everything else has the unscaled rate.
struct part_rates {
  std::vector<rated_range> elements;  ///< of the arena, ordered and not overlapping
  std::vector<float> tables;          ///< a factor for each table; empty: 1 for all

  float of_table(std::size_t number) const { return number < tables.size() ? tables[number] : 1.0f; }
};

/// The parts of `text`, which is names=factor pairs separated by ',', e.g. "conv2d*=0.1,dense/kernel=2". They
/// refer to the text. Throws usage_error for invalid text, or a factor that is not above 0.
std::vector<rate_of> read_rates(std::string const& text);

/// The model's rates, followed by the user's --rates. Finds parameters and tables by names, as
/// `matching_names` does; with `steps`, parameters only. Throws error for a pattern that matches none, and
/// usage_error for rates of the model that are not `valid`.
part_rates rates_of_parts(parameter_layout const& layout, rates const& model, std::string const& flag);

/// Calls work(range, factor) for parts of `all`, in order. Together they are its trained part after this many
/// steps, from 0.
template <class Work>
void for_each_rate(view<rated_range> rated, element_range all, std::uint64_t step, Work const& work) {
  std::size_t at = all.first;
  auto next = std::ranges::upper_bound(rated, at, {}, [](rated_range const& r) { return r.elements.last; });
  for (; next != rated.end() && next->elements.first < all.last; ++next) {
    if (next->elements.first > at) work(element_range{at, next->elements.first}, 1.0f);
    element_range const here{std::max(at, next->elements.first), std::min(all.last, next->elements.last)};
    if (next->steps == 0 || step < next->steps) work(here, next->factor);
    at = here.last;
  }
  if (at < all.last) work(element_range{at, all.last}, 1.0f);
}

/// Another rule, with other rates for parts of a model. `apply` uses the unscaled rate, because it does not
/// know the position of its span.
class rated_rule final : public update_rule {
 public:
  /// `of` must outlive this.
  rated_rule(update_rule const& of, std::vector<rated_range> rated) : rule_(of), rated_(std::move(rated)) {}

  std::vector<std::string> slots() const override { return rule_.slots(); }
  float initial(std::size_t slot) const override { return rule_.initial(slot); }
  float learning_rate(std::uint64_t version) const override { return rule_.learning_rate(version); }
  void apply(std::span<float> weights, view<float> gradients, std::span<std::span<float> const> slots,
             float learning_rate, std::uint64_t step) const override {
    rule_.apply(weights, gradients, slots, learning_rate, step);
  }
  void apply_at(std::size_t first, std::span<float> weights, view<float> gradients,
                std::span<std::span<float> const> slots, float learning_rate,
                std::uint64_t step) const override;
  update_rule const& of_table(std::size_t number) const override { return rule_.of_table(number); }
  view<std::size_t> borders() const override { return rule_.borders(); }

 private:
  update_rule const& rule_;
  std::vector<rated_range> rated_;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/optim/part_rates.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <system_error>

#include "edl/compute/optim/name_patterns.hpp"
#include "edl/compute/optim/part_rates.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/text.hpp"

namespace edl {

EDL_INLINE std::vector<rate_of> read_rates(std::string const& text) {
  std::vector<rate_of> parts;
  if (text.empty()) return parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t const end = std::min(text.find(',', begin), text.size());
    std::string_view const part = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    std::size_t const equals = part.rfind('=');
    rate_of one{part.substr(0, equals)};
    bool good = equals != std::string_view::npos;
    if (good) {
      auto const factor = number_from<float>(part.substr(equals + 1));
      one.factor = factor.value_or(0);
      good = factor && one.valid();
    }
    if (!good)
      throw usage_error(
          fmt::format("--rates={}: '{}' is not NAMES=FACTOR with a factor above 0, such as 'conv2d*=0.1' "
                      "(--freeze leaves variables as they are)",
                      text, part));
    parts.push_back(one);
  }
  return parts;
}

EDL_INLINE part_rates rates_of_parts(parameter_layout const& layout, rates const& model,
                                     std::string const& flag) {
  if (!model.valid())
    throw usage_error(fmt::format(
        "the model's rates: expected at most {} parts, with names and factors above 0", rates::most));
  std::vector<element_range> trained;
  std::vector<std::string> names;
  for (variable const& v : layout.variables)
    if (v.offset < layout.parameters) {
      trained.push_back({v.offset, v.offset + v.dims.size()});
      names.push_back(v.name);
    }
  std::vector<std::string> const parameters = names;
  for (table_shape const& t : layout.tables) names.push_back(t.name);
  std::vector<float> factors(names.size(), 1.0f);
  std::vector<std::uint64_t> steps(names.size());
  auto const take = [&](rate_of const& r, std::string const& what) {
    bool const ends = r.steps > 0;
    auto const matched =
        matching_names(ends ? parameters : names, r.names, what,
                       ends ? "variable that is trained" : "variable or table that is trained");
    for (std::size_t i = 0; i < matched.size(); ++i) {
      if (!matched[i]) continue;
      factors[i] = r.factor;
      if (ends) steps[i] = r.steps;
    }
  };
  for (rate_of const& r : model.parts()) take(r, "the model's rates");
  for (rate_of const& r : read_rates(flag)) take(r, fmt::format("--rates={}", flag));
  part_rates all;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    if (factors[i] == 1 && steps[i] == 0) continue;
    rated_range const here{trained[i], factors[i], steps[i]};
    bool const goes_on = !all.elements.empty() && all.elements.back().elements.last == trained[i].first &&
                         all.elements.back().factor == here.factor && all.elements.back().steps == here.steps;
    if (goes_on)
      all.elements.back().elements.last = trained[i].last;
    else
      all.elements.push_back(here);
  }
  all.tables.assign(factors.begin() + std::ptrdiff_t(trained.size()), factors.end());
  return all;
}

EDL_INLINE void rated_rule::apply_at(std::size_t first, std::span<float> weights, view<float> gradients,
                                     std::span<std::span<float> const> slots, float learning_rate,
                                     std::uint64_t step) const {
  if (rated_.empty()) return rule_.apply_at(first, weights, gradients, slots, learning_rate, step);
  std::vector<std::span<float>> own(slots.size());
  for_each_rate(rated_, {first, first + weights.size()}, step, [&](element_range r, float factor) {
    std::size_t const at = r.first - first;
    for (std::size_t i = 0; i < slots.size(); ++i) own[i] = slots[i].subspan(at, r.size());
    rule_.apply_at(r.first, weights.subspan(at, r.size()), gradients.subspan(at, r.size()), own,
                   factor * learning_rate, step);
  });
}

}  // namespace edl

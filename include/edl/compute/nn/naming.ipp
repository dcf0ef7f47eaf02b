// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/compute/nn/naming.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::nn {

EDL_INLINE std::string numbered(std::span<std::string_view const> names) {
  auto const twins = std::ranges::count(names, names.back()) - 1;
  std::string name(names.back());
  if (twins > 0) name += '_' + std::to_string(twins);
  return name;
}

EDL_INLINE void naming::enter(std::string_view name) {
  auto& taken = levels_.back().taken;
  taken.push_back(name);
  std::string const own = numbered(taken);
  levels_.push_back({path_.size(), {}});
  path_ += own + '/';
}

EDL_INLINE void naming::leave() {
  path_.resize(levels_.back().prefix);
  levels_.pop_back();
}

EDL_INLINE void naming::add(variable_spec const& v) {
  all_.push_back({path_ + std::string(v.name), v.dims, v.trained, v.frozen});
}

EDL_INLINE parameter_layout naming::lay_out() const {
  std::vector<std::string_view> names;
  for (named const& n : all_) names.push_back(n.name);
  std::ranges::sort(names);
  if (auto const twin = std::ranges::adjacent_find(names); twin != names.end())
    throw error("two variables of the network are called " + std::string(*twin) +
                ": give a layer another name (nn::named, nn::shared)");
  parameter_layout l;
  std::size_t next = 0;
  for (bool const trained : {true, false}) {
    for (named const& n : all_)
      if (!n.frozen && n.trained == trained) {
        l.variables.push_back({n.name, n.dims, next});
        next += n.dims.size();
      }
    (trained ? l.parameters : l.state) = next - l.parameters;
  }
  return l;
}

EDL_INLINE parameter_layout naming::lay_out_frozen() const {
  parameter_layout l;
  for (named const& n : all_)
    if (n.frozen) {
      l.variables.push_back({n.name, n.dims, l.parameters});
      l.parameters += n.dims.size();
    }
  return l;
}

}  // namespace edl::nn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/train/setup/initial_variables.hpp"

namespace edl {

EDL_INLINE std::span<float> initial_variables::operator[](std::string_view name) {
  std::string names;
  for (variable const& v : layout_.variables) {
    if (v.name == name) return filled_.try_emplace(v.offset, v.dims.size()).first->second;
    names += (names.empty() ? "" : ", ") + v.name;
  }
  throw error(fmt::format("the model has no variable '{}'; it has {}", name, names));
}

EDL_INLINE void initial_variables::write(std::size_t first, std::span<float> to) const {
  for (auto const& [offset, values] : filled_) {
    std::size_t const begin = std::max(first, offset),
                      end = std::min(first + to.size(), offset + values.size());
    if (begin < end)
      std::copy_n(values.begin() + std::ptrdiff_t(begin - offset), end - begin,
                  to.begin() + std::ptrdiff_t(begin - first));
  }
}

}  // namespace edl

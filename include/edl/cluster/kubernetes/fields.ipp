// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/text.hpp"

namespace edl::kubernetes {
namespace detail {
inline nlohmann::json const nothing;
}  // namespace detail

EDL_INLINE nlohmann::json const& field(nlohmann::json const& of, std::initializer_list<char const*> path) {
  nlohmann::json const* at = &of;
  for (char const* name : path) {
    if (!at->is_object()) return detail::nothing;
    auto const it = at->find(name);
    if (it == at->end()) return detail::nothing;
    at = &*it;
  }
  return *at;
}

EDL_INLINE nlohmann::json const& first(nlohmann::json const& list) {
  return list.is_array() && !list.empty() ? list.front() : detail::nothing;
}

EDL_INLINE std::string text(nlohmann::json const& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

EDL_INLINE std::optional<std::uint32_t> number(nlohmann::json const& value) { return number(text(value)); }

EDL_INLINE std::optional<std::uint32_t> number(std::string const& digits) {
  return number_from<std::uint32_t>(digits);
}

}  // namespace edl::kubernetes

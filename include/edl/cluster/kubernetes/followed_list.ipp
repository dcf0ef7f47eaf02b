// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/cluster/kubernetes/followed_list.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/text.hpp"

namespace edl::kubernetes {

EDL_INLINE std::string key_of(nlohmann::json const& object) {
  std::string const space = text(field(object, {"metadata", "namespace"}));
  return (space.empty() ? "" : space + "/") + text(field(object, {"metadata", "name"}));
}

EDL_INLINE std::string version_of(nlohmann::json const& object) {
  return text(field(object, {"metadata", "resourceVersion"}));
}

EDL_INLINE bool older(std::string const& a, std::string const& b) {
  auto const x = number_from<std::uint64_t>(a), y = number_from<std::uint64_t>(b);
  return x && y && *x < *y;
}

EDL_INLINE void followed_list::begin() {
  coming_ = true;
  seen_.clear();
}

EDL_INLINE void followed_list::take(std::string const& key, std::string const& version) {
  invariant(coming_ || seen_.empty(), "keys are kept of a list that comes");
  if (coming_) seen_.insert(key);
  if (version_.empty() || older(version_, version)) version_ = version;
}

EDL_INLINE std::unordered_set<std::string> followed_list::end(std::string const& version) {
  coming_ = false;
  complete_ = true;
  if (!version.empty()) version_ = version;
  return std::exchange(seen_, {});
}

EDL_INLINE bool followed_list::is_news(std::string const& version) const {
  return version_.empty() ? number_from<std::uint64_t>(version).has_value() : older(version_, version);
}

}  // namespace edl::kubernetes

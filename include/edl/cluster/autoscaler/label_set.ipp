// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/cluster/autoscaler/label_set.hpp"
#include "edl/core/inline.hpp"

namespace edl::autoscaler {

EDL_INLINE label_set::label_set(std::initializer_list<std::pair<std::string, std::string>> labels) {
  for (auto const& [key, value] : labels) set(key, value);
}

EDL_INLINE label_set::label_set(std::map<std::string, std::string> const& labels) {
  for (auto const& [key, value] : labels) set(key, value);
}

EDL_INLINE void label_set::set(std::string key, std::string value) {
  set(std::make_shared<std::string const>(std::move(key)),
      std::make_shared<std::string const>(std::move(value)));
}

EDL_INLINE void label_set::set(text key, text value) {
  auto const at = std::lower_bound(all_.begin(), all_.end(), *key,
                                   [](auto const& has, std::string const& k) { return *has.first < k; });
  if (at != all_.end() && *at->first == *key)
    at->second = std::move(value);
  else
    all_.emplace(at, std::move(key), std::move(value));
}

EDL_INLINE std::string const* label_set::find(std::string_view key) const {
  auto const at = std::lower_bound(all_.begin(), all_.end(), key,
                                   [](auto const& has, std::string_view k) { return *has.first < k; });
  return at != all_.end() && *at->first == key ? at->second.get() : nullptr;
}

EDL_INLINE bool operator==(label_set const& a, label_set const& b) {
  return std::equal(
      a.all_.begin(), a.all_.end(), b.all_.begin(), b.all_.end(),
      [](auto const& x, auto const& y) { return *x.first == *y.first && *x.second == *y.second; });
}

EDL_INLINE label_set label_pool::of(std::map<std::string, std::string> const& labels) {
  label_set made;
  made.all_.reserve(labels.size());
  for (auto const& [key, value] : labels) made.all_.emplace_back(share(key), share(value));
  return made;
}

EDL_INLINE void label_pool::tidy() {
  std::erase_if(texts_, [](auto const& entry) { return entry.second.use_count() == 1; });
  tidied_ = texts_.size();
}

EDL_INLINE label_set::text label_pool::share(std::string const& text) {
  auto const known = texts_.find(text);
  if (known != texts_.end()) return known->second;
  if (texts_.size() > 2 * tidied_ + 1000) tidy();
  auto made = std::make_shared<std::string const>(text);
  texts_.emplace(*made, made);
  return made;
}

}  // namespace edl::autoscaler

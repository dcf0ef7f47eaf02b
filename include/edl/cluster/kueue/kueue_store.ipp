// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/cluster/kueue/kueue_store.hpp"
#include "edl/core/inline.hpp"

namespace edl::controller::kueue {
namespace detail::keeping {

inline std::string key_of(nlohmann::json const& object) {
  using namespace platform::kubernetes;
  std::string const space = text(field(object, {"metadata", "namespace"}));
  return (space.empty() ? "" : space + "/") + text(field(object, {"metadata", "name"}));
}

/// Whether version `a` of an object is older than `b`. What is no number is as new as it comes.
inline bool older(std::string const& a, std::string const& b) {
  auto const digits = [](std::string const& s) {
    return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  return digits(a) && digits(b) && (a.size() != b.size() ? a.size() < b.size() : a < b);
}

}  // namespace detail::keeping

EDL_INLINE void object_store::begin(kueue_kind k) {
  list& l = lists_[std::size_t(k)];
  l.coming = true;
  l.seen.clear();
}

EDL_INLINE object_store::change object_store::put(kueue_kind k, nlohmann::json const& object) {
  std::string const key = detail::keeping::key_of(object);
  if (list& l = lists_[std::size_t(k)]; l.coming) l.seen.insert(key);
  if (k == kueue_kind::flavor) {
    pod_changes next = read_flavor(object);
    auto const [at, fresh] = flavors_.try_emplace(key);
    if (!fresh && at->second == next) return {};
    at->second = std::move(next);
    return {.all = true};
  }
  if (k == kueue_kind::priority_class) {
    auto const& value = platform::kubernetes::field(object, {"value"});
    std::int64_t const n = value.is_number_integer() ? value.get<std::int64_t>() : 0;
    auto const [at, fresh] = classes_.try_emplace(key, n);
    if (!fresh && at->second == n) return {};
    at->second = n;
    return {.all = true};
  }
  auto next = read_workload(object);
  auto const known = owners_.find(key);
  if (!next) return known == owners_.end() ? change{} : drop(k, key);
  change c{.owners = {next->owner}};
  if (known != owners_.end()) {
    auto const& is = workloads_.at(known->second).at(key);
    if (is.uid == next->uid && detail::keeping::older(next->resource_version, is.resource_version)) return {};
    if (known->second != next->owner) c.owners.merge(drop(k, key).owners);
  }
  owners_[key] = next->owner;
  workloads_[next->owner].insert_or_assign(key, std::move(*next));
  return c;
}

EDL_INLINE object_store::change object_store::drop(kueue_kind k, std::string const& key) {
  if (k == kueue_kind::flavor) return {.all = flavors_.erase(key) > 0};
  if (k == kueue_kind::priority_class) return {.all = classes_.erase(key) > 0};
  auto const at = owners_.find(key);
  if (at == owners_.end()) return {};
  std::string const owner = at->second;
  owners_.erase(at);
  auto const of = workloads_.find(owner);
  of->second.erase(key);
  if (of->second.empty()) workloads_.erase(of);
  return {.owners = {owner}};
}

EDL_INLINE object_store::change object_store::end(kueue_kind k) {
  list& l = lists_[std::size_t(k)];
  auto const seen = std::exchange(l.seen, {});
  l.coming = false;
  l.complete = true;
  trouble_.clear();
  std::vector<std::string> gone;
  auto const look = [&](auto const& all) {
    for (auto const& [key, value] : all)
      if (!seen.contains(key)) gone.push_back(key);
  };
  if (k == kueue_kind::workload) look(owners_);
  if (k == kueue_kind::flavor) look(flavors_);
  if (k == kueue_kind::priority_class) look(classes_);
  change c{.all = true};
  for (std::string const& key : gone) c.owners.merge(drop(k, key).owners);
  return c;
}

EDL_INLINE object_store::change object_store::remove(kueue_kind k, nlohmann::json const& object) {
  std::string const key = detail::keeping::key_of(object);
  // Late news of an object whose successor is there already.
  if (auto const at = owners_.find(key); k == kueue_kind::workload && at != owners_.end())
    if (auto const uid = platform::kubernetes::text(platform::kubernetes::field(object, {"metadata", "uid"}));
        workloads_.at(at->second).at(key).uid != uid)
      return {};
  return drop(k, key);
}

EDL_INLINE bool object_store::complete() const {
  if (!served_) return false;
  return !*served_ ||
         std::all_of(std::begin(lists_), std::end(lists_), [](list const& l) { return l.complete; });
}

EDL_INLINE std::vector<workload const*> object_store::workloads_of(std::string const& uid) const {
  std::vector<workload const*> all;
  if (auto const mine = workloads_.find(uid); mine != workloads_.end())
    for (auto const& [key, w] : mine->second) all.push_back(&w);
  return all;
}

EDL_INLINE pod_changes const* object_store::flavor(std::string const& name) const {
  auto const at = flavors_.find(name);
  return at == flavors_.end() ? nullptr : &at->second;
}

EDL_INLINE std::optional<std::int64_t> object_store::priority(std::string const& name) const {
  auto const at = classes_.find(name);
  return at == classes_.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace edl::controller::kueue

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/cluster/kueue/kueue_store.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::kueue {
EDL_INLINE object_store::change object_store::put(kueue_kind k, nlohmann::json const& object) {
  using namespace kubernetes;
  std::string const key = key_of(object);
  lists_[std::size_t(k)].take(key, version_of(object));
  if (k == kueue_kind::flavor) {
    pod_changes next = read_flavor(object);
    auto const [at, fresh] = flavors_.try_emplace(key);
    if (!fresh && at->second == next) return {};
    at->second = std::move(next);
    return {.all = true};
  }
  if (k == kueue_kind::priority_class) {
    auto const& value = field(object, {"value"});
    std::int64_t const n = value.is_number_integer() ? value.get<std::int64_t>() : 0;
    auto const [at, fresh] = classes_.try_emplace(key, n);
    if (!fresh && at->second == n) return {};
    at->second = n;
    return {.all = true};
  }
  return keep(object);
}

EDL_INLINE object_store::change object_store::answered(nlohmann::json const& object) {
  auto const& list = lists_[std::size_t(kueue_kind::workload)];
  return list.is_news(kubernetes::version_of(object)) ? keep(object) : change{};
}

EDL_INLINE object_store::change object_store::keep(nlohmann::json const& object) {
  std::string const key = kubernetes::key_of(object);
  auto next = read_workload(object);
  auto const known = owners_.find(key);
  if (!next) return known == owners_.end() ? change{} : drop(kueue_kind::workload, key);
  change c{.owners = {next->owner}};
  if (known != owners_.end()) {
    invariant(workloads_.contains(known->second), "an owner that is known has workloads");
    auto const& is = workloads_.at(known->second).at(key);
    if (kubernetes::older(next->resource_version, is.resource_version)) return {};
    if (known->second != next->owner) c.owners.merge(drop(kueue_kind::workload, key).owners);
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
  invariant(of != workloads_.end() && of->second.contains(key), "a workload is kept under its owner");
  of->second.erase(key);
  if (of->second.empty()) workloads_.erase(of);
  return {.owners = {owner}};
}

EDL_INLINE object_store::change object_store::end(kueue_kind k, std::string const& version) {
  invariant(std::size_t(k) < lists_.size(), "each kind has its list");
  auto const seen = lists_[std::size_t(k)].end(version);
  trouble_.clear();
  std::vector<std::string> gone;
  auto const look = [&](auto const& all, auto const& newer) {
    for (auto const& [key, value] : all)
      if (!seen.contains(key) && !newer(key, value)) gone.push_back(key);
  };
  auto const never = [](auto const&...) { return false; };
  if (k == kueue_kind::workload)
    look(owners_, [&](std::string const& key, std::string const& owner) {
      return kubernetes::older(version, workloads_.at(owner).at(key).resource_version);
    });
  if (k == kueue_kind::flavor) look(flavors_, never);
  if (k == kueue_kind::priority_class) look(classes_, never);
  change c{.all = true};
  for (std::string const& key : gone) c.owners.merge(drop(k, key).owners);
  return c;
}

EDL_INLINE object_store::change object_store::remove(kueue_kind k, nlohmann::json const& object) {
  using namespace kubernetes;
  std::string const key = key_of(object);
  lists_[std::size_t(k)].take({}, version_of(object));
  // A late event of an object whose successor is already known.
  if (auto const at = owners_.find(key); k == kueue_kind::workload && at != owners_.end())
    if (workloads_.at(at->second).at(key).uid != text(field(object, {"metadata", "uid"}))) return {};
  return drop(k, key);
}

EDL_INLINE bool object_store::complete() const {
  if (!served_) return false;
  return !*served_ || std::all_of(lists_.begin(), lists_.end(), [](auto const& l) { return l.complete(); });
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

}  // namespace edl::kueue

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "edl/cluster/kubernetes/followed_list.hpp"
#include "edl/cluster/kueue/kueue.hpp"

namespace edl::kueue {

enum class kueue_kind { workload, flavor, priority_class };
inline constexpr std::size_t kinds = 3;

/// What the API server says of Kueue's objects: Workloads of TrainingJobs, ResourceFlavors and
/// WorkloadPriorityClasses. An object that is older than the one that is known changes nothing, except in a
/// list. Thread safety: distinct objects: safe. Shared objects: unsafe.
class object_store {
 public:
  /// What came of an event: uids of the TrainingJobs that it concerns; `all`: every one.
  struct change {
    std::set<std::string> owners{};
    bool all = false;
  };

  void begin(kueue_kind k) { lists_[std::size_t(k)].begin(); }
  change put(kueue_kind k, nlohmann::json const& object);
  change end(kueue_kind k, std::string const& version = {});  ///< `version`: of the list
  change remove(kueue_kind k, nlohmann::json const& object);

  /// A Workload as the answer to a request shows it. It changes nothing where the watch has told as much, or
  /// more: the Workload may have gone since.
  change answered(nlohmann::json const& workload_object);

  /// Whether the cluster has Kueue. Nothing is known of it until this is said; then its objects have to be
  /// listed once.
  void serves(bool yes) { served_ = yes; }
  bool served() const { return served_.value_or(false); }
  bool complete() const;

  /// Why its objects cannot be listed; empty: nothing stands in the way.
  void refused(std::string why) { trouble_ = std::move(why); }
  std::string const& trouble() const { return trouble_; }

  /// Of the TrainingJob of this uid.
  std::vector<workload const*> workloads_of(std::string const& uid) const;
  /// By owner, then by name.
  std::unordered_map<std::string, std::map<std::string, workload>> const& workloads() const {
    return workloads_;
  }
  pod_changes const* flavor(std::string const& name) const;
  std::optional<std::int64_t> priority(std::string const& class_name) const;

 private:
  change keep(nlohmann::json const& workload_object);
  change drop(kueue_kind k, std::string const& key);

  std::optional<bool> served_{};
  std::string trouble_;
  std::array<kubernetes::followed_list, kinds> lists_{};
  std::unordered_map<std::string, std::map<std::string, workload>> workloads_;
  std::unordered_map<std::string, std::string> owners_;  ///< by "namespace/name"
  std::unordered_map<std::string, pod_changes> flavors_;
  std::unordered_map<std::string, std::int64_t> classes_;
};

}  // namespace edl::kueue

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kueue/kueue_store.ipp"
#endif

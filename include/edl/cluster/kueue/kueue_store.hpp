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

/// The state of Kueue's objects on the API server: Workloads of TrainingJobs, ResourceFlavors and
/// WorkloadPriorityClasses. Ignores an object older than the known one, except in a list. Thread safety:
/// distinct objects: safe. Shared objects: unsafe.
class object_store {
 public:
  /// The effect of an event: the uids of the TrainingJobs concerned; `all`: every TrainingJob.
  struct change {
    std::set<std::string> owners{};
    bool all = false;
  };

  void begin(kueue_kind k) { lists_[std::size_t(k)].begin(); }
  change put(kueue_kind k, nlohmann::json const& object);
  change end(kueue_kind k, std::string const& version = {});  ///< `version`: of the list
  change remove(kueue_kind k, nlohmann::json const& object);

  /// Applies a Workload from a reply to a request. Ignores it if the watch has delivered the same version or
  /// a later event, because the Workload may have been deleted since.
  change answered(nlohmann::json const& workload_object);

  /// Sets whether the cluster has Kueue. Its objects count as unknown until this is called and they have been
  /// listed once.
  void serves(bool yes) { served_ = yes; }
  bool served() const { return served_.value_or(false); }
  bool complete() const;

  /// Sets why Kueue's objects cannot be listed; empty: they can.
  void refused(std::string why) { trouble_ = std::move(why); }
  std::string const& trouble() const { return trouble_; }

  /// The Workloads of the TrainingJob with this uid.
  std::vector<workload const*> workloads_of(std::string const& uid) const;
  /// By owner's uid, then by name.
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
  std::unordered_map<std::string, std::string> owners_;  ///< owners' uids by "namespace/name"
  std::unordered_map<std::string, pod_changes> flavors_;
  std::unordered_map<std::string, std::int64_t> classes_;
};

}  // namespace edl::kueue

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kueue/kueue_store.ipp"
#endif

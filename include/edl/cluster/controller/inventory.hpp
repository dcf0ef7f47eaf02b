// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "edl/cluster/autoscaler/cluster_view.hpp"
#include "edl/cluster/autoscaler/label_set.hpp"
#include "edl/cluster/autoscaler/plan.hpp"
#include "edl/cluster/controller/job_memo.hpp"
#include "edl/cluster/controller/pod_marks.hpp"
#include "edl/cluster/controller/pod_record.hpp"
#include "edl/cluster/kubernetes/followed_list.hpp"
#include "edl/cluster/kubernetes/training_job.hpp"

namespace edl::controller {

class pod_marks;

enum class object_kind { node, pod, job, priority_class };
inline constexpr std::size_t object_kinds = 4;

/// A TrainingJob, values derived from its templates, and the memo about it.
struct job_entry {
  kubernetes::training_job job;
  std::string invalid{};  ///< why the object cannot be parsed; `job` then has no spec
  autoscaler::shared<autoscaler::pod_shape> master, server, worker;
  autoscaler::label_set master_labels{}, server_labels{}, worker_labels{};  ///< of the templates
  bool shaped = false;         ///< whether these three are those of the current spec
  std::string worker_class{};  ///< priority class
  job_memo memo{};
};

/// What an event changes for others.
struct inventory_change {
  enum class weight { none, soft, hard };  ///< for the plan: `soft` can wait a few seconds
  weight plan = weight::none;
  std::vector<std::string> jobs{};  ///< keys of the jobs to reconcile
  std::string trouble{};            ///< a line for the log
  void add(inventory_change&& other);
};

/// The state of the API server: Nodes, Pods, TrainingJobs and PriorityClasses, parsed. Pods of equal shape
/// share it. Ignores an object older than the known one, except in a list. Thread safety: distinct objects:
/// safe. Shared objects: unsafe.
class inventory {
 public:
  inventory() = default;
  inventory(inventory const&) = delete;

  /// Receives a list: `begin`, then `put` for each object, then `end`, which removes the objects that the
  /// list did not contain. `version`: the list's own.
  void begin(object_kind k) { lists_[std::size_t(k)].begin(); }
  inventory_change put(object_kind k, nlohmann::json const& object);
  inventory_change end(object_kind k, std::string const& version = {});
  inventory_change remove(object_kind k, nlohmann::json const& object);

  /// Applies an object from a reply to a request. Ignores it if the watch has delivered the same version or a
  /// later event, because the object may have been deleted since.
  inventory_change answered(object_kind k, nlohmann::json const& object);

  /// Whether every kind has been listed.
  bool complete() const;

  /// By "namespace/name"; null: no such job.
  job_entry* job(std::string const& key);
  job_entry const* job(std::string const& key) const;
  std::unordered_map<std::string, job_entry> const& jobs() const { return jobs_; }

  pod_record const* pod(std::string const& key) const;
  /// The pods of the TrainingJob with this uid, by key.
  std::vector<pod_record const*> pods_of(std::string const& uid) const;
  /// The key of the TrainingJob with this uid; null: no such job.
  std::string const* key_of(std::string const& uid) const {
    auto const at = job_by_uid_.find(uid);
    return at == job_by_uid_.end() ? nullptr : &at->second;
  }
  bool knows(std::string const& uid) const { return job_by_uid_.contains(uid); }

  /// The value of a PriorityClass; an empty name means the default class, or 0 if there is none. Returns
  /// nothing if no class has that name.
  std::optional<std::int64_t> priority_class(std::string const& name) const;

  /// `lost`: its kubelet no longer responds.
  enum class node_state { ready, lost, gone };
  node_state state_of(std::string const& node) const;
  /// What a node is short of according to its kubelet: "MemoryPressure, DiskPressure"; empty: nothing known.
  std::string pressure_of(std::string const& node) const;

  /// How many nodes with these labels take pods.
  std::uint32_t nodes_with(std::map<std::string, std::string> const& labels) const;

  /// The input of `make_plan`. `promised`: the previous plan's reservations, by pod.
  autoscaler::cluster_view view(
      double now, std::unordered_map<std::string, autoscaler::reservation> const& promised) const;

  std::size_t nodes() const { return nodes_.size(); }
  std::size_t pods() const { return pods_.size(); }
  std::size_t shapes() const { return shapes_.size(); }

 private:
  struct node_entry {
    autoscaler::node seen;
    bool lost = false;
    std::string pressure{};
  };
  using kept_shape = std::shared_ptr<autoscaler::pod_shape const>;
  struct by_value {
    using is_transparent = void;
    bool operator()(kept_shape const& a, kept_shape const& b) const { return *a < *b; }
    bool operator()(kept_shape const& a, autoscaler::pod_shape const& b) const { return *a < b; }
    bool operator()(autoscaler::pod_shape const& a, kept_shape const& b) const { return a < *b; }
  };

  void check() const;
  inventory_change keep(object_kind k, nlohmann::json const& object);
  inventory_change put_node(nlohmann::json const& object);
  inventory_change put_pod(nlohmann::json const& object);
  inventory_change put_job(nlohmann::json const& object);
  inventory_change put_class(nlohmann::json const& object);
  inventory_change drop(object_kind k, std::string const& key);
  inventory_change drop_pod(std::string const& key);
  inventory_change touched(pod_record const& p) const;
  std::string const* job_key_of(pod_record const& p) const;
  autoscaler::shared<autoscaler::pod_shape> intern(autoscaler::pod_shape shape);
  void tidy_shapes();
  autoscaler::shared<autoscaler::pod_shape> shape_of(kubernetes::template_text const& text,
                                                     std::string const& space, autoscaler::label_set& labels,
                                                     std::string* priority_class = nullptr);
  int priority_of(std::string const& class_name) const;
  void add_job(job_entry const& e, pod_marks& marks, autoscaler::cluster_view& to) const;
  void mark_leaving(job_entry const& e, std::unordered_set<std::string>& keys) const;

  std::set<kept_shape, by_value> shapes_;  ///< unused ones, too, until the next cleanup
  std::size_t shapes_tidied_ = 0;          ///< how many the last cleanup left
  autoscaler::label_pool labels_;
  std::array<kubernetes::followed_list, object_kinds> lists_{};
  std::unordered_map<std::string, node_entry> nodes_;
  std::unordered_map<std::string, pod_record> pods_;
  std::unordered_map<std::string, std::set<std::string>> pods_by_owner_;
  std::unordered_map<std::string, job_entry> jobs_;
  std::unordered_map<std::string, std::string> job_by_uid_;
  std::unordered_map<std::string, int> classes_;
  std::string default_class_;
};

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/inventory.ipp"
#include "edl/cluster/controller/inventory_view.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "edl/cluster/controller/cluster_reading.hpp"
#include "edl/cluster/controller/inventory.hpp"
#include "edl/cluster/kubernetes/errors.hpp"
#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/text.hpp"

namespace edl::controller {
namespace detail::store {

using kubernetes::field;
using kubernetes::text;
using nlohmann::json;

using kubernetes::key_of;
using kubernetes::older;
using kubernetes::version_of;

inline inventory_change hard() { return {.plan = inventory_change::weight::hard}; }

}  // namespace detail::store

EDL_INLINE void inventory_change::add(inventory_change&& other) {
  plan = std::max(plan, other.plan);
  jobs.insert(jobs.end(), std::make_move_iterator(other.jobs.begin()),
              std::make_move_iterator(other.jobs.end()));
  if (trouble.empty()) trouble = std::move(other.trouble);
}

EDL_INLINE autoscaler::shared<autoscaler::pod_shape> inventory::intern(autoscaler::pod_shape shape) {
  if (auto const known = shapes_.find(shape); known != shapes_.end())
    return autoscaler::shared<autoscaler::pod_shape>(*known);
  if (shapes_.size() > 2 * shapes_tidied_ + 100) tidy_shapes();
  auto made = std::make_shared<autoscaler::pod_shape const>(std::move(shape));
  shapes_.insert(made);
  return autoscaler::shared<autoscaler::pod_shape>(std::move(made));
}

EDL_INLINE void inventory::tidy_shapes() {
  std::erase_if(shapes_, [](kept_shape const& s) { return s.use_count() == 1; });
  shapes_tidied_ = shapes_.size();
}

EDL_INLINE autoscaler::shared<autoscaler::pod_shape> inventory::shape_of(
    kubernetes::template_text const& text, std::string const& space, autoscaler::label_set& labels,
    std::string* priority_class) {
  if (text.empty()) return intern({});
  auto const parsed = nlohmann::json::parse(text, nullptr, false);
  auto const& spec = detail::store::field(parsed, {"spec"});
  if (priority_class)
    *priority_class = detail::store::text(detail::store::field(spec, {"priorityClassName"}));
  labels = labels_.of(labels_of(parsed));
  return intern(read_shape(spec, space));
}

// Invariants between objects that arrive separately.
EDL_INLINE void inventory::check() const {
  invariant(job_by_uid_.size() <= jobs_.size(), "each known uid belongs to a job");
  invariant(pods_by_owner_.size() <= pods_.size(), "each known owner has a pod");
  invariant(default_class_.empty() || classes_.contains(default_class_), "the default priority class exists");
}

EDL_INLINE inventory_change inventory::put(object_kind k, nlohmann::json const& object) {
  lists_[std::size_t(k)].take(detail::store::key_of(object), detail::store::version_of(object));
  return keep(k, object);
}

EDL_INLINE inventory_change inventory::answered(object_kind k, nlohmann::json const& object) {
  return lists_[std::size_t(k)].is_news(detail::store::version_of(object)) ? keep(k, object)
                                                                           : inventory_change{};
}

EDL_INLINE inventory_change inventory::keep(object_kind k, nlohmann::json const& object) {
  switch (k) {
    case object_kind::node:
      return put_node(object);
    case object_kind::pod:
      return put_pod(object);
    case object_kind::job:
      return put_job(object);
    case object_kind::priority_class:
      return put_class(object);
  }
  return {};
}

EDL_INLINE inventory_change inventory::end(object_kind k, std::string const& version) {
  auto& list = lists_[std::size_t(k)];
  bool const first = !list.complete();
  auto const seen = list.end(version);
  std::vector<std::string> gone;
  auto const look = [&](auto const& all, auto const& version_of) {
    for (auto const& [key, value] : all)
      if (!seen.contains(key) && !detail::store::older(version, version_of(value))) gone.push_back(key);
  };
  auto const none = [](auto const&) { return std::string(); };
  if (k == object_kind::node) look(nodes_, none);
  if (k == object_kind::pod) look(pods_, [](pod_record const& p) { return p.version; });
  if (k == object_kind::job) look(jobs_, [](job_entry const& e) { return e.job.resource_version; });
  if (k == object_kind::priority_class) look(classes_, none);
  inventory_change c;
  for (std::string const& key : gone) c.add(drop(k, key));
  if (first && complete())
    for (auto const& [key, e] : jobs_) c.jobs.push_back(key);
  if (first) c.plan = inventory_change::weight::hard;
  tidy_shapes();
  if (k == object_kind::node) labels_.tidy();
  return c;
}

EDL_INLINE inventory_change inventory::remove(object_kind k, nlohmann::json const& object) {
  std::string const key = detail::store::key_of(object),
                    uid = detail::store::text(detail::store::field(object, {"metadata", "uid"}));
  lists_[std::size_t(k)].take({}, detail::store::version_of(object));
  // A late event of an object whose successor is already known.
  if (k == object_kind::pod)
    if (auto const at = pods_.find(key); at != pods_.end() && at->second.uid != uid) return {};
  if (k == object_kind::job)
    if (auto const at = jobs_.find(key); at != jobs_.end() && at->second.job.uid != uid) return {};
  return drop(k, key);
}

EDL_INLINE inventory_change inventory::drop(object_kind k, std::string const& key) {
  if (k == object_kind::pod) return drop_pod(key);
  inventory_change c = detail::store::hard();
  if (k == object_kind::node) {
    nodes_.erase(key);
    for (auto const& [name, p] : pods_)
      if (p.node == key) c.add(touched(p));
  } else if (k == object_kind::job) {
    auto const at = jobs_.find(key);
    if (at == jobs_.end()) return {};
    job_by_uid_.erase(at->second.job.uid);
    jobs_.erase(at);
    c.jobs.push_back(key);
  } else if (k == object_kind::priority_class) {
    classes_.erase(key);
    if (default_class_ == key) default_class_.clear();
  }
  check();
  return c;
}

EDL_INLINE inventory_change inventory::drop_pod(std::string const& key) {
  auto const at = pods_.find(key);
  if (at == pods_.end()) return {};
  inventory_change c = touched(at->second);
  if (at->second.at != pod_record::phase::over || at->second.outlived)
    c.plan = inventory_change::weight::hard;
  if (auto const mine = pods_by_owner_.find(at->second.owner); mine != pods_by_owner_.end()) {
    bool const was_there = mine->second.erase(key) == 1;
    invariant(was_there, "a pod is among those of its owner");
    if (mine->second.empty()) pods_by_owner_.erase(mine);
  }
  pods_.erase(at);
  check();
  return c;
}

// An owner is in its dependent's namespace, so a uid of a job in another namespace does not count.
EDL_INLINE std::string const* inventory::job_key_of(pod_record const& p) const {
  auto const at = job_by_uid_.find(p.owner);
  return at != job_by_uid_.end() && at->second.starts_with(p.space() + "/") ? &at->second : nullptr;
}

/// The job that owns a pod, or whose master has the pod's name. A job that is gone counts, too: its Workload
/// keeps its quota until its pods are gone.
EDL_INLINE inventory_change inventory::touched(pod_record const& p) const {
  inventory_change c;
  std::string const name = p.name();
  std::string const role = "-" + (p.owner.empty() || knows(p.owner) ? "master" : to_string(p.who));
  if (std::string const* const job = job_key_of(p))
    c.jobs.push_back(*job);
  else if (name.starts_with("elasticdl-") && name.ends_with(role) && name.size() > 10 + role.size())
    c.jobs.push_back(p.space() + "/" + name.substr(10, name.size() - 10 - role.size()));
  return c;
}

EDL_INLINE inventory_change inventory::put_node(nlohmann::json const& object) {
  node_entry next{read_node(object), lost(object), pressure(object)};
  next.seen.labels = labels_.of(labels_of(object));
  auto const at = nodes_.find(next.seen.name);
  bool const known = at != nodes_.end();
  auto const same = [](autoscaler::node const& a, autoscaler::node const& b) {
    return a.allocatable == b.allocatable && a.labels == b.labels && a.taints == b.taints &&
           a.schedulable == b.schedulable;
  };
  bool const usable = known && same(at->second.seen, next.seen) && at->second.lost == next.lost;
  if (usable && at->second.pressure == next.pressure) return {};
  inventory_change c = usable ? inventory_change{} : detail::store::hard();
  if (!known || at->second.lost != next.lost || at->second.pressure != next.pressure)
    for (auto const& [key, p] : pods_)
      if (p.node == next.seen.name && !p.owner.empty()) c.add(touched(p));
  if (!usable)
    for (auto const& [key, e] : jobs_)
      if (e.job.spec.spot) c.jobs.push_back(key);  // a pool may be up again
  nodes_.insert_or_assign(next.seen.name, std::move(next));
  return c;
}

EDL_INLINE inventory_change inventory::put_pod(nlohmann::json const& object) {
  pod_record next = read_record(object);
  auto const at = pods_.find(next.key);
  if (at != pods_.end() && detail::store::older(next.version, at->second.version)) return {};
  if (next.owner.empty() && next.at == pod_record::phase::over) return drop_pod(next.key);
  next.shape = intern(read_shape(detail::store::field(object, {"spec"}), next.space()));
  next.labels = labels_.of(labels_of(object));
  inventory_change c;
  if (at != pods_.end()) {
    if (!same_for_plan(at->second, next) || !(at->second.labels == next.labels))
      c.plan = inventory_change::weight::hard;
    if (next.master && at->second.master && next.master->report != at->second.master->report)
      c.plan = std::max(c.plan, inventory_change::weight::soft);
    if (next.master && at->second.master && next.master->size != at->second.master->size)
      c.plan = inventory_change::weight::hard;
    if (!same_for_job(at->second, next)) c.add(touched(next));
    // The old entry is found by its owner, so it must go before the owner changes.
    if (at->second.owner != next.owner) c.add(drop_pod(next.key));
  } else {
    c = touched(next);
    c.plan = inventory_change::weight::hard;
  }
  if (!next.owner.empty()) pods_by_owner_[next.owner].insert(next.key);
  std::string const key = next.key;
  pods_.insert_or_assign(key, std::move(next));
  check();
  return c;
}

EDL_INLINE inventory_change inventory::put_job(nlohmann::json const& object) {
  std::string const key = detail::store::key_of(object);
  job_entry next;
  try {
    next.job = kubernetes::read_training_job(object);
  } catch (error const& e) {
    next.invalid = kubernetes::one_line(e.what(), 1000);
    next.job.space = detail::store::text(detail::store::field(object, {"metadata", "namespace"}));
    next.job.name = detail::store::text(detail::store::field(object, {"metadata", "name"}));
    next.job.uid = detail::store::text(detail::store::field(object, {"metadata", "uid"}));
    next.job.resource_version =
        detail::store::text(detail::store::field(object, {"metadata", "resourceVersion"}));
    if (auto const& g = detail::store::field(object, {"metadata", "generation"}); g.is_number_integer())
      next.job.generation = g.get<std::int64_t>();
    next.job.deleted = detail::store::text(detail::store::field(object, {"metadata", "deletionTimestamp"}));
    if (auto const& by = detail::store::field(object, {"spec", "managedBy"}); by.is_string())
      next.job.spec.managed_by = by.get<std::string>();
    try {
      if (auto const& status = detail::store::field(object, {"status"}); !status.is_null())
        next.job.status = kubernetes::read_status(status, key);
    } catch (error const& why) {
      // A known job keeps its last valid state, and its next status replaces the unreadable one. For an
      // unknown job, writing a new status would lose information.
      auto const known = jobs_.find(key);
      bool const same = known != jobs_.end() && known->second.job.uid == next.job.uid;
      if (same) known->second.job.resource_version = next.job.resource_version;
      inventory_change c{.trouble = fmt::format(
                             "TrainingJob {}: its status cannot be read: {}; {}", key,
                             kubernetes::one_line(why.what(), 300),
                             same ? "overwriting it"
                                  : "nothing is done for the job until the status is removed, or the job")};
      if (same) c.jobs.push_back(key);
      return c;
    }
  }
  auto const at = jobs_.find(key);
  bool const same_job = at != jobs_.end() && at->second.job.uid == next.job.uid;
  if (at != jobs_.end() && detail::store::older(next.job.resource_version, at->second.job.resource_version))
    return {};
  inventory_change c{.plan = inventory_change::weight::hard, .jobs = {key}};
  if (same_job) {
    job_entry& is = at->second;
    // The plan depends on the spec and on a few fields of the status.
    bool const same_spec = is.job.generation == next.job.generation && is.job.deleted == next.job.deleted;
    auto const let_in = [](job_entry const& e) {
      return std::tuple(is_true(e.job.status, kubernetes::condition_type::admitted),
                        is_true(e.job.status, kubernetes::condition_type::suspended), e.job.finished(),
                        e.job.status.spot.pool);
    };
    bool const same_pool = is.job.status.spot.pool == next.job.status.spot.pool;
    if (same_spec && let_in(is) == let_in(next)) c.plan = inventory_change::weight::none;
    if (is.job.resource_version == next.job.resource_version) c.jobs.clear();
    next.memo = std::move(is.memo);
    if (same_spec && same_pool && is.shaped) {
      next.master = is.master, next.server = is.server, next.worker = is.worker;
      next.master_labels = is.master_labels, next.server_labels = is.server_labels;
      next.worker_labels = is.worker_labels;
      next.worker_class = is.worker_class, next.shaped = true;
    }
  } else if (at != jobs_.end()) {
    job_by_uid_.erase(at->second.job.uid);
  }
  if (!next.shaped && next.invalid.empty()) {
    next.shaped = true;
    std::string const& space = next.job.space;
    next.master = shape_of(next.job.spec.master, space, next.master_labels);
    next.server = shape_of(next.job.spec.server, space, next.server_labels);
    next.worker = shape_of(template_in_pool(next.job), space, next.worker_labels, &next.worker_class);
  }
  job_by_uid_[next.job.uid] = key;
  jobs_.insert_or_assign(key, std::move(next));
  check();
  return c;
}

EDL_INLINE inventory_change inventory::put_class(nlohmann::json const& object) {
  std::string const name = detail::store::key_of(object);
  auto const& value = detail::store::field(object, {"value"});
  int const n = value.is_number_integer()
                    ? int(std::clamp<std::int64_t>(value.get<std::int64_t>(), -2'147'483'647, 2'147'483'647))
                    : 0;
  bool const usual = detail::store::field(object, {"globalDefault"}) == true;
  auto const at = classes_.find(name);
  if (at != classes_.end() && at->second == n && (default_class_ == name) == usual) return {};
  classes_[name] = n;
  if (usual)
    default_class_ = name;
  else if (default_class_ == name)
    default_class_.clear();
  check();
  inventory_change c = detail::store::hard();
  for (auto const& [key, e] : jobs_) c.jobs.push_back(key);  // a job may wait for this class
  return c;
}

EDL_INLINE bool inventory::complete() const {
  return std::all_of(lists_.begin(), lists_.end(), [](auto const& l) { return l.complete(); });
}

EDL_INLINE job_entry* inventory::job(std::string const& key) {
  auto const at = jobs_.find(key);
  return at == jobs_.end() ? nullptr : &at->second;
}

EDL_INLINE job_entry const* inventory::job(std::string const& key) const {
  auto const at = jobs_.find(key);
  return at == jobs_.end() ? nullptr : &at->second;
}

EDL_INLINE pod_record const* inventory::pod(std::string const& key) const {
  auto const at = pods_.find(key);
  return at == pods_.end() ? nullptr : &at->second;
}

EDL_INLINE std::vector<pod_record const*> inventory::pods_of(std::string const& uid) const {
  std::vector<pod_record const*> all;
  bool const known = job_by_uid_.contains(uid);
  if (auto const mine = pods_by_owner_.find(uid); mine != pods_by_owner_.end())
    for (std::string const& key : mine->second)
      if (pod_record const& p = pods_.at(key); !known || job_key_of(p)) all.push_back(&p);
  return all;
}

EDL_INLINE std::uint32_t inventory::nodes_with(std::map<std::string, std::string> const& labels) const {
  return std::uint32_t(std::ranges::count_if(nodes_, [&](auto const& one) {
    node_entry const& n = one.second;
    return n.seen.schedulable && !n.lost && std::ranges::all_of(labels, [&](auto const& label) {
             auto const has = n.seen.labels.find(label.first);
             return has && *has == label.second;
           });
  }));
}

EDL_INLINE inventory::node_state inventory::state_of(std::string const& name) const {
  auto const at = nodes_.find(name);
  if (at == nodes_.end()) return node_state::gone;
  return at->second.lost ? node_state::lost : node_state::ready;
}

EDL_INLINE std::string inventory::pressure_of(std::string const& name) const {
  auto const at = nodes_.find(name);
  return at == nodes_.end() ? std::string() : at->second.pressure;
}

EDL_INLINE std::optional<std::int64_t> inventory::priority_class(std::string const& name) const {
  if (!name.empty() && !classes_.contains(name)) return std::nullopt;
  return priority_of(name);
}

EDL_INLINE int inventory::priority_of(std::string const& name) const {
  auto const at = classes_.find(name.empty() ? default_class_ : name);
  return at == classes_.end() ? 0 : at->second;
}

}  // namespace edl::controller

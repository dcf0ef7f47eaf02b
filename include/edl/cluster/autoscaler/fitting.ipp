// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>

#include "edl/cluster/autoscaler/fitting.hpp"
#include "edl/cluster/autoscaler/pod_selector.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/quantity.hpp"

namespace edl::autoscaler {
namespace detail {

inline std::string const* label_of(node const& on, std::string const& key) {
  if (key == "metadata.name") return &on.name;
  return on.labels.find(key);
}

inline bool tolerates(pod_shape const& shape, taint const& t) {
  return std::any_of(shape.tolerations.begin(), shape.tolerations.end(), [&](toleration const& by) {
    if (!by.effect.empty() && by.effect != t.effect) return false;
    if (by.key.empty()) return by.exists;
    return by.key == t.key && (by.exists || by.value == t.value);
  });
}

/// Thousandths of an amount in Kubernetes' notation, such as "1.5" or "12Gi", without irrelevant digits.
inline std::string amount_text(std::string const& resource, double thousandths) {
  double const amount = std::max(0.0, thousandths) / 1000;
  bool const bytes =
      resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-");
  if (!bytes) return fmt::format("{:.6g}", amount);
  return to_quantity(std::uint64_t(amount) >> 20 << 20);
}

/// Headroom is for what services use. An idle device serves nobody.
inline bool has_headroom(std::string const& resource) { return resource == "cpu" || resource == "memory"; }

}  // namespace detail

EDL_INLINE bool allows(node const& on, pod_shape const& shape) {
  if (!on.schedulable) return false;
  for (taint const& t : on.taints)
    if ((t.effect == "NoSchedule" || t.effect == "NoExecute") && !detail::tolerates(shape, t)) return false;
  for (auto const& [key, value] : shape.node_selector) {
    std::string const* has = detail::label_of(on, key);
    if (!has || *has != value) return false;
  }
  return shape.affinity.empty() ||
         std::any_of(shape.affinity.begin(), shape.affinity.end(), [&](std::vector<requirement> const& term) {
           return !term.empty() && std::all_of(term.begin(), term.end(), [&](requirement const& r) {
             return holds(r, detail::label_of(on, r.key));
           });
         });
}

EDL_INLINE fitting::fitting(cluster_view const& view, std::vector<pod_shape const*> const& shapes,
                            double max_load)
    : nodes_(int(view.nodes.size())) {
  for (pod_shape const* s : shapes) add(*s);
  std::unordered_map<pod_shape const*, int> known;  // equal pods share a shape, so few are compared by value
  pods_.reserve(view.pods.size());
  for (pod const& p : view.pods) {
    auto const [at, fresh] = known.try_emplace(&*p.shape);
    if (fresh) at->second = add(*p.shape);
    pods_.push_back({at->second, -1});
  }
  kinds_ = kind_by_name_.size();  // no further shape follows, so no further resource
  read_nodes(view, max_load);
  neighbours_ = neighbours(view.nodes, shapes_);
  read_pods(view);
  invariant(pods_.size() == view.pods.size(), "each pod of the view has its shape");
  invariant(needs_.size() == shapes_.size() && first_.size() == shapes_.size(), "each shape has its need");
  invariant(class_of_.size() == view.nodes.size(), "each node has its class");
  invariant(free_.size() == view.nodes.size() * kinds_ && leaving_.size() == free_.size(),
            "each node has its room of each resource");
}

EDL_INLINE int fitting::add(pod_shape const& s) {
  auto const [at, fresh] = shapes_by_value_.try_emplace(&s, int(shapes_.size()));
  if (!fresh) return at->second;
  shapes_.push_back(&s);
  for (auto const& [name, amount] : s.requests)
    kind_by_name_.try_emplace(name, std::uint32_t(kind_by_name_.size()));
  return at->second;
}

EDL_INLINE void fitting::read_nodes(cluster_view const& view, double max_load) {
  std::set<std::string> keys;  // labels that matter to any shape
  for (pod_shape const* s : shapes_) {
    for (auto const& [key, value] : s->node_selector) keys.insert(key);
    for (auto const& term : s->affinity)
      for (requirement const& r : term) keys.insert(r.key);
  }
  free_.assign(std::size_t(nodes_) * kinds_, 0);
  leaving_.assign(free_.size(), 0);
  taken_.assign(kinds_, 0);
  allowed_load_.assign(kinds_, 0);
  class_of_.reserve(std::size_t(nodes_));
  node_by_name_.reserve(std::size_t(nodes_));
  std::unordered_map<std::string, int> classes;
  std::string key;
  auto const append = [&](std::string const& text) {
    key += text;
    key += '\0';
  };
  for (int n = 0; n < nodes_; ++n) {
    node const& on = view.nodes[std::size_t(n)];
    node_by_name_.emplace(on.name, n);
    key.assign(1, on.schedulable ? '1' : '0');
    for (taint const& t : on.taints) append(t.key), append(t.value), append(t.effect);
    for (std::string const& a : keys) {
      key += ',';
      if (std::string const* has = detail::label_of(on, a)) append(*has);
    }
    auto const [at, fresh] = classes.try_emplace(key, int(example_.size()));
    if (fresh) example_.push_back(&on);
    class_of_.push_back(at->second);
    std::int64_t* const free = &free_[std::size_t(n) * kinds_];
    free[0] = std::numeric_limits<std::int64_t>::max() / 4;
    for (auto const& [name, amount] : on.allocatable)
      if (auto const k = kind_by_name_.find(name); k != kind_by_name_.end()) free[k->second] = amount;
    if (on.schedulable)
      for (std::size_t k = 0; k < kinds_; ++k) allowed_load_[k] += double(free[k]);
  }
  classes_ = example_.size();
  needs_.reserve(shapes_.size());
  for (std::size_t s = 0; s < shapes_.size(); ++s) measure(*shapes_[s]);
  all_ = allowed_load_;
  for (auto const& [name, k] : kind_by_name_)
    allowed_load_[k] =
        detail::has_headroom(name) ? allowed_load_[k] * max_load : std::numeric_limits<double>::max();
  first_.assign(shapes_.size(), {});
  classes_allowed_.assign(shapes_.size() * classes_, unknown);
}

EDL_INLINE void fitting::measure(pod_shape const& s) {
  need n;
  for (auto const& [name, amount] : s.requests) {
    std::uint32_t const k = kind_by_name_.at(name);
    if (amount <= 0 || k == 0) continue;
    n.amounts.emplace_back(k, amount);
    if (allowed_load_[k] > 0) n.share = std::max(n.share, double(amount) / allowed_load_[k]);
  }
  if (n.share <= 0) n.share = 1.0 / std::max(1, nodes_);
  n.amounts.emplace_back(0, 1000);
  needs_.push_back(std::move(n));
}

EDL_INLINE void fitting::read_pods(cluster_view const& view) {
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    pod const& p = view.pods[i];
    int const node = p.node.empty() ? -1 : node_called(p.node);
    pods_[i].node = node;
    if (node < 0) continue;
    neighbours_.add(pods_[i].shape, node);
    std::size_t const row = std::size_t(node) * kinds_;
    for (auto const& [k, amount] : needs_[std::size_t(pods_[i].shape)].amounts) {
      free_[row + k] -= amount;
      if (p.leaving)
        leaving_[row + k] += amount;
      else if (view.nodes[std::size_t(node)].schedulable)
        taken_[k] += double(amount);
    }
  }
}

EDL_INLINE int fitting::node_called(std::string const& name) const {
  auto const at = node_by_name_.find(name);
  return at == node_by_name_.end() ? -1 : at->second;
}

EDL_INLINE bool fitting::find_out(int shape, int node) const {
  auto const of = std::size_t(class_of_[std::size_t(node)]);
  bool const yes = allows(*example_[of], *shapes_[std::size_t(shape)]);
  classes_allowed_[std::size_t(shape) * classes_ + of] = yes;
  return yes;
}

EDL_INLINE bool fitting::fits(int shape, int node, bool leaving) const {
  if (!allowed(shape, node)) return false;
  std::size_t const row = std::size_t(node) * kinds_;
  for (auto const& [k, amount] : needs_[std::size_t(shape)].amounts)
    if (free_[row + k] + (leaving ? leaving_[row + k] : 0) < amount) return false;
  return neighbours_.allow(shape, node);
}

EDL_INLINE std::size_t fitting::how_many(int shape, int node, std::size_t most) const {
  if (!allowed(shape, node) || !neighbours_.allow(shape, node)) return 0;
  if (neighbours_.alone(shape)) most = std::min<std::size_t>(most, 1);
  for (auto const& [k, amount] : needs_[std::size_t(shape)].amounts)
    most = std::min(most,
                    std::size_t(std::max<std::int64_t>(0, free_[std::size_t(node) * kinds_ + k] / amount)));
  return most;
}

EDL_INLINE bool fitting::missing(int shape, int node, bool leaving,
                                 std::vector<std::int64_t>& missing) const {
  missing.clear();
  if (!allowed(shape, node)) return false;
  std::size_t const row = std::size_t(node) * kinds_;
  for (auto const& [k, amount] : needs_[std::size_t(shape)].amounts)
    missing.push_back(amount - free_[row + k] - (leaving ? leaving_[row + k] : 0));
  return true;
}

EDL_INLINE void fitting::cover(int shape, int gone, std::vector<std::int64_t>& missing) const {
  auto const& of = needs_[std::size_t(shape)].amounts;
  invariant(missing.size() == of.size(), "the missing amounts have an entry for each resource of the shape");
  for (std::size_t i = 0; i < of.size(); ++i)
    for (auto const& [k, more] : needs_[std::size_t(gone)].amounts)
      if (k == of[i].first) missing[i] -= more;
}

EDL_INLINE bool fitting::fits_without(int shape, int node, std::vector<int> const& gone, bool leaving) const {
  std::vector<std::int64_t> shortfall;
  if (!missing(shape, node, leaving, shortfall)) return false;
  for (int g : gone) cover(shape, g, shortfall);
  return std::all_of(shortfall.begin(), shortfall.end(), [](std::int64_t m) { return m <= 0; }) &&
         neighbours_.allow(shape, node, gone);
}

EDL_INLINE int fitting::first_fit(int shape) {
  front& at = first_[std::size_t(shape)];
  auto const since = std::upper_bound(returned_.begin(), returned_.end(), at.when,
                                      [](std::uint64_t when, returned const& r) { return when < r.when; });
  if (since != returned_.end()) at.node = std::min(at.node, since->node);
  at.when = now_;
  invariant(at.node >= 0 && at.when <= now_, "the known first node of a shape is not newer than the present");
  while (at.node < nodes_ && !fits(shape, at.node)) ++at.node;
  return at.node < nodes_ ? at.node : -1;
}

EDL_INLINE int fitting::first_fit_with_leaving(int shape) const {
  for (int n = 0; n < nodes_; ++n)
    if (fits(shape, n, true)) return n;
  return -1;
}

EDL_INLINE void fitting::note_taken(need const& n, double sign) {
  for (auto const& [k, amount] : n.amounts) taken_[k] += sign * double(amount);
}

EDL_INLINE void fitting::take(int shape, int node) {
  invariant(shape >= 0 && std::size_t(shape) < needs_.size(), "room is taken for a known shape");
  invariant(node >= 0 && node < nodes_, "room is taken on an existing node");
  for (auto const& [k, amount] : needs_[std::size_t(shape)].amounts)
    free_[std::size_t(node) * kinds_ + k] -= amount;
  neighbours_.add(shape, node);
  note_taken(needs_[std::size_t(shape)], 1);
  if (int const first = neighbours_.first_opened(shape, node); first >= 0) look_again(first);
}

EDL_INLINE void fitting::give_back(int shape, int node) {
  invariant(shape >= 0 && std::size_t(shape) < needs_.size(), "room is returned for a known shape");
  invariant(node >= 0 && node < nodes_, "room is returned on an existing node");
  for (auto const& [k, amount] : needs_[std::size_t(shape)].amounts)
    free_[std::size_t(node) * kinds_ + k] += amount;
  note_taken(needs_[std::size_t(shape)], -1);
  neighbours_.remove(shape, node);
  look_again(neighbours_.first_freed(shape, node));
}

EDL_INLINE void fitting::look_again(int first) {
  while (!returned_.empty() && returned_.back().node >= first) returned_.pop_back();
  returned_.push_back({++now_, first});
  invariant(first >= 0 && first < nodes_, "room is returned on an existing node");
  invariant(returned_.size() <= std::size_t(nodes_), "each node with returned room is listed once");
}

EDL_INLINE bool fitting::within_load(int shape, std::vector<int> const& gone) const {
  for (auto const& [k, amount] : needs_[std::size_t(shape)].amounts) {
    double after = taken_[k] + double(amount);
    for (int g : gone)
      for (auto const& [of, less] : needs_[std::size_t(g)].amounts)
        if (of == k) after -= double(less);
    if (after > allowed_load_[k] * (1 + 1e-12)) return false;
  }
  return true;
}

EDL_INLINE bool fitting::within_load(int shape, std::size_t n) const {
  for (auto const& [k, amount] : needs_[std::size_t(shape)].amounts)
    if (taken_[k] + double(n) * double(amount) > allowed_load_[k] * (1 + 1e-12)) return false;
  return true;
}

EDL_INLINE bool fitting::allowed_somewhere(int shape) const {
  return std::any_of(example_.begin(), example_.end(),
                     [&](node const* n) { return allows(*n, *shapes_[std::size_t(shape)]); });
}

EDL_INLINE std::string fitting::shortage(std::map<int, int> const& wanted,
                                         std::map<int, int> const& leaving) const {
  std::vector<double> needed(kinds_), left(kinds_);
  for (std::size_t k = 0; k < kinds_; ++k) left[k] = std::min(all_[k], allowed_load_[k]) - taken_[k];
  for (auto const& [all, to] : {std::pair(&wanted, &needed), std::pair(&leaving, &left)})
    for (auto const& [shape, times] : *all)
      for (auto const& [k, amount] : needs_[std::size_t(shape)].amounts)
        (*to)[k] += double(times) * double(amount);
  std::string text;
  for (auto const& [name, k] : kind_by_name_)
    if (needed[k] > left[k] * (1 + 1e-12) + 1e-6)
      text += fmt::format("{}{} {}, of which {} are left", text.empty() ? "" : ", ", name,
                          detail::amount_text(name, needed[k]), detail::amount_text(name, left[k]));
  return text;
}

EDL_INLINE bool fitting::overloaded(int shape) const {
  for (auto const& [k, amount] : needs_[std::size_t(shape)].amounts)
    if (taken_[k] > allowed_load_[k] * (1 + 1e-12)) return true;
  return false;
}

}  // namespace edl::autoscaler

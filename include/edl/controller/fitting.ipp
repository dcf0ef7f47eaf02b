// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <unordered_map>

#include "edl/controller/fitting.hpp"
#include "edl/core/inline.hpp"

namespace edl::controller {
namespace detail {

inline std::string const* label_of(node const& on, std::string const& key) {
  if (key == "metadata.name") return &on.name;
  return on.labels.find(key);
}

inline bool to_number(std::string const& text, std::int64_t& value) {
  auto const end = text.data() + text.size();
  auto const read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end;
}

inline bool holds(requirement const& r, node const& on) {
  using enum requirement::relation;
  std::string const* has = label_of(on, r.key);
  bool const listed = has && std::find(r.values.begin(), r.values.end(), *has) != r.values.end();
  switch (r.is) {
    case in:
      return listed;
    case not_in:
      return !listed;
    case exists:
      return has;
    case does_not_exist:
      return !has;
    case greater:
    case less: {
      std::int64_t a = 0, b = 0;
      if (!has || r.values.size() != 1 || !to_number(*has, a) || !to_number(r.values[0], b)) return false;
      return r.is == greater ? a > b : a < b;
    }
  }
  return false;
}

inline bool tolerates(pod_shape const& shape, taint const& t) {
  return std::any_of(shape.tolerations.begin(), shape.tolerations.end(), [&](toleration const& by) {
    if (!by.effect.empty() && by.effect != t.effect) return false;
    if (by.key.empty()) return by.exists;
    return by.key == t.key && (by.exists || by.value == t.value);
  });
}

/// Headroom is for what services use. A device that stands idle serves nobody.
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
           return !term.empty() && std::all_of(term.begin(), term.end(),
                                               [&](requirement const& r) { return detail::holds(r, on); });
         });
}

EDL_INLINE fitting::fitting(cluster_view const& view, std::vector<pod_shape const*> const& shapes,
                            double max_load)
    : nodes_(int(view.nodes.size())) {
  std::vector<pod_shape const*> distinct;
  std::set<std::string> asked{"metadata.name"};  // labels that make a difference
  std::map<std::string, std::uint32_t> kinds{{pod_slots, 0}};
  for (pod_shape const* s : shapes)
    if (shapes_by_value_.try_emplace(s, int(distinct.size())).second) distinct.push_back(s);
  bool by_name = false;
  for (pod_shape const* s : distinct) {
    for (auto const& [key, value] : s->node_selector) asked.insert(key);
    for (auto const& term : s->affinity)
      for (requirement const& r : term) {
        asked.insert(r.key);
        by_name = by_name || r.key == "metadata.name";
      }
    for (auto const& [name, amount] : s->requests) kinds.try_emplace(name, std::uint32_t(kinds.size()));
  }
  if (!by_name) asked.erase("metadata.name");
  kinds_ = kinds.size();

  // Room, and the classes of nodes that no shape can tell apart.
  free_.assign(std::size_t(nodes_) * kinds_, 0);
  leaving_.assign(free_.size(), 0);
  taken_.assign(kinds_, 0);
  allowed_load_.assign(kinds_, 0);
  std::map<std::vector<std::string>, int> classes;
  std::vector<node const*> example;
  std::unordered_map<std::string, int> node_by_name;
  for (int n = 0; n < nodes_; ++n) {
    node const& on = view.nodes[std::size_t(n)];
    node_by_name.emplace(on.name, n);
    std::vector<std::string> key{on.schedulable ? "1" : "0"};
    for (taint const& t : on.taints) key.insert(key.end(), {t.key, t.value, t.effect});
    for (std::string const& a : asked) {
      std::string const* has = detail::label_of(on, a);
      key.push_back(has ? "=" + *has : "");
    }
    auto const [at, fresh] = classes.try_emplace(std::move(key), int(example.size()));
    if (fresh) example.push_back(&on);
    class_of_.push_back(at->second);
    std::int64_t* const free = &free_[std::size_t(n) * kinds_];
    free[0] = std::numeric_limits<std::int64_t>::max() / 4;
    for (auto const& [name, amount] : on.allocatable)
      if (auto const k = kinds.find(name); k != kinds.end()) free[k->second] = amount;
    if (on.schedulable)
      for (std::size_t k = 0; k < kinds_; ++k) allowed_load_[k] += double(free[k]);
  }
  classes_ = example.size();
  for (pod_shape const* s : distinct) {
    for (node const* on : example) classes_allowed_.push_back(allows(*on, *s));
    need n;
    auto const add = [&](std::string const& name, std::int64_t amount) {
      std::uint32_t const k = kinds.at(name);
      if (amount <= 0) return;
      n.of.emplace_back(k, amount);
      if (k != 0 && allowed_load_[k] > 0) n.share = std::max(n.share, double(amount) / allowed_load_[k]);
    };
    for (auto const& [name, amount] : s->requests)
      if (name != pod_slots) add(name, amount);
    if (n.share <= 0) n.share = 1.0 / std::max(1, nodes_);
    add(pod_slots, 1000);
    needs_.push_back(std::move(n));
  }
  for (auto const& [name, k] : kinds)
    allowed_load_[k] =
        detail::has_headroom(name) ? allowed_load_[k] * max_load : std::numeric_limits<double>::max();

  for (pod const& p : view.pods) {
    auto const at = node_by_name.find(p.node);
    if (p.node.empty() || at == node_by_name.end()) continue;
    std::size_t const row = std::size_t(at->second) * kinds_;
    auto const count = [&](std::uint32_t k, std::int64_t amount) {
      free_[row + k] -= amount;
      if (p.leaving)
        leaving_[row + k] += amount;
      else if (view.nodes[std::size_t(at->second)].schedulable)
        taken_[k] += double(amount);
    };
    for (auto const& [name, amount] : p.shape->requests)
      if (auto const k = kinds.find(name); name != pod_slots && k != kinds.end()) count(k->second, amount);
    count(0, 1000);
  }
  first_.assign(distinct.size(), 0);
}

EDL_INLINE bool fitting::fits(int shape, int node, bool leaving) const {
  if (!allowed(shape, node)) return false;
  std::size_t const row = std::size_t(node) * kinds_;
  for (auto const& [k, amount] : needs_[std::size_t(shape)].of)
    if (free_[row + k] + (leaving ? leaving_[row + k] : 0) < amount) return false;
  return true;
}

EDL_INLINE std::size_t fitting::how_many(int shape, int node, std::size_t most) const {
  if (!allowed(shape, node)) return 0;
  for (auto const& [k, amount] : needs_[std::size_t(shape)].of)
    most = std::min(most,
                    std::size_t(std::max<std::int64_t>(0, free_[std::size_t(node) * kinds_ + k] / amount)));
  return most;
}

EDL_INLINE bool fitting::fits_without(int shape, int node, std::vector<int> const& gone, bool leaving) const {
  if (!allowed(shape, node)) return false;
  std::size_t const row = std::size_t(node) * kinds_;
  for (auto const& [k, amount] : needs_[std::size_t(shape)].of) {
    std::int64_t room = free_[row + k] + (leaving ? leaving_[row + k] : 0);
    for (int g : gone)
      for (auto const& [of, more] : needs_[std::size_t(g)].of)
        if (of == k) room += more;
    if (room < amount) return false;
  }
  return true;
}

EDL_INLINE int fitting::first_fit(int shape) {
  int& at = first_[std::size_t(shape)];  // nothing before it has room: room that comes back moves it
  while (at < nodes_ && !fits(shape, at)) ++at;
  return at < nodes_ ? at : -1;
}

EDL_INLINE int fitting::first_fit_with_leaving(int shape) const {
  for (int n = 0; n < nodes_; ++n)
    if (fits(shape, n, true)) return n;
  return -1;
}

EDL_INLINE void fitting::note_taken(need const& n, double sign) {
  for (auto const& [k, amount] : n.of) taken_[k] += sign * double(amount);
}

EDL_INLINE void fitting::take(int shape, int node) {
  for (auto const& [k, amount] : needs_[std::size_t(shape)].of)
    free_[std::size_t(node) * kinds_ + k] -= amount;
  note_taken(needs_[std::size_t(shape)], 1);
}

EDL_INLINE void fitting::give_back(int shape, int node) {
  for (auto const& [k, amount] : needs_[std::size_t(shape)].of)
    free_[std::size_t(node) * kinds_ + k] += amount;
  note_taken(needs_[std::size_t(shape)], -1);
  for (int& at : first_) at = std::min(at, node);
}

EDL_INLINE bool fitting::within_load(int shape, std::vector<int> const& gone) const {
  for (auto const& [k, amount] : needs_[std::size_t(shape)].of) {
    double after = taken_[k] + double(amount);
    for (int g : gone)
      for (auto const& [of, less] : needs_[std::size_t(g)].of)
        if (of == k) after -= double(less);
    if (after > allowed_load_[k] * (1 + 1e-12)) return false;
  }
  return true;
}

EDL_INLINE bool fitting::within_load(int shape, std::size_t n) const {
  for (auto const& [k, amount] : needs_[std::size_t(shape)].of)
    if (taken_[k] + double(n) * double(amount) > allowed_load_[k] * (1 + 1e-12)) return false;
  return true;
}

EDL_INLINE bool fitting::overloaded(int shape) const {
  for (auto const& [k, amount] : needs_[std::size_t(shape)].of)
    if (taken_[k] > allowed_load_[k] * (1 + 1e-12)) return true;
  return false;
}

}  // namespace edl::controller

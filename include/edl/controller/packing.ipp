// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "edl/controller/packing.hpp"
#include "edl/core/inline.hpp"

namespace edl::controller::detail {

/// Whether a job has had its size for so long that a standstill for the sake of fewer nodes is a hundredth
/// of that time (at the default change_share).
inline bool settled(allocation const& a, job_state const& s) {
  return s.in && (!s.of->last_resized ||
                  a.view.now - *s.of->last_resized > 10 * s.of->change_cost / a.options.change_share);
}

/// Of the first nodes with room, the one with the least that has enough for all that are left, or else with
/// the most.
inline int best_node(allocation& a, int shape, std::size_t wanted) {
  constexpr int looked_at = 64;
  int best = -1, found = 0;
  std::size_t best_has = 0;
  for (int node = a.room.first_fit(shape); node >= 0 && node < a.room.nodes() && found < looked_at; ++node) {
    std::size_t const has = a.room.how_many(shape, node, wanted + 1);
    if (has == 0) continue;
    ++found;
    bool const enough = has >= wanted, had_enough = best_has >= wanted;
    if (best < 0 || (enough && (!had_enough || has < best_has)) || (!enough && !had_enough && has > best_has))
      best = node, best_has = has;
    if (best_has == wanted) break;
  }
  return best;
}

inline bool regroup(allocation& a, bool move) {
  struct group {
    int job;
    std::vector<worker> old;
  };
  std::vector<group> groups;
  bool any_changes = false;
  for (int j : a.order) {
    job_state const& s = a.at(j);
    bool const changes =
        s.count() != int(s.before.size()) ||
        std::any_of(s.workers.begin(), s.workers.end(), [](worker const& w) { return w.pod < 0; });
    any_changes = any_changes || changes;
    if (!changes && !(move && settled(a, s))) continue;
    group g{j, {}};
    for (worker const& w : s.workers)
      if (!w.soon && w.shape == s.shape && (w.pod < 0 || move)) g.old.push_back(w);
    if (!g.old.empty()) groups.push_back(std::move(g));
  }
  if (groups.empty() || !any_changes) return false;
  auto const spread = [&] {
    std::size_t all = 0;
    for (group const& g : groups) {
      std::set<int> on;
      for (worker const& w : a.at(g.job).workers) on.insert(w.node);
      all += on.size();
    }
    return all;
  };
  std::size_t const before = spread();
  for (group const& g : groups)
    for (worker const& w : g.old) a.remove(g.job, w);
  std::stable_sort(groups.begin(), groups.end(),
                   [](group const& x, group const& y) { return x.old.size() > y.old.size(); });
  a.steps.clear();
  bool fits = true;
  for (group const& g : groups) {
    std::size_t left = g.old.size();
    int const shape = g.old[0].shape;
    std::vector<int> own;
    for (worker const& w : a.at(g.job).workers) own.push_back(w.node);
    auto const fill = [&](int node) {
      for (; left > 0 && a.room.fits(shape, node); --left) a.place(g.job, node, shape);
    };
    for (int node : own) fill(node);
    for (int node = 0; left > 0 && node >= 0;)
      if ((node = best_node(a, shape, left)) >= 0) fill(node);
    fits = left == 0;
    if (!fits) break;
  }
  if (!fits || (move && spread() >= before)) {
    a.take_back();
    for (group const& g : groups)
      for (worker const& w : g.old) a.place(g.job, w);
    return false;
  }
  // A worker that runs where one is to be stays.
  for (group& g : groups)
    for (worker& w : a.at(g.job).workers) {
      if (w.pod >= 0) continue;
      auto const same = std::find_if(g.old.begin(), g.old.end(),
                                     [&](worker const& o) { return o.pod >= 0 && o.node == w.node; });
      if (same == g.old.end()) continue;
      w.pod = same->pod;
      g.old.erase(same);
    }
  return true;
}

EDL_INLINE bool repack(allocation& a) { return (a.options.move && regroup(a, true)) || regroup(a, false); }

}  // namespace edl::controller::detail

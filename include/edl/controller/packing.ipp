// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "edl/controller/packing.hpp"
#include "edl/core/inline.hpp"

namespace edl::controller::detail {

/// Of the first nodes with room, the one with the least that has enough for all that are wanted, or else with
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

EDL_INLINE bool put_together(allocation& a) {
  struct group {
    int job;
    std::vector<worker> fresh;
  };
  std::vector<group> groups;
  for (int j : a.order) {
    job_state const& s = a.at(j);
    group g{j, {}};
    for (worker const& w : s.workers)
      if (w.pod < 0 && !w.soon && w.shape == s.shape) g.fresh.push_back(w);
    if (!g.fresh.empty()) groups.push_back(std::move(g));
  }
  for (group const& g : groups)
    for (worker const& w : g.fresh) a.remove(g.job, w);
  std::stable_sort(groups.begin(), groups.end(),
                   [](group const& x, group const& y) { return x.fresh.size() > y.fresh.size(); });
  a.steps.clear();
  bool fits = true, other = false;
  for (group const& g : groups) {
    std::size_t left = g.fresh.size();
    int const shape = g.fresh[0].shape;
    std::vector<int> own;
    for (worker const& w : a.at(g.job).workers) own.push_back(w.node);
    auto const fill = [&](int node) {
      for (; left > 0 && a.room.fits(shape, node); --left) {
        a.place(g.job, node, shape);
        other = other || node != g.fresh[g.fresh.size() - left].node;
      }
    };
    for (int node : own) fill(node);
    for (int node = 0; left > 0 && node >= 0;)
      if ((node = best_node(a, shape, left)) >= 0) fill(node);
    fits = left == 0;
    if (!fits) break;
  }
  if (fits) return other;
  a.take_back();
  for (group const& g : groups)
    for (worker const& w : g.fresh) a.place(g.job, w);
  return false;
}

/// Whether a standstill is worth fewer nodes: its size changes anyway, or it had the same for so long that
/// the standstill is a hundredth of that time (at the default change_share).
inline bool may_move(allocation const& a, job_state const& s) {
  if (!s.in || s.count() < 2 || !s.movers.empty()) return false;
  bool changes = s.count() != int(s.before.size());
  for (worker const& w : s.workers) {
    if (w.old >= 0) return false;
    changes = changes || w.pod < 0;
  }
  return changes || !s.of->last_resized ||
         a.view.now - *s.of->last_resized > 10 * s.of->change_cost / a.options.change_share;
}

/// Moves the job's workers from some of its nodes to one other, which is of its own or has room for all of
/// them. True when that could be done: each time it needs fewer nodes.
inline bool move_some(allocation& a, job_state& s) {
  std::map<int, std::vector<std::size_t>> on;  // by node: its workers
  for (std::size_t i = 0; i < s.workers.size(); ++i) on[s.workers[i].node].push_back(i);
  std::vector<int> nodes;
  for (auto const& [node, workers] : on) nodes.push_back(node);
  std::stable_sort(nodes.begin(), nodes.end(), [&](int x, int y) { return on[x].size() < on[y].size(); });
  auto const movable = [&](int node) {
    return std::all_of(on[node].begin(), on[node].end(), [&](std::size_t i) {
      worker const& w = s.workers[i];
      return w.pod >= 0 && w.old < 0 && w.shape == s.shape;
    });
  };
  auto const move = [&](int from, int to) {
    for (std::size_t i : on[from]) {
      a.room.take(s.shape, to);
      s.workers[i] = {to, s.shape, -1, false, s.workers[i].pod};
    }
  };
  auto const has_room = [&](int node, std::size_t n) {
    return a.room.how_many(s.shape, node, n) >= n && a.room.within_load(s.shape, n);
  };
  for (int from : nodes) {
    if (!movable(from)) continue;
    for (auto to = nodes.rbegin(); to != nodes.rend(); ++to)
      if (*to != from && has_room(*to, on[from].size())) return move(from, *to), true;
  }
  std::size_t most = 0, sum = 0, count = 0;
  for (; most < nodes.size() && movable(nodes[most]); ++most) sum += on[nodes[most]].size();
  for (count = most; count >= 2; sum -= on[nodes[--count]].size()) {
    int const to = best_node(a, s.shape, sum);
    if (to < 0 || on.count(to) > 0 || !has_room(to, sum)) continue;
    for (std::size_t n = 0; n < count; ++n) move(nodes[n], to);
    return true;
  }
  return false;
}

EDL_INLINE void move_together(allocation& a) {
  for (int j : a.order) {
    job_state& s = a.at(j);
    if (!may_move(a, s)) continue;
    while (move_some(a, s)) {
    }
  }
}

}  // namespace edl::controller::detail

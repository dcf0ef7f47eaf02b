// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "edl/cluster/autoscaler/packing.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::autoscaler::detail {

/// Of the first nodes with room, the one with the least room that suffices for all wanted workers, otherwise
/// the one with the most. -1: none of the examined nodes has room.
inline int best_node(allocation& a, int shape, std::size_t wanted) {
  constexpr int with_room = 64, looked_at = 1024;
  int const first = a.room.first_fit(shape), end = std::min(a.room.nodes(), first + looked_at);
  int best = -1, found = 0;
  std::size_t best_has = 0;
  for (int node = first; node >= 0 && node < end && found < with_room; ++node) {
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
    while (left > 0) {
      int const node = best_node(a, shape, left);
      if (node < 0) break;
      fill(node);
    }
    fits = left == 0;
    if (!fits) break;
  }
  if (fits) return other;
  a.take_back();
  for (group const& g : groups)
    for (worker const& w : g.fresh) a.place(g.job, w);
  return false;
}

/// Whether a standstill is acceptable for using fewer nodes: the job's size changes anyway, or has been the
/// same for so long that the standstill is a hundredth of that time (at the default change_share).
inline bool may_move(allocation const& a, job_state const& s) {
  if (!s.in || s.count() < 2 || !s.movers.empty()) return false;
  bool changes = s.count() != int(s.before.size());
  for (worker const& w : s.workers) {
    if (w.old >= 0) return false;
    changes = changes || w.pod < 0;
  }
  return changes || !s.job->last_resized ||
         a.view.now - *s.job->last_resized > 10 * s.job->change_cost / a.options.change_share;
}

/// A job's workers on one node, as indices.
struct company {
  int node;
  std::vector<std::size_t> workers{};
};

/// The job's nodes in ascending order of its workers there.
inline std::vector<company> companies(job_state const& s) {
  std::vector<std::pair<int, std::size_t>> all;
  for (std::size_t i = 0; i < s.workers.size(); ++i) all.emplace_back(s.workers[i].node, i);
  std::sort(all.begin(), all.end());
  std::vector<company> on;
  for (auto const& [node, i] : all) {
    if (on.empty() || on.back().node != node) on.push_back({node});
    on.back().workers.push_back(i);
  }
  std::stable_sort(on.begin(), on.end(),
                   [](company const& x, company const& y) { return x.workers.size() < y.workers.size(); });
  return on;
}

/// Moves the workers of some of the job's nodes to another node, one of its own or one with room for all of
/// them. Returns true if it moved any; the job then needs fewer nodes.
inline bool move_some(allocation& a, job_state& s, std::vector<company> const& on) {
  auto const movable = [&](company const& c) {
    return std::all_of(c.workers.begin(), c.workers.end(), [&](std::size_t i) {
      worker const& w = s.workers[i];
      return w.pod >= 0 && w.old < 0 && w.shape == s.shape;
    });
  };
  auto const move = [&](company const& from, int to) {
    for (std::size_t i : from.workers) {
      a.room.take(s.shape, to);
      s.workers[i] = {to, s.shape, -1, false, s.workers[i].pod};
    }
  };
  std::vector<std::pair<int, std::size_t>> own;  // the job's nodes with more room
  std::size_t most_room = 0;
  for (auto c = on.rbegin(); c != on.rend(); ++c)
    if (std::size_t const has = a.room.how_many(s.shape, c->node, s.workers.size()); has > 0) {
      own.emplace_back(c->node, has);
      most_room = std::max(most_room, has);
    }
  for (company const& from : on) {
    if (from.workers.size() > most_room) break;
    if (!movable(from) || !a.room.within_load(s.shape, from.workers.size())) continue;
    for (auto const& [to, has] : own)
      if (to != from.node && has >= from.workers.size()) return move(from, to), true;
  }
  std::size_t many = 0, sum = 0;
  for (; many < on.size() && movable(on[many]); ++many) sum += on[many].workers.size();
  for (; many >= 2; sum -= on[--many].workers.size()) {
    int const to = best_node(a, s.shape, sum);
    if (to < 0) break;
    std::size_t const has = a.room.how_many(s.shape, to, sum);
    while (many >= 2 && has < sum) sum -= on[--many].workers.size();
    if (many < 2) break;
    bool const is_own = std::any_of(on.begin(), on.end(), [&](company const& c) { return c.node == to; });
    if (is_own || !a.room.within_load(s.shape, sum)) continue;
    for (std::size_t n = 0; n < many; ++n) move(on[n], to);
    return true;
  }
  return false;
}

EDL_INLINE void move_together(allocation& a) {
  for (int j : a.order) {
    job_state& s = a.at(j);
    if (!may_move(a, s)) continue;
    std::vector<company> on = companies(s);
    std::size_t const before = on.size();
    if (before < 2) continue;
    std::vector<worker> const old = s.workers;
    while (on.size() > 1 && move_some(a, s, on)) {
      std::size_t const had = on.size();
      on = companies(s);
      invariant(on.size() < had, "each move needs fewer nodes, so that moving ends");
    }
    // Saving few nodes, such as one in ten, is not worth a standstill.
    if (4 * on.size() <= 3 * before) continue;
    for (worker const& w : s.workers)
      if (w.pod < 0 && w.old >= 0) a.room.give_back(w.shape, w.node);
    s.workers = old;
  }
}

}  // namespace edl::autoscaler::detail

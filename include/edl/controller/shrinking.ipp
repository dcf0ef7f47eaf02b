// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "edl/controller/shrinking.hpp"
#include "edl/core/inline.hpp"

namespace edl::controller::detail {

/// Workers on this node whose leaving makes room for the shape, each deserving less than `than`; none of
/// them is below its job's min after it. Empty when there is no such choice.
inline std::vector<std::pair<int, worker>> victims_on(allocation& a, int node, int shape, claim than,
                                                      bool spare, int self) {
  std::vector<int> here = a.on_node(node);
  std::sort(here.begin(), here.end());
  std::vector<std::tuple<claim, int, worker>> can;
  for (std::size_t i = 0; i < here.size();) {
    int const j = here[i];
    job_state const& s = a.at(j);
    std::size_t end = i;
    while (end < here.size() && here[end] == j) ++end;
    if (!(spare && a.frozen(s)) && j != self) {
      std::vector<worker> mine;
      for (worker const& w : s.workers)
        if (w.node == node) mine.push_back(w);
      std::stable_sort(mine.begin(), mine.end(), [](auto& x, auto& y) { return (x.pod < 0) < (y.pod < 0); });
      int n = s.count();
      for (; i < end && n > s.who.min; ++i, --n) {
        claim const has = a.next(s, n - 1);
        if (!(has < than)) break;
        can.emplace_back(has, j, mine.back());
        mine.pop_back();
      }
    }
    i = end;
  }
  std::stable_sort(can.begin(), can.end(), [](auto& x, auto& y) { return std::get<0>(x) < std::get<0>(y); });
  std::vector<std::pair<int, worker>> chosen;
  std::vector<int> gone;
  for (auto const& [has, j, w] : can) {
    chosen.emplace_back(j, w);
    gone.push_back(w.shape);
    if (a.room.fits_without(shape, node, gone, !spare) && (!spare || a.room.within_load(shape, gone)))
      return chosen;
  }
  return {};
}

EDL_INLINE int make_room(allocation& a, int shape, claim than, bool spare, cause why, int self) {
  if (a.removable().empty() || !(a.removable().begin()->first < than)) return -1;
  auto const known = a.failed.find({shape, spare});
  if (known != a.failed.end() && !(known->second < than)) return -1;
  std::vector<char> seen(a.view.nodes.size());
  for (auto const& [has, j] : a.removable()) {
    if (!(has < than)) break;
    job_state const& s = a.at(j);
    if (spare && a.frozen(s)) continue;
    for (auto w = s.workers.rbegin(); w != s.workers.rend(); ++w) {
      int const node = w->node;
      if (seen[std::size_t(node)] || !a.room.allowed(shape, node)) continue;
      seen[std::size_t(node)] = 1;
      auto const chosen = victims_on(a, node, shape, than, spare, self);
      if (chosen.empty()) continue;
      for (auto const& [who, what] : chosen) a.remove(who, what, why);
      return node;
    }
  }
  if (self < 0 || a.at(self).count() <= a.at(self).who.min) a.failed[{shape, spare}] = than;
  return -1;
}

EDL_INLINE int find_room(allocation& a, int shape, cause why) {
  int node = a.room.first_fit(shape);
  if (node < 0) node = a.room.first_fit_with_leaving(shape);
  return node >= 0 ? node : make_room(a, shape, everything, false, why);
}

EDL_INLINE bool make_load(allocation& a, int shape, claim than, int self) {
  if (a.room.first_fit(shape) < 0) return false;
  std::vector<int> gone, from;
  for (auto const& [has, j] : a.removable()) {
    if (!(has < than)) return false;
    job_state const& s = a.at(j);
    if (a.frozen(s) || j == self) continue;
    from.push_back(j);
    gone.push_back(s.workers.back().shape);
    if (a.room.within_load(shape, gone)) break;
  }
  if (!a.room.within_load(shape, gone)) return false;
  for (int j : from) a.remove(j, a.at(j).workers.back(), {cause::room_for_job, self});
  return true;
}

EDL_INLINE bool trim(allocation& a) {
  bool any = false;
  for (bool again = true; again;) {
    again = false;
    for (auto const& [has, j] : a.removable()) {
      job_state& s = a.at(j);
      if (!a.room.overloaded(s.workers.back().shape)) continue;
      a.remove(j, s.workers.back(), {cause::headroom});
      any = again = true;
      break;
    }
  }
  return any;
}

}  // namespace edl::controller::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "edl/cluster/autoscaler/shrinking.hpp"
#include "edl/core/inline.hpp"

namespace edl::autoscaler::detail {

/// The goal of a search: room for one of the shape, taken from workers that deserve less than `than`.
struct wanted_room {
  int shape;
  claim than;
  bool spare;
  std::vector<char> gives{};  ///< by job: whether it could give up a worker
};

/// Whether the node would have the room if every worker of jobs that could give one left. A fast test that
/// excludes nodes.
inline bool could_do(allocation const& a, wanted_room const& wanted, int node,
                     std::vector<std::int64_t>& shortfall) {
  if (!a.room.missing(wanted.shape, node, !wanted.spare, shortfall)) return false;
  for (tenant const& t : a.on_node(node))
    if (wanted.gives[std::size_t(t.job)]) a.room.cover(wanted.shape, t.shape, shortfall);
  return std::all_of(shortfall.begin(), shortfall.end(), [](std::int64_t m) { return m <= 0; });
}

/// Workers on this node whose removal makes the room, those that deserve least first, without pushing any job
/// below its min. Empty if there is no such choice.
inline std::vector<std::pair<int, worker>> victims_on(allocation& a, wanted_room const& wanted, int node) {
  std::vector<int> here;
  for (tenant const& t : a.on_node(node))
    if (wanted.gives[std::size_t(t.job)]) here.push_back(t.job);
  std::sort(here.begin(), here.end());
  here.erase(std::unique(here.begin(), here.end()), here.end());
  std::vector<std::tuple<claim, int, worker>> can;
  for (int j : here) {
    job_state const& s = a.at(j);
    std::vector<worker> mine;
    for (worker const& w : s.workers)
      if (w.node == node) mine.push_back(w);
    std::stable_sort(mine.begin(), mine.end(), [](auto& x, auto& y) { return (x.pod < 0) < (y.pod < 0); });
    for (int n = s.count(); !mine.empty() && n > s.who.min; --n) {
      claim const has = a.next(s, n - 1);
      if (!(has < wanted.than)) break;
      can.emplace_back(has, j, mine.back());
      mine.pop_back();
    }
  }
  std::stable_sort(can.begin(), can.end(), [](auto& x, auto& y) { return std::get<0>(x) < std::get<0>(y); });
  std::vector<std::pair<int, worker>> chosen;
  std::vector<int> gone;
  for (auto const& [has, j, w] : can) {
    chosen.emplace_back(j, w);
    gone.push_back(w.shape);
    if (a.room.fits_without(wanted.shape, node, gone, !wanted.spare) &&
        (!wanted.spare || a.room.within_load(wanted.shape, gone)))
      return chosen;
  }
  return {};
}

EDL_INLINE int make_room(allocation& a, int shape, claim than, bool spare, cause why, int self) {
  auto const& removable = a.removable();
  if (removable.empty() || !(removable.begin()->first < than)) return -1;
  auto const known = a.failed.find({shape, spare});
  if (known != a.failed.end() && !(known->second < than)) return -1;
  wanted_room wanted{shape, than, spare, std::vector<char>(a.jobs.size())};
  std::vector<int> givers;
  for (auto const& [has, j] : removable) {
    if (!(has < than)) break;
    if ((spare && a.frozen(a.at(j))) || j == self) continue;
    givers.push_back(j);
    wanted.gives[std::size_t(j)] = 1;
  }
  std::vector<char> seen(a.view.nodes.size());
  std::vector<std::int64_t> shortfall;
  for (int j : givers) {
    auto const& workers = a.at(j).workers;
    for (auto w = workers.rbegin(); w != workers.rend(); ++w) {
      int const node = w->node;
      if (std::exchange(seen[std::size_t(node)], 1) || !could_do(a, wanted, node, shortfall)) continue;
      auto const chosen = victims_on(a, wanted, node);
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

}  // namespace edl::autoscaler::detail

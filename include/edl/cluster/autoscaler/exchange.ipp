// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <queue>
#include <tuple>
#include <vector>

#include "edl/cluster/autoscaler/exchange.hpp"
#include "edl/cluster/autoscaler/shrinking.hpp"
#include "edl/core/inline.hpp"

namespace edl::autoscaler::detail {

EDL_INLINE bool exchange(allocation& a) {
  bool any = false;
  for (bool again = true; again;) {
    again = false;
    std::priority_queue<std::tuple<claim, int, int>> asking;  // on equal claims the older job wins
    std::vector<char> asks(a.jobs.size());
    auto const ask = [&](int j) {
      job_state const& s = a.at(j);
      if (!s.in || s.count() < s.who.min || s.count() >= s.who.most || a.frozen(s) || asks[std::size_t(j)])
        return;
      claim const wants = a.next(s, s.count());
      if (!(wants.worth > -std::numeric_limits<double>::infinity())) return;
      asks[std::size_t(j)] = 1;
      asking.push({wants, -a.rank[std::size_t(j)], j});
    };
    for (int j : a.order) ask(j);
    while (!asking.empty()) {
      auto const [wants, rank, j] = asking.top();
      asking.pop();
      asks[std::size_t(j)] = 0;
      job_state& s = a.at(j);
      if (s.count() >= s.who.most || !(a.next(s, s.count()) == wants)) {
        ask(j);
        continue;
      }
      a.steps.clear();
      int node = -1;
      bool const has_load = a.room.within_load(s.shape) || make_load(a, s.shape, wants, j);
      if (has_load) {
        if (!s.workers.empty() && a.room.fits(s.shape, s.workers.back().node)) node = s.workers.back().node;
        if (node < 0) node = a.room.first_fit(s.shape);
      }
      if (node < 0) node = make_room(a, s.shape, wants, true, {cause::room_for_job, j}, j);
      if (node < 0) continue;
      a.place(j, node, s.shape);
      any = again = true;
      for (step const& t : a.steps)
        if (!t.placed) ask(t.job);
      ask(j);
    }
  }
  return any;
}

}  // namespace edl::autoscaler::detail

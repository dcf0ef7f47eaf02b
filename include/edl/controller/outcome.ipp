// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "edl/controller/outcome.hpp"
#include "edl/core/inline.hpp"

namespace edl::controller::detail {

inline std::string reason(allocation& a, job_state const& s, int n) {
  if (s.of->suspended) return "suspended by its owner";
  if (!s.in) return s.why;
  std::string const has = fmt::format("{} of {} to {}: ", n, s.of->min, s.of->max);
  if (s.count() < s.who.min) return has + "no room for all of its min, even if all others shrink to theirs";
  if (n >= s.of->max) return has + "all that it may have";
  if (n >= s.who.most) return has + "more workers were measured to add nothing";
  if (!s.why.empty() && s.why != "let in") return has + s.why;
  if (a.frozen(s))
    return has + fmt::format("resized {:.3g} s ago, and a change costs {:.2g} s",
                             a.view.now - *s.of->last_resized, s.of->change_cost);
  if (!a.room.within_load(s.shape)) return has + "the rest is headroom";
  return has + fmt::format("what is left goes to who deserves more ({})", a.options.who.name);
}

EDL_INLINE plan outcome_of(allocation& a) {
  plan p;
  p.reservations = std::move(a.reservations);
  p.again_at = a.again_at;
  for (int o : a.others) p.hopeless.push_back(a.view.pods[std::size_t(o)].name);
  for (job_state& s : a.jobs) {
    job_plan out{.uid = s.of->uid, .admitted = s.in};
    std::vector<int> waiting = s.waiting;
    for (worker const& w : s.workers) {
      if (w.pod >= 0) continue;
      // A pod that waits already is as good as a new one.
      if (!waiting.empty())
        waiting.erase(waiting.begin());
      else
        out.nodes.push_back(a.view.nodes[std::size_t(w.node)].name);
    }
    out.workers = s.in ? std::max(s.count(), s.who.min) : 0;
    int have = s.count();
    for (int w : waiting)
      if (have < out.workers)
        ++have;  // below min it goes on to wait
      else
        out.leaving.push_back(a.view.pods[std::size_t(w)].name);
    out.reason = reason(a, s, out.workers);
    for (int node : s.fixed_nodes)
      out.fixed_nodes.push_back(node < 0 ? "" : a.view.nodes[std::size_t(node)].name);
    p.jobs.push_back(std::move(out));
  }
  std::unordered_map<std::string, std::size_t> by_uid;
  std::vector<std::set<int>> staying(a.jobs.size());
  for (std::size_t i = 0; i < a.jobs.size(); ++i) {
    by_uid.emplace(a.jobs[i].of->uid, i);
    for (worker const& w : a.jobs[i].workers) staying[i].insert(w.pod);
  }
  for (std::size_t i = 0; i < a.view.pods.size(); ++i) {
    pod const& w = a.view.pods[i];
    if (w.job.empty() || w.leaving || w.node.empty()) continue;
    auto const at = by_uid.find(w.job);
    if (at != by_uid.end() && a.node_called(w.node) >= 0 && staying[at->second].count(int(i)) == 0)
      p.jobs[at->second].leaving.push_back(w.name);
  }
  return p;
}

}  // namespace edl::controller::detail

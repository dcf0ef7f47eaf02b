// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "edl/cluster/autoscaler/outcome.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::autoscaler::detail {

/// Describes what a job whose pods have no room lacks. `spare`: workers of other jobs above their min.
inline std::string what_is_missing(allocation const& a, job_state const& s, std::map<int, int> const& spare) {
  std::map<int, int> wanted{{s.shape, s.who.min}};
  for (pod_shape const& f : s.job->fixed) ++wanted[a.room.shape(f)];
  for (auto const& [shape, times] : wanted)
    if (times > 0 && !a.room.allowed_somewhere(shape))
      return fmt::format("no node takes {} by its labels and taints",
                         shape == s.shape ? "a worker" : "its master or servers");
  std::string const lack = a.room.shortage(wanted, spare);
  return lack.empty() ? "no node has enough of it in one piece" : "they ask for " + lack;
}

inline std::string why_it_waits(allocation const& a, job_state const& s, std::map<int, int> const& spare) {
  if (s.why.reason == cause::behind_another) return "it waits behind a job that has waited longer";
  return fmt::format("it waits: its {} pods have no room, even if all others shrink to their min: {}",
                     s.who.min + int(s.job->fixed.size()), what_is_missing(a, s, spare));
}

/// Workers above the min of their jobs, by shape.
inline std::map<int, int> spare_workers(allocation const& a) {
  std::map<int, int> spare;
  for (job_state const& s : a.jobs)
    if (s.in && s.count() > s.who.min) spare[s.shape] += s.count() - s.who.min;
  return spare;
}

/// Why the job has fewer workers than it had.
inline std::string why_it_shrank(allocation const& a, job_state const& s) {
  switch (s.why.reason) {
    case cause::room_for_job:
      return "it made room for " + a.at(s.why.subject).job->name;
    case cause::room_for_pod:
      return "it made room for pod " + a.view.pods[std::size_t(s.why.subject)].name;
    default:
      return fmt::format("it leaves the headroom of {:.3g} % to others", 100 * (1 - a.options.max_load));
  }
}

inline bool has_spare(job_state const& s) { return s.in && s.count() > s.who.min; }

/// `giving`: jobs that have workers above their min.
inline std::string reason(allocation& a, job_state const& s, int n, std::map<int, int> const& spare,
                          std::ptrdiff_t giving) {
  job_view const& j = *s.job;
  if (j.suspended) return j.why_suspended.empty() ? "its owner suspended it" : j.why_suspended;
  if (!s.in) return why_it_waits(a, s, spare);
  if (j.manual) {
    std::string const has = fmt::format("{} of {}: ", s.count(), n);
    return s.count() < n ? has + "its owner set this size, and no more room is left"
                         : has + "its owner set this size";
  }
  std::string const has = fmt::format("{} of {} to {}: ", n, j.min, j.max);
  if (s.count() < s.who.min)
    return has + fmt::format("only {} have room, even if all others shrink to their min", s.count());
  if (n >= j.max) return has + "it has all that it may have";
  if (n >= s.who.most) return has + "more workers were measured to add nothing";
  if (s.why.reason != cause::none && n < int(s.before.size())) return has + why_it_shrank(a, s);
  if (j.admitted && n < j.workers)
    return has + fmt::format("{} gone, and no room is left for {}",
                             counted(j.workers - n, "worker is", "workers are"),
                             j.workers - n == 1 ? "another" : "others");
  if (a.frozen(s))
    return has + fmt::format("it was resized {:.3g} s ago, and a change costs it {:.2g} s",
                             a.view.now - *j.last_resized, j.change_cost);
  if (a.room.first_fit(s.shape) >= 0 && !a.room.within_load(s.shape))
    return has + "the rest is headroom for services";
  if (giving == has_spare(s)) return has + "no room is left for more";
  return has + fmt::format("the rest goes to jobs with a stronger claim ({})", a.options.who.name);
}

EDL_INLINE plan outcome_of(allocation& a) {
  plan p;
  p.reservations = std::move(a.reservations);
  p.again_at = a.again_at;
  for (int o : a.given_up) p.hopeless.push_back(a.view.pods[std::size_t(o)].name);
  for (int o : a.others) p.hopeless.push_back(a.view.pods[std::size_t(o)].name);
  auto const spare = spare_workers(a);
  auto const giving = std::count_if(a.jobs.begin(), a.jobs.end(), has_spare);
  for (job_state& s : a.jobs) {
    job_plan out{.uid = s.job->uid, .admitted = s.in, .suspended = s.job->suspended};
    std::vector<int> waiting = s.waiting;
    for (worker const& w : s.workers) {
      if (w.pod >= 0) continue;
      if (w.old >= 0) {
        out.moves.push_back({a.view.pods[std::size_t(w.old)].name, a.view.nodes[std::size_t(w.node)].name});
        continue;
      }
      // Use a waiting pod before creating a new one.
      if (!waiting.empty())
        waiting.erase(waiting.begin());
      else
        out.nodes.push_back(a.view.nodes[std::size_t(w.node)].name);
    }
    invariant(s.in || s.count() == 0, "a job that is not let in has no workers");
    out.workers = s.in ? std::max(s.count(), s.who.min) : 0;
    int have = s.count();
    for (int w : s.unmoved) out.leaving.push_back(a.view.pods[std::size_t(w)].name);
    for (int w : s.movers) {
      std::string const& old = a.view.pods[std::size_t(w)].replaces;
      bool const wanted = std::any_of(s.workers.begin(), s.workers.end(), [&](worker const& o) {
        return o.pod >= 0 && a.view.pods[std::size_t(o.pod)].name == old;
      });
      if (!wanted) out.leaving.push_back(a.view.pods[std::size_t(w)].name);
    }
    for (int w : waiting)
      if (have < out.workers)
        ++have;  // below min the pod keeps waiting
      else
        out.leaving.push_back(a.view.pods[std::size_t(w)].name);
    out.reason = reason(a, s, out.workers, spare, giving);
    for (int node : s.fixed_nodes)
      out.fixed_nodes.push_back(node < 0 ? "" : a.view.nodes[std::size_t(node)].name);
    p.jobs.push_back(std::move(out));
  }
  invariant(p.jobs.size() == a.view.jobs.size(), "a plan has an entry for each job");
  // Workers that no job's list contains any more leave.
  std::vector<char> staying(a.view.pods.size());
  for (job_state const& s : a.jobs)
    for (worker const& w : s.workers)
      for (int pod : {w.pod, w.old})
        if (pod >= 0) staying[std::size_t(pod)] = 1;
  for (std::size_t i = 0; i < a.jobs.size(); ++i)
    for (worker const& w : a.jobs[i].before)
      for (int pod : {w.pod, w.old})
        if (pod >= 0 && !staying[std::size_t(pod)])
          p.jobs[i].leaving.push_back(a.view.pods[std::size_t(pod)].name);
  return p;
}

}  // namespace edl::autoscaler::detail

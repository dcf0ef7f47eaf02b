// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "edl/cluster/autoscaler/allocation.hpp"
#include "edl/cluster/autoscaler/speed_curve.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::autoscaler::detail {

inline std::vector<pod_shape const*> shapes_of(cluster_view const& view) {
  std::vector<pod_shape const*> all;
  for (job_view const& j : view.jobs) {
    all.push_back(&j.worker);
    for (pod_shape const& f : j.fixed) all.push_back(&f);
  }
  return all;
}

/// A worker and its replacement count as one worker, on the replacement's node as soon as it has one.
inline void pair_up(cluster_view const& view, job_state& s) {
  auto const named = [&](std::string const& name) {
    return std::find_if(s.workers.begin(), s.workers.end(),
                        [&](worker const& w) { return view.pods[std::size_t(w.pod)].name == name; });
  };
  std::vector<int> taking_over;
  for (worker const& w : s.workers)
    if (!view.pods[std::size_t(w.pod)].replaces.empty()) taking_over.push_back(w.pod);
  for (int p : taking_over) {
    auto const old = named(view.pods[std::size_t(p)].replaces);
    if (old == s.workers.end() || old->pod == p || old->old >= 0) continue;
    int const from = old->pod;
    s.workers.erase(old);
    std::find_if(s.workers.begin(), s.workers.end(), [&](worker const& w) { return w.pod == p; })->old = from;
  }
  // The replacement of a worker that is gone is an ordinary worker.
  std::erase_if(s.movers, [&](int p) {
    bool const gone = named(view.pods[std::size_t(p)].replaces) == s.workers.end();
    if (gone) s.waiting.push_back(p);
    return gone;
  });
}

EDL_INLINE allocation::allocation(cluster_view const& v, plan_options const& o)
    : view(v), options(o), room(v, shapes_of(v), o.max_load) {
  read_jobs();
  read_pods();
  put_in_order();
  check();
}

EDL_INLINE void allocation::check() const {
  invariant(jobs.size() == view.jobs.size(), "an allocation has the jobs of its view");
  invariant(order.size() == jobs.size() && rank.size() == jobs.size(), "each job has its place in the order");
  invariant(listed_.size() == jobs.size() && noted_.size() == jobs.size(), "each job is noted by its number");
  invariant(on_node_.size() == view.nodes.size(), "each node has its tenants");
  invariant(removable_.size() <= jobs.size() && changed_.size() <= jobs.size(), "a job is listed once");
}

EDL_INLINE void allocation::read_jobs() {
  jobs.resize(view.jobs.size());
  listed_.resize(jobs.size());
  noted_.resize(jobs.size());
  std::vector<claimant*> sharing;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    job_state& s = jobs[i];
    job_view const& j = view.jobs[i];
    s.job = &j;
    s.shape = room.shape(j.worker);
    s.in = j.admitted && !j.suspended;
    speed_curve const speed(j.speeds);
    s.who.min = std::max(0, j.min);
    // The comparison involves two speeds, each with its error: the useful size is uncertain within twice
    // that.
    s.who.most = std::max(s.who.min, speed.useful(std::max(0, j.max), -2 * options.noise));
    s.grows_to = std::max(s.who.min, speed.useful(std::max(0, j.max), 2 * options.noise));
    if (j.manual)
      s.who.min = s.who.most = s.grows_to = std::clamp(*j.manual, s.who.min, std::max(s.who.min, j.max));
    s.who.margin = 4 * options.noise;  // differences of speeds have larger errors
    s.who.tried = speed.largest();
    s.who.gains = speed.gains(s.who.most);
    if (speed.known() && j.records_left) s.who.seconds_left = *j.records_left / speed.at(1);
    invariant(0 <= s.who.min && s.who.min <= s.who.most && s.who.min <= s.grows_to,
              "a job may have at least its min");
    s.who.share = room.dominant_share(s.shape);
    s.cooling = j.last_resized && view.now - *j.last_resized < j.change_cost / options.change_share;
    if (!j.suspended) sharing.push_back(&s.who);
  }
  share_fairly(sharing);
}

EDL_INLINE void allocation::read_pods() {
  std::unordered_map<std::string_view, int> by_uid;
  for (std::size_t i = 0; i < jobs.size(); ++i) by_uid.emplace(view.jobs[i].uid, int(i));
  on_node_.resize(view.nodes.size());
  for (std::size_t p = 0; p < view.pods.size(); ++p) {
    pod const& w = view.pods[p];
    auto const owner = w.job.empty() ? by_uid.end() : by_uid.find(w.job);
    if (owner != by_uid.end()) {
      if (!w.leaving) read_worker(owner->second, int(p));
    } else if (w.node.empty() && !w.leaving && !w.blocked && w.priority >= options.expendable) {
      others.push_back(int(p));
    }
  }
  for (job_state& s : jobs) pair_up(view, s);
  for (std::size_t j = 0; j < jobs.size(); ++j)
    for (worker const& w : jobs[j].workers) on_node_[std::size_t(w.node)].push_back({int(j), w.shape});
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    job_state& s = jobs[i];
    s.in = !s.job->suspended && (s.in || s.count() > 0);
    s.before = s.workers;
    s.who.there = s.count();
    // Within that uncertainty the job keeps its current size.
    s.who.most = std::clamp(s.count(), std::min(s.grows_to, s.who.most), s.who.most);
    // Removes useless workers, but not from a job that was resized recently, because measurements are noisy.
    bool const spare = s.cooling && !s.job->manual;
    int const most = s.job->suspended ? 0 : spare ? std::max(s.who.min, s.job->max) : s.who.most;
    note(int(i));
    while (s.count() > most) remove(int(i), s.workers.back());
    invariant(s.who.min <= s.who.most, "a job may have at least its min");
    invariant(s.in || s.count() == 0, "a job that is not let in has no workers");
  }
}

EDL_INLINE void allocation::read_worker(int j, int p) {
  pod const& w = view.pods[std::size_t(p)];
  int const node = room.node_of_pod(p);
  if (node < 0)
    (w.replaces.empty() ? at(j).waiting : at(j).movers).push_back(p);
  else
    at(j).workers.push_back({node, room.shape_of_pod(p), p});
}

EDL_INLINE void allocation::put_in_order() {
  order.resize(jobs.size());
  rank.resize(jobs.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    job_view const &x = *at(a).job, &y = *at(b).job;
    using key = std::tuple<int, double, std::string const&>;
    return key(-x.priority, x.submitted, x.uid) < key(-y.priority, y.submitted, y.uid);
  });
  for (std::size_t r = 0; r < order.size(); ++r) rank[std::size_t(order[r])] = int(r);
}

EDL_INLINE bool allocation::frozen(job_state const& s) {
  if (!s.cooling || s.count() == 0) return false;
  double const until = *s.job->last_resized + s.job->change_cost / options.change_share;
  again_at = std::min(again_at.value_or(until), until);
  return true;
}

EDL_INLINE void allocation::note(int j) {
  failed.clear();
  if (std::exchange(noted_[std::size_t(j)], 1) == 0) changed_.push_back(j);
}

EDL_INLINE std::set<std::pair<claim, int>> const& allocation::removable() {
  for (int j : changed_) {
    noted_[std::size_t(j)] = 0;
    job_state const& s = at(j);
    auto& listed = listed_[std::size_t(j)];
    std::optional<claim> const now =
        s.count() > s.who.min ? std::optional(next(s, s.count() - 1)) : std::nullopt;
    if (now == listed) continue;
    if (listed) removable_.erase({*listed, j});
    if (now) removable_.insert({*now, j});
    listed = now;
  }
  changed_.clear();
  check();
  return removable_;
}

EDL_INLINE void allocation::place(int j, worker w) {
  invariant(w.node >= 0 && w.node < room.nodes(), "a worker is placed on an existing node");
  room.take(w.shape, w.node);
  if (w.old >= 0) {
    room.take(room.shape_of_pod(w.old), room.node_of_pod(w.old));
  }
  at(j).workers.push_back(w);
  on_node_[std::size_t(w.node)].push_back({j, w.shape});
  note(j);
  steps.push_back({j, w, true});
}

EDL_INLINE void allocation::remove(int j, worker w) { remove(j, w, at(j).why); }

EDL_INLINE void allocation::remove(int j, worker w, cause why) {
  job_state& s = at(j);
  room.give_back(w.shape, w.node);
  if (w.old >= 0) {
    room.give_back(room.shape_of_pod(w.old), room.node_of_pod(w.old));
  }
  auto const found = std::find_if(s.workers.rbegin(), s.workers.rend(), [&](worker const& o) {
    return o.node == w.node && o.shape == w.shape && o.pod == w.pod;
  });
  invariant(found != s.workers.rend(), "a removed worker belongs to its job");
  s.workers.erase(std::next(found).base());
  auto& here = on_node_[std::size_t(w.node)];
  auto const tenant_of_it = std::find(here.begin(), here.end(), tenant{j, w.shape});
  invariant(tenant_of_it != here.end(), "a removed worker is on its node");
  here.erase(tenant_of_it);
  note(j);
  steps.push_back({j, w, false, std::exchange(s.why, why)});
}

EDL_INLINE void allocation::take_back() {
  while (!steps.empty()) {
    step const last = steps.back();
    steps.pop_back();
    if (last.job < 0) {
      room.give_back(last.moved.shape, last.moved.node);
      failed.clear();
      continue;
    }
    if (last.placed) {
      remove(last.job, last.moved);
    } else {
      place(last.job, last.moved);
      at(last.job).why = last.why;
    }
    invariant(!steps.empty() && steps.back().job == last.job && steps.back().placed != last.placed,
              "a step is taken back by its opposite");
    steps.pop_back();  // the undoing itself is not a step
  }
}

}  // namespace edl::autoscaler::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "edl/cluster/autoscaler/admission.hpp"
#include "edl/cluster/autoscaler/shrinking.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::autoscaler::detail {

inline void keep(allocation& a, int p, int node, double since) {
  pod const& w = a.view.pods[std::size_t(p)];
  a.room.take(a.room.shape_of_pod(p), node);
  a.reservations.push_back({w.name, a.view.nodes[std::size_t(node)].name, since});
}

EDL_INLINE void keep_promises(allocation& a) {
  for (job_state& s : a.jobs)
    std::erase_if(s.movers, [&](int p) {
      pod const& w = a.view.pods[std::size_t(p)];
      int const shape = a.room.shape_of_pod(p),
                node = w.nominated.empty() ? -1 : a.room.node_called(w.nominated);
      bool const can = node >= 0 && a.room.fits(shape, node, true);
      if (can)
        a.room.take(shape, node);
      else
        s.unmoved.push_back(p);
      return !can;
    });
  std::erase_if(a.others, [&](int p) {
    pod const& w = a.view.pods[std::size_t(p)];
    if (w.nominated.empty()) return false;
    if (a.view.now - w.nominated_at > a.options.promise) {
      a.given_up.push_back(p);
      return true;
    }
    int const node = a.room.node_called(w.nominated), shape = a.room.shape_of_pod(p);
    if (node < 0 || !a.room.fits(shape, node, true)) return false;
    // The promise's time begins once the room is free.
    keep(a, p, node, a.room.fits(shape, node) ? w.nominated_at : a.view.now);
    return true;
  });
  std::stable_sort(a.others.begin(), a.others.end(), [&](int x, int y) {
    auto const key = [&](int p) {
      pod const& w = a.view.pods[std::size_t(p)];
      return std::pair(w.priority, a.room.dominant_share(a.room.shape_of_pod(p)));
    };
    return key(x) > key(y);
  });
}

EDL_INLINE bool reserve(allocation& a) {
  auto const before = a.others.size();
  std::erase_if(a.others, [&](int p) {
    int const node = find_room(a, a.room.shape_of_pod(p), {cause::room_for_pod, p});
    if (node >= 0) keep(a, p, node, a.view.now);
    return node >= 0;
  });
  return a.others.size() < before;
}

EDL_INLINE bool fill_up(allocation& a) {
  bool any = false;
  for (int j : a.order) {
    job_state& s = a.at(j);
    if (!s.in) continue;
    s.fixed_nodes.resize(s.job->fixed.size(), -1);
    for (std::size_t f = 0; f < s.job->fixed.size(); ++f) {
      if (s.fixed_nodes[f] >= 0) continue;
      int const shape = a.room.shape(s.job->fixed[f]), node = find_room(a, shape, {cause::room_for_job, j});
      if (node < 0) continue;
      a.room.take(shape, node);
      s.fixed_nodes[f] = node;
      any = true;
    }
    while (s.count() < s.who.min) {
      int const node = find_room(a, s.shape, {cause::room_for_job, j});
      if (node < 0) break;
      a.place(j, node, s.shape);
      any = true;
    }
  }
  return any;
}

EDL_INLINE void replace_missing(allocation& a) {
  fill_up(a);
  for (int j : a.order) {
    job_state& s = a.at(j);
    if (!s.in) continue;
    for (int const announced = std::min(s.who.most, s.job->workers); s.count() < announced;) {
      int node = a.room.first_fit(s.shape);
      if (node < 0) node = a.room.first_fit_with_leaving(s.shape);
      if (node < 0) break;
      a.place(j, node, s.shape);
    }
  }
}

/// Whether the cluster could hold the least of a job if it were empty. Only such a job may make others wait.
inline bool fits_empty(allocation const& a, job_state const& s) {
  cluster_view const empty{.now = a.view.now, .nodes = a.view.nodes};
  std::vector<pod_shape const*> shapes{&s.job->worker};
  for (pod_shape const& f : s.job->fixed) shapes.push_back(&f);
  fitting room(empty, shapes, a.options.max_load);
  auto const place = [&](pod_shape const& of) {
    int const shape = room.shape(of), node = room.first_fit(shape);
    if (node < 0 || !room.within_load(shape)) return false;
    room.take(shape, node);
    return true;
  };
  bool all = std::ranges::all_of(s.job->fixed, place);
  for (int n = 0; all && n < s.who.min; ++n) all = place(s.job->worker);
  return all;
}

inline bool let_in(allocation& a, int j) {
  job_state& s = a.at(j);
  int const had = s.count();
  a.steps.clear();
  std::vector<int> fixed(s.job->fixed.size(), -1);
  bool fits = true;
  auto const light = [&](int shape) {
    while (a.room.overloaded(shape)) {
      auto const least = std::find_if(a.removable().begin(), a.removable().end(), [&](auto const& r) {
        return a.room.overloaded(a.at(r.second).workers.back().shape);
      });
      if (least == a.removable().end()) return false;
      int const who = least->second;
      a.remove(who, a.at(who).workers.back(), {cause::room_for_job, j});
    }
    return true;
  };
  // Place the largest pods first.
  std::vector<std::pair<int, int>> all;  // shape, and index of the fixed pod; -1: a worker
  for (std::size_t f = 0; f < fixed.size(); ++f) all.emplace_back(a.room.shape(s.job->fixed[f]), int(f));
  for (int n = s.count(); n < s.who.min; ++n) all.emplace_back(s.shape, -1);
  std::stable_sort(all.begin(), all.end(), [&](auto const& x, auto const& y) {
    return a.room.dominant_share(x.first) > a.room.dominant_share(y.first);
  });
  for (auto const& [shape, which] : all) {
    int const node = find_room(a, shape, {cause::room_for_job, j});
    fits = node >= 0;
    if (!fits) break;
    if (which < 0) {
      a.place(j, node, shape);
    } else {
      a.room.take(shape, node);
      a.steps.push_back({-1, {node, shape, -1}, true});
      fixed[std::size_t(which)] = node;
    }
    fits = light(shape);
    if (!fits) break;
  }
  if (!fits) {
    a.take_back();
    invariant(s.count() == had, "a job that is not let in has the workers that it had");
    return false;
  }
  invariant(s.count() >= s.who.min, "a job that is let in has its least");
  invariant(std::ranges::none_of(fixed, [](int node) { return node < 0; }),
            "each fixed pod of a job that is let in has a node");
  s.in = true;
  s.fixed_nodes = std::move(fixed);
  return true;
}

EDL_INLINE bool admit(allocation& a) {
  bool any_in = false, blocked = false;
  // Equal jobs fail equally until something changes.
  std::set<std::tuple<int, int, std::vector<int>>> failed, hopeless;
  for (int j : a.order) {
    job_state& s = a.at(j);
    if (s.in || s.job->suspended) continue;
    std::vector<int> fixed;
    for (pod_shape const& f : s.job->fixed) fixed.push_back(a.room.shape(f));
    std::tuple const kind(s.shape, s.who.min, fixed);
    if (blocked)
      s.why = {cause::behind_another};
    else if (failed.count(kind) > 0 || !let_in(a, j)) {
      failed.insert(kind);
      s.why = {cause::no_room};
      bool const starves = a.view.now - s.job->submitted > a.options.starvation_timeout;
      blocked = starves && hopeless.count(kind) == 0 && fits_empty(a, s);
      if (starves && !blocked) hopeless.insert(kind);
    } else {
      s.why = {};
      any_in = true;
      failed.clear();
    }
  }
  return any_in;
}

}  // namespace edl::autoscaler::detail

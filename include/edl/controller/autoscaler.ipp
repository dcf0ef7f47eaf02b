// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <set>
#include <unordered_map>

#include "edl/controller/autoscaler.hpp"
#include "edl/controller/fitting.hpp"
#include "edl/controller/speed_curve.hpp"
#include "edl/core/inline.hpp"

namespace edl::controller {
namespace detail {

/// The claim of a worker: higher priorities first.
struct claim {
  int priority;
  double worth;
  auto operator<=>(claim const&) const = default;
};

class planner {
 public:
  planner(cluster_view const& view, plan_options const& options)
      : view_(view), options_(options), room_(view, shapes_of(view), options.max_load) {}

  plan make() {
    read();
    keep_promises();
    reserve();
    replace_missing();
    // Each step may open a way for an earlier one. Pods get room, and jobs are let in, once; between that,
    // exchanges end.
    for (bool again = true; again;) {
      again = trim();
      if (exchange()) {
        if (repack()) exchange();
        again = true;
      }
      again = admit() || again;
      again = reserve() || again;
      again = fill_up() || again;
    }
    return result();
  }

 private:
  struct worker {
    int node, shape;
    int pod;            ///< index in the view; -1: to be made
    bool soon = false;  ///< its room is there when leaving pods have gone
  };
  struct state {
    job const* of = nullptr;
    int shape = 0;
    claimant who{};
    bool in = false, cooling = false;
    std::vector<worker> before{}, workers{};
    std::vector<int> waiting{};  ///< its worker pods without a node, as indices
    std::vector<int> fixed_nodes{};
    std::string why{};
    int count() const { return int(workers.size()); }
  };
  /// One step that can be taken back.
  struct step {
    int job;  ///< -1: a fixed pod
    worker what;
    bool placed;
  };
  static constexpr double unbounded = std::numeric_limits<double>::infinity();
  static constexpr claim everything{std::numeric_limits<int>::max(), unbounded};

  static std::vector<pod_shape const*> shapes_of(cluster_view const& view) {
    std::vector<pod_shape const*> all;
    for (job const& j : view.jobs) {
      all.push_back(&j.worker);
      for (pod_shape const& f : j.fixed) all.push_back(&f);
    }
    for (pod const& p : view.pods)
      if (!p.job.empty() || p.node.empty()) all.push_back(&p.shape);
    return all;
  }

  claim next(state const& s, int n) const { return {s.of->priority, options_.who.worth(s.who, n)}; }

  /// Whether a job is left alone, which is looked at again later. One that is paused has nothing to lose.
  bool frozen(state const& s) {
    if (!s.cooling || s.count() == 0) return false;
    double const until = *s.of->last_resized + s.of->change_cost / options_.change_share;
    again_at_ = std::min(again_at_.value_or(until), until);
    return true;
  }

  void read() {
    std::unordered_map<std::string, int> by_uid, by_node;
    for (std::size_t n = 0; n < view_.nodes.size(); ++n) by_node.emplace(view_.nodes[n].name, int(n));
    by_node_ = std::move(by_node);
    jobs_.resize(view_.jobs.size());
    on_node_.resize(view_.nodes.size());
    listed_.resize(jobs_.size());
    rank_.resize(jobs_.size());
    std::vector<claimant*> sharing;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      state& s = jobs_[i];
      job const& j = view_.jobs[i];
      s.of = &j;
      s.shape = room_.shape(j.worker);
      s.in = j.admitted && !j.suspended;
      s.who.min = std::max(0, j.min);
      speed_curve const speed(j.speeds);
      s.who.most = std::max(s.who.min, speed.useful(std::max(0, j.max)));
      s.who.tried = speed.largest();
      s.who.gains = speed.gains(s.who.most);
      if (speed.known() && j.records_left) s.who.seconds_left = *j.records_left / speed.at(1);
      s.who.share = room_.dominant_share(s.shape);
      s.cooling = j.last_resized && view_.now - *j.last_resized < j.change_cost / options_.change_share;
      by_uid.emplace(j.uid, int(i));
      if (!j.suspended) sharing.push_back(&s.who);
    }
    share_fairly(sharing);
    for (std::size_t p = 0; p < view_.pods.size(); ++p) {
      pod const& w = view_.pods[p];
      auto const owner = w.job.empty() ? by_uid.end() : by_uid.find(w.job);
      if (owner == by_uid.end() || w.leaving) {
        if (w.node.empty() && !w.leaving && owner == by_uid.end()) others_.push_back(int(p));
        continue;
      }
      state& s = jobs_[std::size_t(owner->second)];
      auto const at = w.node.empty() ? by_node_.end() : by_node_.find(w.node);
      if (at == by_node_.end()) {
        s.waiting.push_back(int(p));
        continue;
      }
      s.workers.push_back({at->second, room_.shape(w.shape), int(p)});
      on_node_[std::size_t(at->second)].push_back(owner->second);
    }
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      state& s = jobs_[i];
      s.in = !s.of->suspended && (s.in || s.count() > 0);
      s.before = s.workers;
      int const most = s.of->suspended ? 0 : s.who.most;
      if (s.count() > most) s.why = s.of->suspended ? "suspended" : fmt::format("{} are enough", most);
      note(int(i));
      while (s.count() > most) remove(int(i), s.workers.back());
    }
    order_.resize(jobs_.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(), [&](int a, int b) {
      job const &x = view_.jobs[std::size_t(a)], &y = view_.jobs[std::size_t(b)];
      using key = std::tuple<int, double, std::string const&>;
      return key(-x.priority, x.submitted, x.uid) < key(-y.priority, y.submitted, y.uid);
    });
  }

  // The state, and how it changes.

  void forget(int j) {
    if (auto& at = listed_[std::size_t(j)]) removable_.erase({*at, j}), at.reset();
  }

  /// Keeps the list of those that have a worker to give, by what it deserves.
  void note(int j) {
    forget(j);
    state const& s = jobs_[std::size_t(j)];
    if (s.count() <= s.who.min) return;
    listed_[std::size_t(j)] = next(s, s.count() - 1);
    removable_.insert({*listed_[std::size_t(j)], j});
  }

  void place(int j, worker w) {
    room_.take(w.shape, w.node);
    jobs_[std::size_t(j)].workers.push_back(w);
    on_node_[std::size_t(w.node)].push_back(j);
    note(j);
    failed_.clear();
    steps_.push_back({j, w, true});
  }
  void place(int j, int node, int shape) { place(j, {node, shape, -1, !room_.fits(shape, node)}); }

  void remove(int j, worker w) {
    state& s = jobs_[std::size_t(j)];
    room_.give_back(w.shape, w.node);
    auto const at = std::find_if(s.workers.rbegin(), s.workers.rend(), [&](worker const& o) {
      return o.node == w.node && o.shape == w.shape && o.pod == w.pod;
    });
    s.workers.erase(std::next(at).base());
    auto& here = on_node_[std::size_t(w.node)];
    here.erase(std::find(here.begin(), here.end(), j));
    note(j);
    failed_.clear();
    steps_.push_back({j, w, false});
  }

  void take_back() {
    while (!steps_.empty()) {
      step const last = steps_.back();
      if (last.job < 0)
        room_.give_back(last.what.shape, last.what.node), failed_.clear();
      else if (last.placed)
        remove(last.job, last.what), steps_.pop_back();
      else
        place(last.job, last.what), steps_.pop_back();
      steps_.pop_back();
    }
  }

  // Room by shrinking.

  /// Workers on this node whose leaving makes room for the shape, each deserving less than `than`; none of
  /// them is below its job's min after it. Empty when there is no such choice.
  std::vector<std::pair<int, worker>> victims_on(int node, int shape, claim than, bool spare, int self) {
    std::vector<int> here = on_node_[std::size_t(node)];
    std::sort(here.begin(), here.end());
    std::vector<std::tuple<claim, int, worker>> can;
    for (std::size_t i = 0; i < here.size();) {
      int const j = here[i];
      state const& s = jobs_[std::size_t(j)];
      std::size_t end = i;
      while (end < here.size() && here[end] == j) ++end;
      if (!(spare && frozen(s)) && j != self) {
        std::vector<worker> mine;
        for (worker const& w : s.workers)
          if (w.node == node) mine.push_back(w);
        std::stable_sort(mine.begin(), mine.end(),
                         [](auto& a, auto& b) { return (a.pod < 0) < (b.pod < 0); });
        int n = s.count();
        for (; i < end && n > s.who.min; ++i, --n) {
          claim const has = next(s, n - 1);
          if (!(has < than)) break;
          can.emplace_back(has, j, mine.back());
          mine.pop_back();
        }
      }
      i = end;
    }
    std::stable_sort(can.begin(), can.end(),
                     [](auto& a, auto& b) { return std::get<0>(a) < std::get<0>(b); });
    std::vector<std::pair<int, worker>> chosen;
    std::vector<int> gone;
    for (auto const& [has, j, w] : can) {
      chosen.emplace_back(j, w);
      gone.push_back(w.shape);
      if (room_.fits_without(shape, node, gone, !spare) && (!spare || room_.within_load(shape, gone)))
        return chosen;
    }
    return {};
  }

  /// The node on which room was made, by those who deserve least; -1: none. `spare`: who was resized lately
  /// is left alone, and so is the headroom.
  int make_room(int shape, claim than, bool spare, std::string const& for_whom, int self = -1) {
    if (removable_.empty() || !(removable_.begin()->first < than)) return -1;
    auto const known = failed_.find({shape, spare});
    if (known != failed_.end() && !(known->second < than)) return -1;
    std::vector<char> seen(view_.nodes.size());
    for (auto const& [has, j] : removable_) {
      if (!(has < than)) break;
      state const& s = jobs_[std::size_t(j)];
      if (spare && frozen(s)) continue;
      for (auto w = s.workers.rbegin(); w != s.workers.rend(); ++w) {
        int const node = w->node;
        if (seen[std::size_t(node)] || !room_.allowed(shape, node)) continue;
        seen[std::size_t(node)] = 1;
        auto const chosen = victims_on(node, shape, than, spare, self);
        if (chosen.empty()) continue;
        for (auto const& [who, what] : chosen) {
          remove(who, what);
          jobs_[std::size_t(who)].why = "made room for " + for_whom;
        }
        return node;
      }
    }
    if (self < 0 || jobs_[std::size_t(self)].count() <= jobs_[std::size_t(self)].who.min)
      failed_[{shape, spare}] = than;
    return -1;
  }

  /// A node with room for a pod that must have it: free, or about to be, or made by shrinking.
  int find_room(int shape, std::string const& for_whom) {
    int node = room_.first_fit(shape);
    if (node < 0) node = room_.first_fit_with_leaving(shape);
    return node >= 0 ? node : make_room(shape, everything, false, for_whom);
  }

  /// Brings the cluster's load down by enough for one of the shape, where a node has the room already.
  bool make_load(int shape, claim than, int self) {
    if (room_.first_fit(shape) < 0) return false;
    std::vector<int> gone, from;
    for (auto const& [has, j] : removable_) {
      if (!(has < than)) return false;
      state const& s = jobs_[std::size_t(j)];
      if (frozen(s) || j == self) continue;
      from.push_back(j);
      gone.push_back(s.workers.back().shape);
      if (room_.within_load(shape, gone)) break;
    }
    if (!room_.within_load(shape, gone)) return false;
    for (int j : from) {
      jobs_[std::size_t(j)].why = "made room for " + jobs_[std::size_t(self)].of->name;
      remove(j, jobs_[std::size_t(j)].workers.back());
    }
    return true;
  }

  // The steps of a plan.

  void keep(int p, int node) {
    room_.take(room_.shape(view_.pods[std::size_t(p)].shape), node);
    reservations_.push_back({view_.pods[std::size_t(p)].name, view_.nodes[std::size_t(node)].name});
  }

  /// Pods of others get the room that an earlier plan promised them, the largest choose first otherwise.
  void keep_promises() {
    std::erase_if(others_, [&](int p) {
      pod const& w = view_.pods[std::size_t(p)];
      auto const at = by_node_.find(w.nominated);
      bool const can =
          !w.nominated.empty() && at != by_node_.end() && room_.fits(room_.shape(w.shape), at->second, true);
      if (can) keep(p, at->second);
      return can;
    });
    std::stable_sort(others_.begin(), others_.end(), [&](int a, int b) {
      return room_.dominant_share(room_.shape(view_.pods[std::size_t(a)].shape)) >
             room_.dominant_share(room_.shape(view_.pods[std::size_t(b)].shape));
    });
  }

  bool reserve() {
    auto const before = others_.size();
    std::erase_if(others_, [&](int p) {
      pod const& w = view_.pods[std::size_t(p)];
      int const node = find_room(room_.shape(w.shape), "pod " + w.name);
      if (node >= 0) keep(p, node);
      return node >= 0;
    });
    return others_.size() < before;
  }

  /// Workers that a job was told to have and that have no node yet keep what room there is.
  void replace_missing() {
    fill_up();
    for (int j : order_) {
      state& s = jobs_[std::size_t(j)];
      if (!s.in) continue;
      for (int const told = std::min(s.who.most, s.of->workers); s.count() < told;) {
        int node = room_.first_fit(s.shape);
        if (node < 0) node = room_.first_fit_with_leaving(s.shape);
        if (node < 0) break;
        place(j, node, s.shape);
      }
    }
  }

  /// What a job that has been let in lacks of its least.
  bool fill_up() {
    bool any = false;
    for (int j : order_) {
      state& s = jobs_[std::size_t(j)];
      if (!s.in) continue;
      s.fixed_nodes.resize(s.of->fixed.size(), -1);
      for (std::size_t f = 0; f < s.of->fixed.size(); ++f) {
        if (s.fixed_nodes[f] >= 0) continue;
        int const shape = room_.shape(s.of->fixed[f]), node = find_room(shape, s.of->name);
        if (node < 0) continue;
        room_.take(shape, node);
        s.fixed_nodes[f] = node;
        any = true;
      }
      while (s.count() < s.who.min) {
        int const node = find_room(s.shape, s.of->name);
        if (node < 0) break;
        place(j, node, s.shape);
        any = true;
      }
    }
    return any;
  }

  /// Gives the headroom back to services that have taken it.
  bool trim() {
    bool any = false;
    for (bool again = true; again;) {
      again = false;
      for (auto const& [has, j] : removable_) {
        state& s = jobs_[std::size_t(j)];
        if (!room_.overloaded(s.workers.back().shape)) continue;
        s.why = fmt::format("leaves the headroom ({:.3g} % of cpu and memory) to others",
                            100 * (1 - options_.max_load));
        remove(j, s.workers.back());
        any = again = true;
        break;
      }
    }
    return any;
  }

  bool let_in(int j) {
    state& s = jobs_[std::size_t(j)];
    steps_.clear();
    std::vector<int> fixed;
    bool fits = true;
    auto const light = [&](int shape) {
      while (room_.overloaded(shape)) {
        auto const least = std::find_if(removable_.begin(), removable_.end(), [&](auto const& r) {
          return room_.overloaded(jobs_[std::size_t(r.second)].workers.back().shape);
        });
        if (least == removable_.end()) return false;
        int const who = least->second;
        jobs_[std::size_t(who)].why = "made room for " + s.of->name;
        remove(who, jobs_[std::size_t(who)].workers.back());
      }
      return true;
    };
    for (pod_shape const& f : s.of->fixed) {
      int const shape = room_.shape(f), node = find_room(shape, s.of->name);
      fits = node >= 0;
      if (!fits) break;
      room_.take(shape, node);
      steps_.push_back({-1, {node, shape, -1}, true});
      fixed.push_back(node);
      fits = light(shape);
      if (!fits) break;
    }
    while (fits && s.count() < s.who.min) {
      int const node = find_room(s.shape, s.of->name);
      fits = node >= 0;
      if (!fits) break;
      place(j, node, s.shape);
      fits = light(s.shape);
    }
    if (!fits) {
      take_back();
      return false;
    }
    s.in = true;
    s.fixed_nodes = std::move(fixed);
    return true;
  }

  bool admit() {
    bool any_in = false, blocked = false;
    // Jobs alike fail alike, until something changes.
    std::set<std::tuple<int, int, std::vector<int>>> failed;
    for (int j : order_) {
      state& s = jobs_[std::size_t(j)];
      if (s.in || s.of->suspended) continue;
      std::vector<int> fixed;
      for (pod_shape const& f : s.of->fixed) fixed.push_back(room_.shape(f));
      std::tuple const kind(s.shape, s.who.min, fixed);
      std::string const before = s.why;
      if (blocked)
        s.why = "waits behind a job that has waited longer";
      else if (failed.count(kind) > 0 || !let_in(j)) {
        failed.insert(kind);
        s.why = fmt::format("waits: there is no room for its {} pods, even if all others shrink to their min",
                            s.who.min + int(fixed.size()));
        blocked = view_.now - s.of->submitted > options_.patience && fits_empty(s);
      } else {
        s.why = "let in";
        any_in = true;
        failed.clear();
      }
    }
    return any_in;
  }

  /// Whether its pods would each find a node that lets them in. Only such a job can make others wait.
  bool fits_empty(state const& s) const {
    for (node const& n : view_.nodes) {
      if (!allows(n, s.of->worker)) continue;
      bool all = true;
      for (auto const& [name, amount] : s.of->worker.requests) {
        auto const has = n.allocatable.find(name);
        all = all && has != n.allocatable.end() && has->second >= amount;
      }
      if (all) return true;
    }
    return false;
  }

  /// Gives what is left, and moves it where it is deserved more, until nobody deserves what it could be
  /// given.
  bool exchange() {
    bool any = false;
    for (bool again = true; again;) {
      again = false;
      std::priority_queue<std::tuple<claim, int, int>> asking;  // of equal claims the older job's
      std::vector<char> asks(jobs_.size());
      auto const ask = [&](int j, int rank) {
        state const& s = jobs_[std::size_t(j)];
        if (!s.in || s.count() < s.who.min || s.count() >= s.who.most || frozen(s) || asks[std::size_t(j)])
          return;
        claim const wants = next(s, s.count());
        if (!(wants.worth > -unbounded)) return;
        asks[std::size_t(j)] = 1;
        asking.push({wants, -rank, j});
      };
      for (int r = 0; r < int(order_.size()); ++r)
        ask(order_[std::size_t(r)], rank_[std::size_t(order_[std::size_t(r)])] = r);
      while (!asking.empty()) {
        auto const [wants, rank, j] = asking.top();
        asking.pop();
        asks[std::size_t(j)] = 0;
        state& s = jobs_[std::size_t(j)];
        if (s.count() >= s.who.most || !(next(s, s.count()) == wants)) {
          ask(j, -rank);
          continue;
        }
        steps_.clear();
        int node = -1;
        bool const has_load = room_.within_load(s.shape) || make_load(s.shape, wants, j);
        if (has_load) {
          if (!s.workers.empty() && room_.fits(s.shape, s.workers.back().node)) node = s.workers.back().node;
          if (node < 0) node = room_.first_fit(s.shape);
        }
        if (node < 0) node = make_room(s.shape, wants, true, s.of->name, j);
        if (node < 0) continue;
        place(j, node, s.shape);
        any = again = true;
        for (step const& t : steps_)
          if (!t.placed) ask(t.job, rank_[std::size_t(t.job)]);
        ask(j, -rank);
      }
    }
    return any;
  }

  /// Puts the workers of a job together, where its size changes anyway or was the same for long. Numbers stay
  /// as they are. Workers that run are moved only if all these jobs together need fewer nodes after it. True
  /// when something was moved.
  bool repack() { return (options_.move && regroup(true)) || regroup(false); }

  /// Whether a job has had its size for so long that a standstill for the sake of fewer nodes is a hundredth
  /// of that time (at the default change_share).
  bool settled(state const& s) const {
    return s.in && (!s.of->last_resized ||
                    view_.now - *s.of->last_resized > 10 * s.of->change_cost / options_.change_share);
  }

  bool regroup(bool move) {
    struct group {
      int job;
      std::vector<worker> old;
    };
    std::vector<group> groups;
    bool any_changes = false;
    for (int j : order_) {
      state const& s = jobs_[std::size_t(j)];
      bool const changes =
          s.count() != int(s.before.size()) ||
          std::any_of(s.workers.begin(), s.workers.end(), [](worker const& w) { return w.pod < 0; });
      any_changes = any_changes || changes;
      if (!changes && !(move && settled(s))) continue;
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
        for (worker const& w : jobs_[std::size_t(g.job)].workers) on.insert(w.node);
        all += on.size();
      }
      return all;
    };
    std::size_t const before = spread();
    for (group const& g : groups)
      for (worker const& w : g.old) remove(g.job, w);
    std::stable_sort(groups.begin(), groups.end(),
                     [](group const& a, group const& b) { return a.old.size() > b.old.size(); });
    steps_.clear();
    bool fits = true;
    for (group const& g : groups) {
      std::size_t left = g.old.size();
      int const shape = g.old[0].shape;
      std::vector<int> own;
      for (worker const& w : jobs_[std::size_t(g.job)].workers) own.push_back(w.node);
      auto const fill = [&](int node) {
        for (; left > 0 && room_.fits(shape, node); --left) place(g.job, node, shape);
      };
      for (int node : own) fill(node);
      for (int node = 0; left > 0 && node >= 0;)
        if ((node = best_node(shape, left)) >= 0) fill(node);
      fits = left == 0;
      if (!fits) break;
    }
    if (!fits || (move && spread() >= before)) {
      take_back();
      for (group const& g : groups)
        for (worker const& w : g.old) place(g.job, w);
      return false;
    }
    // A worker that runs where one is to be stays.
    for (group& g : groups)
      for (worker& w : jobs_[std::size_t(g.job)].workers) {
        if (w.pod >= 0) continue;
        auto const same = std::find_if(g.old.begin(), g.old.end(),
                                       [&](worker const& o) { return o.pod >= 0 && o.node == w.node; });
        if (same == g.old.end()) continue;
        w.pod = same->pod;
        g.old.erase(same);
      }
    return true;
  }

  /// Of the first nodes with room, the one with the least that has enough for all that are left, or else with
  /// the most.
  int best_node(int shape, std::size_t wanted) {
    constexpr int looked_at = 64;
    int best = -1, found = 0;
    std::size_t best_has = 0;
    for (int node = room_.first_fit(shape); node >= 0 && node < room_.nodes() && found < looked_at; ++node) {
      std::size_t const has = room_.how_many(shape, node, wanted + 1);
      if (has == 0) continue;
      ++found;
      bool const enough = has >= wanted, had_enough = best_has >= wanted;
      if (best < 0 || (enough && (!had_enough || has < best_has)) ||
          (!enough && !had_enough && has > best_has))
        best = node, best_has = has;
      if (best_has == wanted) break;
    }
    return best;
  }

  plan result() {
    plan p;
    p.reservations = std::move(reservations_);
    p.again_at = again_at_;
    for (int o : others_) p.hopeless.push_back(view_.pods[std::size_t(o)].name);
    for (state& s : jobs_) {
      job_plan out{.uid = s.of->uid, .admitted = s.in};
      std::vector<int> waiting = s.waiting;
      for (worker const& w : s.workers) {
        if (w.pod >= 0) continue;
        // A pod that waits already is as good as a new one.
        if (!waiting.empty())
          waiting.erase(waiting.begin());
        else
          out.nodes.push_back(view_.nodes[std::size_t(w.node)].name);
      }
      out.workers = s.in ? std::max(s.count(), s.who.min) : 0;
      int have = s.count();
      for (int w : waiting)
        if (have < out.workers)
          ++have;  // below min it goes on to wait
        else
          out.leaving.push_back(view_.pods[std::size_t(w)].name);
      out.reason = reason(s, out.workers);
      for (int node : s.fixed_nodes)
        out.fixed_nodes.push_back(node < 0 ? "" : view_.nodes[std::size_t(node)].name);
      p.jobs.push_back(std::move(out));
    }
    std::unordered_map<std::string, std::size_t> by_uid;
    std::vector<std::set<int>> staying(jobs_.size());
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      by_uid.emplace(jobs_[i].of->uid, i);
      for (worker const& w : jobs_[i].workers) staying[i].insert(w.pod);
    }
    for (std::size_t i = 0; i < view_.pods.size(); ++i) {
      pod const& w = view_.pods[i];
      if (w.job.empty() || w.leaving || w.node.empty()) continue;
      auto const at = by_uid.find(w.job);
      if (at != by_uid.end() && by_node_.count(w.node) > 0 && staying[at->second].count(int(i)) == 0)
        p.jobs[at->second].leaving.push_back(w.name);
    }
    return p;
  }

  std::string reason(state const& s, int n) {
    if (s.of->suspended) return "suspended by its owner";
    if (!s.in) return s.why;
    std::string const has = fmt::format("{} of {} to {}: ", n, s.of->min, s.of->max);
    if (s.count() < s.who.min) return has + "no room for all of its min, even if all others shrink to theirs";
    if (n >= s.of->max) return has + "all that it may have";
    if (n >= s.who.most) return has + "more workers were measured to add nothing";
    if (!s.why.empty() && s.why != "let in") return has + s.why;
    if (frozen(s))
      return has + fmt::format("resized {:.3g} s ago, and a change costs {:.2g} s",
                               view_.now - *s.of->last_resized, s.of->change_cost);
    if (!room_.within_load(s.shape)) return has + "the rest is headroom";
    return has + fmt::format("what is left goes to who deserves more ({})", options_.who.name);
  }

  cluster_view const& view_;
  plan_options const& options_;
  fitting room_;
  std::unordered_map<std::string, int> by_node_;
  std::vector<state> jobs_;
  std::vector<std::vector<int>> on_node_;  ///< by node: the job of each worker there
  std::vector<int> order_, rank_, others_;
  std::set<std::pair<claim, int>> removable_;
  std::vector<std::optional<claim>> listed_;
  std::map<std::pair<int, bool>, claim> failed_;  ///< what has been looked for in vain since the last change
  std::vector<step> steps_;
  std::vector<reservation> reservations_;
  std::optional<double> again_at_;
};

}  // namespace detail

EDL_INLINE plan make_plan(cluster_view const& view, plan_options const& options) {
  return detail::planner(view, options).make();
}

}  // namespace edl::controller

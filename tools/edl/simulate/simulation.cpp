// SPDX-License-Identifier: Apache-2.0
#include "simulate/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>

#include "edl/cluster/autoscaler/fitting.hpp"
#include "edl/core/error.hpp"

namespace edl::simulate {
namespace {

using namespace edl::autoscaler;
constexpr double never = std::numeric_limits<double>::infinity();

class simulation {
 public:
  simulation(scenario const& what, rules const& by) : scenario_(what), by_(by) {
    std::map<std::string, double> total;
    for (node const& n : what.nodes) {
      if (!node_by_name_.emplace(n.name, int(node_by_name_.size())).second)
        throw usage_error(fmt::format("the cluster has two nodes '{}'", n.name));
      for (auto const& [name, amount] : n.allocatable)
        if (name != pod_slots) total[name] += double(amount);
    }
    for (auto const& [name, amount] : total)
      if (amount > 0) out_.resources.push_back(name), total_.push_back(amount);
    slots_ = total_.size();
    for (node const& n : what.nodes) {
      std::vector<std::int64_t> free;
      for (std::string const& r : out_.resources)
        free.push_back(n.allocatable.count(r) ? n.allocatable.at(r) : 0);
      free.push_back(n.allocatable.count(pod_slots) ? n.allocatable.at(pod_slots)
                                                    : std::numeric_limits<std::int64_t>::max());
      free_.push_back(std::move(free));
    }
    used_.resize(slots_);
    out_.utilisation.resize(slots_);
    view_.nodes = what.nodes;
    for (std::size_t i = 0; i < what.jobs.size(); ++i) order_.push_back(int(i));
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int a, int b) { return spec(a).submitted < spec(b).submitted; });
    for (job_spec const& j : what.jobs) {
      jobs_.emplace_back(j);
      out_.jobs.push_back({.name = j.name, .submitted = j.submitted});
    }
    for (std::size_t s = 0; s < what.services.size(); ++s)
      for (auto const& [at, n] : what.services[s].load) loads_.push_back({at, int(s), n});
    std::stable_sort(loads_.begin(), loads_.end(), [](load const& a, load const& b) { return a.at < b.at; });
    if (by.plan.move)
      out_.what_if = "what if the controller chose the nodes of workers, and moved them: it does not";
    now_ = never;
    if (!order_.empty()) now_ = spec(order_[0]).submitted;
    if (!loads_.empty()) now_ = std::min(now_, loads_[0].at);
    if (now_ == never) throw usage_error("nothing to simulate: neither a job nor a service's load");
    start_ = until_ = now_;
    next_tick_ = std::ceil(now_ / by.decide_every) * by.decide_every;
    service_pods_.resize(what.services.size());
    burst_.resize(what.services.size(), -1);
  }

  outcome run() {
    for (double const end = now_ + by_.limit;;) {
      submit();
      change_loads();
      move_pods();
      finish_jobs();
      schedule();
      if (now_ >= again_at_) dirty_ = true, again_at_ = never;
      if (now_ >= next_tick_ || (by_.decide_at_events && dirty_ && now_ >= last_plan_ + 1)) decide();
      if (active_.empty() && submitted_ == order_.size() && loaded_ == loads_.size() && transitions_.empty())
        break;
      double const next = next_event();
      if (next == never || next > end || stuck_) give_up();
      pass(next);
    }
    for (int p : waiting_)
      if (at(p).service >= 0) out_.service_waits.push_back(now_ - at(p).created);
    out_.end = now_;
    for (double& u : out_.utilisation) u /= std::max(1e-9, until_ - start_);
    return std::move(out_);
  }

 private:
  struct live_job {
    explicit live_job(job_spec const& s) : done(*s.work) {}
    progress done;
    std::map<int, int> on{};          ///< ready workers by node
    placement placed{};               ///< the same, as the model takes it
    std::map<int, placement> seen{};  ///< the last placement of each size that it worked at
    double since = 0;                 ///< its work is counted until then
    double standing = 0;              ///< it stands still until then
    double finish = never;
    std::set<int> workers{};  ///< pods
    std::vector<int> fixed{};
    int fixed_ready = 0, announced = 0;
    bool admitted = false;
    std::optional<double> resized{};
    std::string reason{};
  };
  struct live_pod {
    int job = -1, service = -1;
    bool is_worker = false, ready = false, leaving = false, there = true;
    int node = -1, wanted_node = -1;
    int replaces = -1, successor = -1;  ///< pods: a worker that is moved, and the one that takes over from it
    double created = 0;
    pod_shape const* shape = nullptr;
    std::string nominated{};
    double nominated_at = 0;
  };
  struct load {
    double at;
    int service, pods;
  };
  struct transition {
    double at;
    int pod;
    bool gone;
    bool operator>(transition const& o) const {
      return std::tie(at, pod, gone) > std::tie(o.at, o.pod, o.gone);
    }
  };

  job_spec const& spec(int j) const { return scenario_.jobs[std::size_t(j)]; }
  live_job& live(int j) { return jobs_[std::size_t(j)]; }
  live_pod& at(int p) { return pods_[std::size_t(p)]; }

  // Time.

  double next_event() const {
    double next = never;
    if (submitted_ < order_.size()) next = std::min(next, spec(order_[submitted_]).submitted);
    if (loaded_ < loads_.size()) next = std::min(next, loads_[loaded_].at);
    if (!transitions_.empty()) next = std::min(next, transitions_.top().at);
    for (int j : active_) next = std::min(next, jobs_[std::size_t(j)].finish);
    if (!active_.empty()) next = std::min(next, next_tick_);
    if (by_.decide_at_events && dirty_) next = std::min(next, last_plan_ + 1);
    if (by_.decide_at_events) next = std::min(next, again_at_);
    return std::max(next, now_);
  }

  void pass(double to) {
    for (std::size_t r = 0; r < slots_; ++r) out_.utilisation[r] += used_[r] / total_[r] * (to - now_);
    now_ = to;
    until_ = now_;
    if (next_tick_ < now_) next_tick_ = std::ceil(now_ / by_.decide_every) * by_.decide_every;
  }

  /// Counts what a job has done until now.
  void advance(int j) {
    live_job& l = live(j);
    double const from = std::max(l.since, std::min(l.standing, now_));
    l.since = now_;
    if (!works(l) || now_ <= from) return;
    l.done.work(l.placed, now_ - from);
    int n = 0;
    for (int k : l.placed) n += k;
    l.seen[n] = l.placed;
  }

  bool works(live_job const& l) const { return !l.placed.empty() && l.fixed_ready == int(l.fixed.size()); }

  /// After a change of its ready pods.
  void resume(int j) {
    live_job& l = live(j);
    l.placed.clear();
    for (auto const& [node, n] : l.on) l.placed.push_back(n);
    l.finish = never;
    if (!works(l)) return;
    job_outcome& o = out_.jobs[std::size_t(j)];
    if (o.started < 0)
      o.started = now_;
    else
      ++o.resizes;
    l.standing = now_ + by_.standstill;
    l.finish = l.standing + l.done.seconds_left(l.placed);
  }

  // What happens.

  void submit() {
    for (; submitted_ < order_.size() && spec(order_[submitted_]).submitted <= now_; ++submitted_) {
      active_.insert(order_[submitted_]);
      dirty_ = true;
    }
  }

  void change_loads() {
    for (; loaded_ < loads_.size() && loads_[loaded_].at <= now_; ++loaded_) {
      auto const [when, s, wanted] = loads_[loaded_];
      auto& mine = service_pods_[std::size_t(s)];
      int const has = int(mine.size());
      burst_[std::size_t(s)] = -1;
      if (wanted > has) {
        burst_[std::size_t(s)] = int(out_.bursts.size());
        out_.bursts.push_back({scenario_.services[std::size_t(s)].name, now_, has, wanted, -1});
      }
      for (int n = has; n < wanted; ++n) {
        live_pod p{.service = s, .created = now_, .shape = &scenario_.services[std::size_t(s)].pod};
        mine.push_back(make(std::move(p)));
      }
      // Those that still wait are the first to go, then the youngest.
      std::stable_sort(mine.begin(), mine.end(),
                       [&](int a, int b) { return (at(a).node >= 0) > (at(b).node >= 0); });
      while (int(mine.size()) > wanted) {
        leave(mine.back());
        mine.pop_back();
      }
      dirty_ = true;
    }
  }

  int make(live_pod p) {
    pods_.push_back(std::move(p));
    there_.insert(int(pods_.size()) - 1);
    waiting_.insert(int(pods_.size()) - 1);
    room_changed_ = true;
    return int(pods_.size()) - 1;
  }

  void leave(int p) {
    live_pod& w = at(p);
    if (w.leaving) return;
    w.leaving = true;
    if (w.node < 0) {
      waiting_.erase(p);
      there_.erase(p);
      if (w.service >= 0) out_.service_waits.push_back(now_ - w.created);
    }
    if (w.is_worker) {
      live_job& l = live(w.job);
      l.workers.erase(p);
      if (w.replaces >= 0) at(w.replaces).successor = -1;
      if (w.successor >= 0) {
        at(w.successor).replaces = -1;
        l.workers.insert(w.successor);
      }
      if (w.ready) {
        advance(w.job);
        if (--l.on[w.node] == 0) l.on.erase(w.node);
        touched_.insert(w.job);
      }
    }
    if (w.node >= 0) transitions_.push({now_ + by_.pod_stop, p, true});
  }

  void move_pods() {
    while (!transitions_.empty() && transitions_.top().at <= now_) {
      transition const t = transitions_.top();
      transitions_.pop();
      live_pod& w = at(t.pod);
      if (t.gone) {
        take(w, -1);
        there_.erase(t.pod);
        room_changed_ = true;
        if (!waiting_.empty()) dirty_ = true;
        continue;
      }
      if (w.leaving) continue;
      w.ready = true;
      if (w.service >= 0) {
        out_.service_waits.push_back(now_ - w.created);
        int const b = burst_[std::size_t(w.service)];
        auto const& mine = service_pods_[std::size_t(w.service)];
        if (b >= 0 && std::all_of(mine.begin(), mine.end(), [&](int p) { return at(p).ready; }))
          out_.bursts[std::size_t(b)].waited = now_ - out_.bursts[std::size_t(b)].at;
        continue;
      }
      advance(w.job);
      if (w.is_worker)
        ++live(w.job).on[w.node];
      else
        ++live(w.job).fixed_ready;
      touched_.insert(w.job);
      if (w.replaces >= 0) leave(w.replaces);
    }
    for (int j : std::exchange(touched_, {}))
      if (active_.count(j) > 0) resume(j);
  }

  void finish_jobs() {
    std::vector<int> done;
    for (int j : active_)
      if (live(j).finish <= now_) done.push_back(j);
    for (int j : done) {
      live_job& l = live(j);
      active_.erase(j);
      out_.jobs[std::size_t(j)].completed = now_;
      while (!l.workers.empty()) leave(*l.workers.begin());
      for (int p : l.fixed) leave(p);
      dirty_ = true;
    }
    if (!done.empty()) move_pods();
  }

  // The scheduler: pods in the order in which they came, services' first.

  std::vector<std::pair<std::size_t, std::int64_t>> const& need(pod_shape const& s) {
    auto const [known, fresh] = needs_.try_emplace(&s);
    if (fresh) {
      for (auto const& [name, amount] : s.requests) {
        if (amount <= 0 || name == pod_slots) continue;
        auto const r = std::find(out_.resources.begin(), out_.resources.end(), name);
        if (r == out_.resources.end()) throw error(fmt::format("no node has any '{}'", name));
        known->second.emplace_back(std::size_t(r - out_.resources.begin()), amount);
      }
      known->second.emplace_back(slots_, 1000);
    }
    return known->second;
  }

  void take(live_pod const& w, int sign) {
    for (auto const& [r, amount] : need(*w.shape)) {
      free_[std::size_t(w.node)][r] -= sign * amount;
      if (r < slots_) used_[r] += double(sign * amount);
    }
  }

  bool fits(live_pod const& w, int node) {
    for (auto const& [r, amount] : need(*w.shape))
      if (free_[std::size_t(node)][r] < amount) return false;
    return allows(scenario_.nodes[std::size_t(node)], *w.shape);
  }

  /// The part of the node that is free, of what the pod requests.
  double free_part(live_pod const& w, int node) {
    double sum = 0;
    int kinds = 0;
    for (auto const& [r, amount] : need(*w.shape)) {
      if (r == slots_) continue;
      auto const has = scenario_.nodes[std::size_t(node)].allocatable.find(out_.resources[r]);
      sum += double(free_[std::size_t(node)][r]) / double(has->second);
      ++kinds;
    }
    return kinds > 0 ? sum / kinds : 0;
  }

  /// -1: none has the room.
  int choose(live_pod const& w) {
    int best = -1;
    double best_score = 0;
    for (int n = 0; n < int(free_.size()); ++n) {
      if (!fits(w, n)) continue;
      double const score = free_part(w, n) * (by_.scheduler == placing::spread ? 1 : -1);
      if (best < 0 || score > best_score) best = n, best_score = score;
    }
    return best;
  }

  void schedule() {
    if (!std::exchange(room_changed_, false)) return;
    std::set<pod_shape const*> nowhere;
    std::vector<int> all(waiting_.begin(), waiting_.end());
    std::stable_sort(all.begin(), all.end(),
                     [&](int a, int b) { return (at(a).service >= 0) > (at(b).service >= 0); });
    for (int p : all) {
      live_pod& w = at(p);
      if (nowhere.count(w.shape) > 0) continue;
      int node = by_.plan.move && w.wanted_node >= 0 && fits(w, w.wanted_node) ? w.wanted_node : -1;
      if (node < 0) node = choose(w);
      if (node < 0) {
        nowhere.insert(w.shape);
        if (w.service >= 0) dirty_ = true;
        continue;
      }
      w.node = node;
      waiting_.erase(p);
      take(w, 1);
      transitions_.push({now_ + by_.pod_start, p, false});
    }
    move_pods();
  }

  // The controller.

  void describe() {
    view_.now = now_;
    view_.jobs.clear();
    view_.pods.clear();
    viewed_.assign(active_.begin(), active_.end());
    for (int j : viewed_) {
      live_job& l = live(j);
      job_spec const& s = spec(j);
      advance(j);
      job_view v{
          .uid = std::to_string(j), .name = s.name, .priority = s.priority, .min = s.min, .max = s.max};
      v.worker = s.worker;
      if (!l.admitted) v.fixed = s.fixed;
      v.submitted = s.submitted;
      v.admitted = l.admitted;
      v.workers = l.announced;
      for (auto const& [n, on] : l.seen) v.speeds.push_back({n, l.done.speed(on)});
      v.records_left = l.done.records_left();
      v.change_cost = by_.standstill;
      v.last_resized = l.resized;
      view_.jobs.push_back(std::move(v));
    }
    for (int p : there_) {
      live_pod const& w = at(p);
      view_.pods.push_back({.name = std::to_string(p),
                            .job = w.is_worker ? std::to_string(w.job) : "",
                            .node = w.node < 0 ? "" : scenario_.nodes[std::size_t(w.node)].name,
                            .nominated = w.nominated,
                            .nominated_at = w.nominated_at,
                            .replaces = w.replaces < 0 ? "" : std::to_string(w.replaces),
                            .leaving = w.leaving,
                            .shape = shape_of(*w.shape)});
    }
  }

  shared<pod_shape> const& shape_of(pod_shape const& s) { return shapes_.try_emplace(&s, s).first->second; }

  void decide() {
    describe();
    plan const p = make_plan(view_, by_.plan);
    ++out_.plans;
    bool changed = false;
    for (job_plan const& to : p.jobs)
      for (std::string const& name : to.leaving) leave(std::stoi(name)), changed = true;
    for (std::size_t i = 0; i < p.jobs.size(); ++i) {
      job_plan const& to = p.jobs[i];
      int const j = viewed_[i];
      live_job& l = live(j);
      auto const wanted_node = [&](std::string const& node) {
        return node.empty() ? -1 : node_by_name_.at(node);
      };
      if (to.admitted && !l.admitted)
        for (std::size_t f = 0; f < spec(j).fixed.size(); ++f)
          l.fixed.push_back(make({.job = j,
                                  .wanted_node = wanted_node(to.fixed_nodes.at(f)),
                                  .created = now_,
                                  .shape = &spec(j).fixed[f]}));
      for (std::size_t n = 0; int(l.workers.size()) < to.workers; ++n)
        l.workers.insert(make({.job = j,
                               .is_worker = true,
                               .wanted_node = n < to.nodes.size() ? wanted_node(to.nodes[n]) : -1,
                               .created = now_,
                               .shape = &spec(j).worker}));
      for (worker_move const& m : to.moves) {
        int const old = std::stoi(m.pod);
        int const next = make({.job = j,
                               .is_worker = true,
                               .wanted_node = wanted_node(m.node),
                               .replaces = old,
                               .created = now_,
                               .shape = &spec(j).worker,
                               .nominated = m.node});
        at(old).successor = next;
      }
      if (l.announced != to.workers || !to.moves.empty()) l.resized = now_, changed = true;
      l.announced = to.workers;
      l.admitted = to.admitted;
      l.reason = to.reason;
    }
    for (reservation const& r : p.reservations) {
      live_pod& w = at(std::stoi(r.pod));
      w.nominated = r.node;
      w.nominated_at = r.since;
      if (w.service >= 0) w.wanted_node = node_by_name_.at(r.node);
    }
    last_plan_ = now_;
    if (now_ >= next_tick_) next_tick_ += by_.decide_every;
    dirty_ = false;
    again_at_ = p.again_at && !active_.empty() ? std::max(*p.again_at, now_) : never;
    move_pods();
    schedule();
    // Nothing is under way, nothing will come, and nothing was changed for an hour: nothing will.
    if (changed || !transitions_.empty() || submitted_ < order_.size() || loaded_ < loads_.size() ||
        std::any_of(active_.begin(), active_.end(), [&](int j) { return live(j).finish < never; }))
      last_change_ = now_;
    stuck_ = now_ - last_change_ > 3600;
    sample s{.at = now_};
    for (int j : active_) {
      ++(works(live(j)) ? s.running : s.waiting);
      for (int n : live(j).placed) s.workers += n;
    }
    for (std::size_t r = 0; r < slots_; ++r) s.used.push_back(used_[r] / total_[r]);
    out_.timeline.push_back(std::move(s));
  }

  [[noreturn]] void give_up() const {
    for (int j : active_) {
      live_job const& l = jobs_[std::size_t(j)];
      if (l.finish == never)
        throw error(fmt::format("job '{}' cannot run in this cluster: {}", spec(j).name, l.reason));
    }
    throw error(fmt::format("after {:.0f} s {} jobs still run: their work is too much for this cluster",
                            now_ - start_, active_.size()));
  }

  scenario const& scenario_;
  rules const& by_;
  outcome out_;
  cluster_view view_;
  std::unordered_map<std::string, int> node_by_name_;
  std::vector<std::vector<std::int64_t>> free_;
  std::vector<double> total_, used_;
  std::size_t slots_ = 0, submitted_ = 0, loaded_ = 0;
  std::vector<int> order_, viewed_, burst_;
  std::vector<live_job> jobs_;
  std::vector<live_pod> pods_;
  std::vector<load> loads_;
  std::vector<std::vector<int>> service_pods_;
  std::set<int> active_, waiting_, there_, touched_;
  std::priority_queue<transition, std::vector<transition>, std::greater<>> transitions_;
  std::map<pod_shape const*, std::vector<std::pair<std::size_t, std::int64_t>>> needs_;
  std::map<pod_shape const*, shared<pod_shape>> shapes_;
  double now_ = 0, start_ = 0, until_ = 0, next_tick_ = 0, last_plan_ = -never, again_at_ = never,
         last_change_ = 0;
  bool dirty_ = false, room_changed_ = false, stuck_ = false;
};

}  // namespace

outcome simulate(scenario const& what, rules const& by) { return simulation(what, by).run(); }

}  // namespace edl::simulate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "edl/cluster/controller/api_discovery.hpp"
#include "edl/cluster/controller/control.hpp"
#include "edl/cluster/controller/controller.hpp"
#include "edl/cluster/controller/event_sender.hpp"
#include "edl/cluster/controller/leader.hpp"
#include "edl/cluster/controller/limited_requests.hpp"
#include "edl/cluster/controller/work_queue.hpp"
#include "edl/cluster/kubernetes/files.hpp"
#include "edl/cluster/kubernetes/watcher.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/wall_time.hpp"

namespace edl::controller {
struct controller::implementation {
  using steady = std::chrono::steady_clock;
  using weight = inventory_change::weight;

  controller_options const set;
  logger const log;
  mutable metric_registry numbers;
  kubernetes::client watching, asking;

  mutable std::mutex mutex;
  std::condition_variable work, planning;
  control state;
  work_queue queue;
  weight plan_wanted = weight::none;
  std::optional<steady::time_point> plan_at;
  bool stopped = false, discovered = false;
  std::string plan_trouble;
  std::optional<kubernetes::watched_file> prices;  ///< of the thread that makes plans
  std::string price_trouble;                       ///< likewise
  steady::time_point prices_at{};
  execute_options executing;

  std::atomic<steady::time_point> plan_began{steady::time_point{}};
  std::unique_ptr<leader> election_;
  std::atomic<leader*> lead{nullptr};
  limited_requests requests;
  std::optional<event_sender> events;
  std::vector<std::unique_ptr<kubernetes::watcher>> watchers;
  std::vector<std::unique_ptr<kubernetes::watcher>> queue_watchers;  ///< created by `discover`
  std::vector<std::thread> threads;

  /// Delegates, so that the destructor stops the threads already started if a later one cannot start.
  implementation(kubernetes::access const& via, controller_options o, logger l)
      : implementation(std::move(o), std::move(l), via) {
    start(via);
  }

  /// Starts no thread.
  implementation(controller_options o, logger l, kubernetes::access const& via)
      : set(std::move(o)),
        log(std::move(l)),
        watching(via, {.agent = "edl-controller"}),
        // A request in flight when this controller loses the lease times out before another controller may
        // act.
        asking(via, {.timeout = set.times.duration - set.times.renew_deadline,
                     .retry_timeout = std::chrono::milliseconds(0),
                     .agent = "edl-controller"}),
        state(set.planning, set.reconciling, set.space),
        queue(work_queue::options{.slow_at_once = std::max<std::size_t>(1, set.workers / 4)}),
        requests(asking, numbers, set.requests_per_s, set.burst, [this] { return leads(); }) {}

  void start(kubernetes::access const& via) try {
    describe();
    events.emplace(requests, numbers, log);
    election e(set.lease, set.lease_space, set.identity, set.times);
    election_ = std::make_unique<leader>(
        via, std::move(e), fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases", set.lease_space),
        set.lease, set.times, [this](bool) { add_all_jobs(); }, log);
    lead = election_.get();
    add_all_jobs();
    std::string const jobs =
        set.space.empty() ? "/apis/elasticdl.org/v1alpha1/trainingjobs"
                          : fmt::format("/apis/elasticdl.org/v1alpha1/namespaces/{}/trainingjobs", set.space);
    follow(object_kind::job, jobs);
    follow(object_kind::node, "/api/v1/nodes");
    follow(object_kind::pod, "/api/v1/pods");
    follow(object_kind::priority_class, "/apis/scheduling.k8s.io/v1/priorityclasses");
    threads.emplace_back([this] { discover(); });
    for (std::size_t i = 0; i < set.workers; ++i) threads.emplace_back([this] { reconcile_jobs(); });
    if (!set.prices.empty()) prices.emplace(set.prices, "prices of node pools");
    threads.emplace_back([this] { make_plans(); });
  } catch (std::system_error const& e) {
    throw error(fmt::format(
        "cannot start a thread: {}; give the controller more threads or memory, or fewer --workers than {}",
        e.code().message(), set.workers));
  }

  ~implementation() {
    {
      std::lock_guard const lock(mutex);
      stopped = true;
      work.notify_all();
      planning.notify_all();
    }
    watchers.clear();
    watching.stop();
    for (std::thread& t : threads) t.join();
    queue_watchers.clear();
    events.reset();
    if (election_) election_->resign();
  }

  bool leads() const {
    leader* const l = lead;
    return l && l->leads();
  }

  static double now() { return wall_seconds(); }
  static steady::time_point at(double seconds) {
    double const wait = std::clamp(seconds - now(), 0.0, 86'400.0);
    return steady::now() + std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(wait));
  }

  void describe() {
    using kind = metric_type;
    std::vector<double> const times{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10};
    numbers.describe("edl_controller_leader", kind::gauge, "Whether this controller acts.");
    numbers.describe("edl_controller_reconcile_total", kind::counter, "Reconciliations of jobs, by result.");
    numbers.describe("edl_controller_reconcile_duration_seconds", kind::histogram,
                     "Time that the reconciliation of a job took.", times);
    numbers.describe("edl_controller_queue_length", kind::gauge,
                     "Jobs that wait to be reconciled, now or later.");
    numbers.describe("edl_controller_api_requests_total", kind::counter,
                     "Requests to the API server, without watches and the lease.");
    numbers.describe("edl_controller_api_request_duration_seconds", kind::histogram,
                     "Time that a request took.", times);
    numbers.describe("edl_controller_plans_total", kind::counter, "Plans of the autoscaler, by result.");
    numbers.describe("edl_controller_plan_duration_seconds", kind::histogram, "Time that a plan took.",
                     times);
    numbers.describe("edl_controller_events_dropped_total", kind::counter,
                     "Events that were dropped, because too many waited.");
    numbers.describe("edl_controller_nodes", kind::gauge, "Known nodes.");
    numbers.describe("edl_controller_pods", kind::gauge, "Known pods.");
    numbers.describe("edl_trainingjobs", kind::gauge, "TrainingJobs, by phase.");
    numbers.describe("edl_trainingjob_workers_desired", kind::gauge, "Desired workers of all jobs together.");
    numbers.describe("edl_trainingjob_workers_running", kind::gauge, "Running workers.");
    numbers.describe("edl_trainingjob_usd", kind::gauge,
                     "What the workers of all jobs with spec.spot have cost so far.");
  }

  // Changes from the watches.

  void note(inventory_change c) {  // requires the mutex
    auto const when = steady::now();
    for (std::string const& key : c.jobs) queue.add(key, when);
    if (!c.trouble.empty()) log.warning(c.trouble);
    if (!c.jobs.empty()) work.notify_all();
    if (c.plan > plan_wanted) {
      plan_wanted = c.plan;
      planning.notify_all();
    }
  }

  void add_all_jobs() {
    std::lock_guard const lock(mutex);
    auto const when = steady::now();
    for (auto const& [key, e] : state.known().jobs()) queue.add(key, when, true);
    plan_wanted = weight::hard;
    work.notify_all();
    planning.notify_all();
  }

  /// Callbacks that apply a watched list to `store`, which the mutex guards.
  template <class Store, class Kind>
  kubernetes::watcher::callbacks kept_in(Store& store, Kind k) {
    kubernetes::watcher::callbacks to;
    to.begins = [this, &store, k] {
      std::lock_guard const lock(mutex);
      store.begin(k);
    };
    to.one = [this, &store, k](nlohmann::json const& item) {
      std::lock_guard const lock(mutex);
      note(store.put(k, item));
    };
    to.listed = [this, &store, k](nlohmann::json const&, std::string const& version) {
      std::lock_guard const lock(mutex);
      note(store.end(k, version));
    };
    to.changed = [this, &store, k](std::string const& type, nlohmann::json const& object) {
      std::lock_guard const lock(mutex);
      note(type == "DELETED" ? store.remove(k, object) : store.put(k, object));
    };
    return to;
  }

  void follow(object_kind k, std::string const& path) {
    watchers.push_back(
        std::make_unique<kubernetes::watcher>(watching, path, "", kept_in(state.known(), k), log));
  }

  // Kueue, which may be installed after this controller starts.

  void note(kueue::object_store::change const& c) {  // requires the mutex
    auto const keys = state.concerned(c);
    for (std::string const& key : keys) queue.add(key, steady::now());
    if (!keys.empty()) work.notify_all();
  }

  void follow(kueue::kueue_kind k, std::string const& path) {
    auto to = kept_in(state.queues(), k);
    to.refused = [this](kubernetes::api_error const& why, std::chrono::milliseconds, bool) {
      std::lock_guard const lock(mutex);
      if (state.queues().complete() || state.queues().trouble() == why.what()) return;
      state.queues().refused(why.what());
      note(kueue::object_store::change{.all = true});
    };
    queue_watchers.push_back(std::make_unique<kubernetes::watcher>(watching, path, "", std::move(to), log));
  }

  void discover() {
    auto const version = server_of(watching, log);
    std::string const groups = set.reconciling.pod_groups ? pod_group_version(watching, log) : "";
    std::unique_lock lock(mutex);
    executing.restart_rules = kubernetes::knows_restart_rules(version);
    executing.pod_groups = groups;
    discovered = true;
    while (!stopped) {
      lock.unlock();
      auto const there = serves_kueue(watching, log);
      lock.lock();
      if (there && (*there || !state.queues().complete())) {
        state.queues().serves(*there);
        note(kueue::object_store::change{.all = true});
      }
      if (there && *there) break;
      auto const until = steady::now() + std::chrono::seconds(there ? 60 : 2);
      while (!stopped && steady::now() < until) planning.wait_until(lock, until);
    }
    if (stopped) return;
    lock.unlock();
    std::string const base = fmt::format("/apis/{}/", kueue::api_version);
    follow(kueue::kueue_kind::workload,
           base + (set.space.empty() ? "workloads" : fmt::format("namespaces/{}/workloads", set.space)));
    follow(kueue::kueue_kind::flavor, base + "resourceflavors");
    follow(kueue::kueue_kind::priority_class, base + "workloadpriorityclasses");
  }

  // Jobs: each thread reconciles one job at a time, and no two threads the same job.

  bool may_act() const { return state.known().complete() && discovered && leads(); }

  void reconcile_jobs() {
    std::unique_lock lock(mutex);
    while (!stopped) {
      auto const key = may_act() ? queue.take(steady::now()) : std::nullopt;
      if (!key) {
        auto const next = queue.next();
        auto const soon = steady::now() + std::chrono::milliseconds(500);
        if (next && may_act())
          work.wait_until(lock, std::min(*next, soon));
        else
          work.wait_until(lock, soon);
        continue;
      }
      reconcile_job(*key, lock);
    }
  }

  void reconcile_job(std::string const& key, std::unique_lock<std::mutex>& lock) {
    invariant(lock.owns_lock() && events, "a job is reconciled under the mutex, after the setup");
    auto const began = steady::now();
    bool failed = false;
    std::string result = "nothing";
    try {
      auto const task = state.decide(key, now());
      if (task.plan_anew) note(inventory_change{.plan = weight::hard});
      if (!task.decision.notes.empty()) events->send(task.job, task.decision.notes, now());
      if (!task.decision.actions.empty()) {
        auto options = executing;
        lock.unlock();
        execution came;
        try {
          came = execute(requests, task.job, task.decision, options);
        } catch (...) {
          lock.lock();
          throw;
        }
        lock.lock();
        executing.restart_rules = executing.restart_rules && options.restart_rules;
        result = came.stalled.empty() ? "acted" : "stalled";
        if (came.status_written) events->send(task.job, task.decision.events, now());
        note(state.learn(task, came, now()));
        if (came.look_again) queue.add(key, steady::now() + std::chrono::milliseconds(100));
        if (!came.stalled.empty()) log.warning(fmt::format("job {}: {}", key, came.why));
      }
      if (task.decision.again_at) queue.add(key, at(*task.decision.again_at));
    } catch (deposed const&) {
      result = "deposed";
      queue.add(key, steady::now() + std::chrono::seconds(1));
    } catch (std::exception const& e) {
      failed = true;
      result = "failed";
      log.warning(fmt::format("job {}: {}; trying again", key, e.what()));
    }
    invariant(lock.owns_lock(), "the mutex is held again, also after an error");
    auto const took = steady::now() - began;
    queue.done(key, steady::now(), took, failed);
    numbers.add("edl_controller_reconcile_total", fmt::format("result=\"{}\"", result));
    numbers.observe("edl_controller_reconcile_duration_seconds", std::chrono::duration<double>(took).count());
  }

  // Plans.

  void make_plans() {
    std::unique_lock lock(mutex);
    steady::time_point last{};
    steady::duration pause = set.plan_interval;  // limits how much of the time slow plans may take
    while (!stopped) {
      read_new_prices(lock);
      auto const when = steady::now();
      bool const due = plan_wanted == weight::hard || (plan_at && when >= *plan_at) ||
                       (plan_wanted == weight::soft && when >= last + set.report_interval);
      if (!due || !may_act() || when < last + pause) {
        auto until = when + std::chrono::milliseconds(500);
        if (due && may_act()) until = last + pause;
        planning.wait_until(lock, until);
        continue;
      }
      // Reset before the plan is made, so that a change that arrives meanwhile requests another plan.
      plan_wanted = weight::none;
      plan_at.reset();
      make_next_plan(lock);
      last = steady::now();
      pause = std::max<steady::duration>(set.plan_interval, 2 * (last - when));
    }
  }

  void read_new_prices(std::unique_lock<std::mutex>& lock) {
    if (!prices || steady::now() < prices_at) return;
    prices_at = steady::now() + std::chrono::seconds(5);
    lock.unlock();
    std::optional<pool_prices> next;
    try {
      std::string const& text = prices->text();
      if (prices->changed()) next = read_prices(text);
      price_trouble.clear();
    } catch (error const& e) {
      if (std::exchange(price_trouble, e.what()) != e.what())
        log.error(fmt::format("--prices={}: {}; the last known prices apply", set.prices, e.what()));
    }
    lock.lock();
    if (!next) return;
    for (std::string const& key : state.take(std::move(*next))) queue.add(key, steady::now());
    work.notify_all();
  }

  void make_next_plan(std::unique_lock<std::mutex>& lock) {
    auto const began = steady::now();
    double const moment = now();
    auto const view = state.view(moment);
    invariant(plan_began.load() == steady::time_point{}, "one plan is made at a time");
    lock.unlock();  // planning a large cluster takes long, and the view is a copy

    plan_began = began;
    autoscaler::plan p;
    std::string trouble;
    try {
      p = autoscaler::make_plan(view, set.planning);
    } catch (std::exception const& e) {
      trouble = e.what();
    }
    plan_began = steady::time_point{};
    auto const took = std::chrono::duration<double>(steady::now() - began).count();
    numbers.add("edl_controller_plans_total", trouble.empty() ? "result=\"made\"" : "result=\"failed\"");
    numbers.observe("edl_controller_plan_duration_seconds", took);
    lock.lock();
    if (!trouble.empty()) {
      if (trouble != plan_trouble)
        log.error(fmt::format("cannot make a plan: {}; jobs keep their sizes", trouble));
      plan_at = steady::now() + std::chrono::seconds(5);
    } else {
      for (std::string const& key : state.take(p)) queue.add(key, steady::now());
      work.notify_all();
      if (p.again_at) plan_at = at(*p.again_at);
    }
    plan_trouble = trouble;
  }

  std::string text() const {
    {
      std::lock_guard const lock(mutex);
      std::map<std::string, int> phases;
      for (char const* phase :
           {"pending", "creating", "running", "scaling", "suspended", "succeeded", "failed"})
        phases[phase] = 0;
      double desired = 0, running = 0, usd = 0;
      for (auto const& [key, e] : state.known().jobs()) {
        ++phases[phase_of(e.job.status)];
        desired += e.job.status.workers.desired;
        running += e.job.status.workers.running;
        usd += e.job.status.spot.usd;
      }
      for (auto const& [phase, n] : phases)
        numbers.set("edl_trainingjobs", n, fmt::format("phase=\"{}\"", phase));
      numbers.set("edl_trainingjob_workers_desired", desired);
      numbers.set("edl_trainingjob_workers_running", running);
      numbers.set("edl_trainingjob_usd", usd);
      numbers.set("edl_controller_nodes", double(state.known().nodes()));
      numbers.set("edl_controller_pods", double(state.known().pods()));
      numbers.set("edl_controller_queue_length", double(queue.waiting()));
    }
    numbers.set("edl_controller_leader", leads());
    return numbers.text();
  }

  bool healthy(std::string& why) const {
    using namespace std::chrono_literals;
    if (election_->silent() > set.times.duration + 30s) why = "the election makes no progress";
    if (auto const began = plan_began.load(); began != steady::time_point{} && steady::now() - began > 60s)
      why = "a plan has taken more than 60 s";
    return why.empty();
  }
};

EDL_INLINE controller::controller(kubernetes::access via, controller_options o, logger log)
    : self_(std::make_unique<implementation>(via, std::move(o), std::move(log))) {}

EDL_INLINE controller::~controller() = default;

EDL_INLINE bool controller::leads() const { return self_->leads(); }

EDL_INLINE bool controller::ready() const {
  std::lock_guard const lock(self_->mutex);
  return self_->state.known().complete();
}

EDL_INLINE bool controller::healthy(std::string& why) const { return self_->healthy(why); }

EDL_INLINE std::string controller::metrics_text() const { return self_->text(); }

}  // namespace edl::controller

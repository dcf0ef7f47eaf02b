// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/cluster/kueue/kueue.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/wall_time.hpp"

namespace edl::kueue {
namespace detail {

class judgement {
 public:
  judgement(situation const& is, options const& o)
      : situation_(is), job_(is.job), options_(o), now_(stamp_of(is.now)), elastic_(elastic(job_)) {
    out_.queued = !queue_of(job_).empty();
    ceiling_ = job_.spec.workers.replicas.value_or(job_.spec.workers.max);
    all_ = is.workloads;
    std::sort(all_.begin(), all_.end(), [&](workload const* a, workload const* b) {
      return std::pair(workload_number(job_, a->name), a->name) <
             std::pair(workload_number(job_, b->name), b->name);
    });
  }

  assessment run() {
    bool const over = job_.finished() || !job_.deleted.empty();
    if (over || !out_.queued || job_.spec.suspend) {
      wind_up(over);
    } else if (!situation_.served && !gone()) {
      out_.may_start = false;  // pods that run were admitted before Kueue was removed
      out_.reason = "KueueNotServed";
      out_.message = "This cluster no longer has Kueue.";
    } else if (!situation_.served) {
      hold("KueueNotServed",
           fmt::format(
               "label {} names a queue, but this cluster has no Kueue ({}): install it, or remove the label",
               queue_label, api_version));
      out_.stalled = true;
    } else {
      choose();
    }
    return std::move(out_);
  }

 private:
  bool gone() const { return situation_.pods.all == 0; }
  void owe(api_write r) { out_.requests.push_back(std::move(r)); }

  void hold(std::string reason, std::string message) {
    out_.may_run = out_.may_start = false;
    out_.reason = std::move(reason);
    out_.message = printable(message, 4096);
  }

  /// Deletes a Workload. Removes its finalizer last, so a Workload being deleted keeps its quota until then.
  void take_away(workload const& w, char const* why) {
    if (!w.leaving) return owe(kueue::remove(w, why));
    if (w.held) owe(release(w));
  }

  /// Deletes a Workload other than the current one. One with quota stays while the job has pods: Kueue may
  /// have moved the current one's quota to it, and that event may be late.
  void take_if_idle(workload const& w, char const* why) {
    if (!w.reserved() || gone()) take_away(w, why);
  }

  /// Cleans up for a job that needs no quota: it has ended, is suspended, or has left its queue.
  void wind_up(bool over) {
    if (!over && job_.spec.suspend && out_.queued) hold("Suspended", "spec.suspend is true");
    // The pods of a job that has left its queue need no quota.
    bool const keeps_pods = !over && !out_.queued && !job_.spec.suspend;
    if (!gone() && !keeps_pods) return;
    for (workload const* w : all_) {
      if (!over || w->leaving || !job_.deleted.empty()) {
        take_away(*w, "the job needs no quota");
      } else if (!w->finished()) {
        bool const good = kubernetes::is_true(job_.status, kubernetes::condition_type::succeeded);
        kubernetes::condition const* const how = kubernetes::find_condition(
            job_.status, good ? kubernetes::condition_type::succeeded : kubernetes::condition_type::failed);
        owe(set_condition(*w, "Finished", true, good ? "Succeeded" : "Failed", how ? how->message : "",
                          now_));
      } else if (w->held) {
        owe(release(*w));
      }
    }
  }

  // Choice of the current Workload.

  void choose() {
    std::vector<workload const*> waiting, reserved;
    workload const *replaced = nullptr, *done = nullptr, *current = nullptr;
    for (workload const* w : all_) {
      if (w->finished()) {
        std::string const& how = w->find("Finished")->reason;
        (how == "WorkloadSliceReplaced" || how == "OutOfSync" ? replaced : done) = w;
      } else {
        (w->reserved() ? reserved : waiting).push_back(w);
      }
    }
    // A slice replaces its predecessor once it is admitted.
    for (workload const* w : reserved)
      if (!current || (w->admitted() && !w->evicted()) || !current->admitted() || current->evicted())
        current = w;
    for (workload const* w : reserved) {
      if (w == current) continue;
      bool const before = workload_number(job_, w->name) < workload_number(job_, current->name);
      (before ? older_ : waiting).push_back(w);
    }
    if (current)
      has_quota(*current, waiting, replaced);
    else if (!waiting.empty())
      waits(waiting);
    else if (done)
      was_finished(*done);
    else
      none();
  }

  /// Deletes replaced slices. They must stay until the job runs on the slice that replaced them.
  void clean() {
    for (workload const* w : all_)
      if (w->finished()) take_away(*w, "another slice has replaced it");
  }

  void none() {
    if (!gone()) return hold("NotQueued", "The job's pods stop before it is queued: they have no quota.");
    hold("Queued", fmt::format("The job enters queue {}.", queue_of(job_)));
    auto const priority = resolved();
    if (!priority) return;
    std::uint32_t n = 0;
    for (workload const* w : all_) n = std::max(n, workload_number(job_, w->name));
    owe(create(job_, n + 1, first_ask(), *priority));
  }

  /// Handles a Workload that somebody else marked Finished while the job has not ended.
  void was_finished(workload const& w) {
    kubernetes::condition const* const how = w.find("Finished");
    hold("WorkloadFinished", fmt::format("Workload {} is finished ({}: {}): delete it to queue the job again",
                                         w.name, how->reason, how->message));
    out_.stalled = true;
    if (gone() && w.held) owe(release(w));
  }

  std::optional<priority_choice> resolved() {
    priority_choice p = requested_priority(job_);
    auto const value = situation_.priority ? situation_.priority(p) : std::optional<std::int64_t>(0);
    if (!value && out_.may_run) return std::nullopt;  // the job keeps running but does not grow
    if (!value) {
      hold("NoPriorityClass", fmt::format("{} {} does not exist: create it, or name another",
                                          p.of_kueue ? "WorkloadPriorityClass" : "PriorityClass", p.name));
      out_.stalled = true;
      return std::nullopt;
    }
    p.value = *value;
    return p;
  }

  worker_ask first_ask() const {
    if (elastic_) return {job_.spec.workers.min};
    return {ceiling_, job_.spec.workers.min};
  }

  // A current Workload without quota.

  void waits(std::vector<workload const*> const& waiting) {
    // A slice requests more than the job needs to start, so it ranks last.
    auto const rank = [](workload const* w) { return std::pair(w->leaving, !w->replaces.empty()); };
    workload const& w = **std::min_element(waiting.begin(), waiting.end(),
                                           [&](auto* a, auto* b) { return rank(a) < rank(b); });
    for (workload const* other : all_)
      if (other != &w && gone()) take_away(*other, "the job has another one");
    kubernetes::condition const* const said = w.find("QuotaReserved");
    if (!w.active)
      hold("Deactivated", fmt::format("Workload {} is not active: set its spec.active to true", w.name));
    else
      hold("Queued", fmt::format("The job waits in queue {}{}{}", w.queue,
                                 said && !said->message.empty() ? ": " : ".", said ? said->message : ""));
    if (!gone()) return;
    if (w.leaving || !w.replaces.empty())
      return take_away(w, "the job requests only the quota that it needs to start");
    auto const priority = resolved();
    if (!priority) return;
    worker_ask const ask = first_ask();
    pod_set const* const workers = w.set(workers_set);
    // A server without partial admission drops minCount.
    std::uint32_t const least = std::min(ask.least.value_or(ask.count), ask.count);
    bool const same = describes(w, job_) && workers->count == ask.count &&
                      workers->min_count.value_or(least) == least && w.queue == queue_of(job_) &&
                      w.priority_class == priority->name;
    if (!same) owe(rewrite(w, job_, ask, *priority));
  }

  // A current Workload with quota.

  void has_quota(workload const& w, std::vector<workload const*> const& waiting, workload const* replaced) {
    bool const fits = describes(w, job_);
    if (w.leaving)
      hold("WorkloadDeleted", fmt::format("Workload {} is being deleted: the job is queued again.", w.name));
    else if (w.evicted())
      hold("Evicted", fmt::format("Kueue has evicted Workload {} ({}): {}", w.name, w.find("Evicted")->reason,
                                  w.find("Evicted")->message));
    else if (!w.active)
      hold("Deactivated", fmt::format("Workload {} is not active: set its spec.active to true", w.name));
    else if (!fits)
      hold(
          "WorkloadOutOfDate",
          fmt::format(
              "Workload {} was admitted for pods that differ from those of the job: the job is queued again.",
              w.name));
    else if (!w.admitted() && !goes_on(w, replaced))
      hold("AdmissionChecks", checks_of(w));
    if (!out_.may_run) {
      for (workload const* s : waiting) take_if_idle(*s, "the job stops, so it does not grow");
      for (workload const* s : older_)
        if (gone()) take_away(*s, "the job has another one");
      if (gone()) let_go(w, fits);
      return;
    }
    out_.most_workers = std::max(bound_of(w, replaced), job_.spec.workers.min);
    if (!w.admitted()) return;
    for (workload const* s : older_) finish_slice(*s, w);
    clean();
    inject(w);
    if (!out_.may_run) return;
    if (elastic_)
      follow(w, waiting);
    else
      keep_one(w, waiting);
    tell_ready(w, ready());
  }

  /// Whether pods continue on a Workload that is not admitted: it replaced a slice, took over its quota, and
  /// waits for its admission checks.
  bool goes_on(workload const& w, workload const* replaced) const {
    return replaced && !gone() && w.replaces == replaced->space + "/" + replaced->name;
  }

  std::uint32_t bound_of(workload const& w, workload const* replaced) const {
    if (w.admitted()) return w.granted(workers_set);
    pod_set const* const before = replaced ? replaced->set(workers_set) : nullptr;
    return std::min(w.granted(workers_set), before ? before->count : situation_.pods.workers);
  }

  std::string checks_of(workload const& w) const {
    kubernetes::condition const* const said = w.find("Admitted");
    return fmt::format("Workload {} has quota in {} and waits for its admission checks{}{}", w.name,
                       w.cluster_queue, said ? ": " : ".", said ? said->message : "");
  }

  /// Returns quota: the last pod is gone, and the job must not run on this Workload.
  void let_go(workload const& w, bool fits) {
    if (w.leaving || !fits) return take_away(w, "the job is queued again");
    if (w.evicted()) owe(give_back(w, now_));
    // Kueue evicts an inactive Workload itself; one with pending checks keeps its quota.
  }

  /// Marks a replaced slice Finished; Kueue may not have done so.
  void finish_slice(workload const& s, workload const& by) {
    if (s.leaving) return take_away(s, "");
    owe(set_condition(s, "Finished", true, "WorkloadSliceReplaced",
                      fmt::format("Workload {} has replaced it.", by.name), now_));
  }

  void inject(workload const& w) {
    if (!w.admission) {
      out_.may_start = false;
      out_.reason = "NoAssignment";
      out_.message = fmt::format("Workload {} is admitted, but its status has no assignment.", w.name);
      return;
    }
    for (auto const& [set, given] : *w.admission) {
      pod_changes& all = out_.changes[set];
      for (std::string const& name : given.flavors) {
        pod_changes const* const f = situation_.flavor ? situation_.flavor(name) : nullptr;
        if (!f) {
          out_.may_start = false;
          out_.reason = "NoResourceFlavor";
          out_.message = fmt::format("ResourceFlavor {} of Workload {} is not known yet.", name, w.name);
        } else if (std::string const key = merge(all, *f); !key.empty()) {
          return cannot_start(w, fmt::format("its flavors differ in {}", key));
        }
      }
      if (auto const more = w.updates.find(set); more != w.updates.end())
        for (pod_changes const& u : more->second)
          if (std::string const key = merge(all, u); !key.empty())
            return cannot_start(w, fmt::format("an admission check and a flavor differ in {}", key));
      pod_set const* const s = w.set(set);
      if (!s) continue;
      if (auto const t = with_changes(s->pods, all); !t.conflict.empty())
        return cannot_start(w, fmt::format("the template of its {} contradicts it in {}", set, t.conflict));
    }
  }

  /// Reports an assignment that contradicts the pods' templates. A retry cannot help.
  void cannot_start(workload const& w, std::string const& why) {
    std::string const words =
        fmt::format("The pods cannot use the assignment of Workload {}: {}", w.name, why);
    if (!gone()) {  // running pods were created with an earlier assignment
      out_.may_start = false;
      out_.reason = "FailedToStart";
      out_.message = words;
      return;
    }
    hold("FailedToStart", words);
    out_.stalled = true;
    owe(set_condition(w, "Finished", true, "FailedToStart", out_.message, now_));
  }

  bool ready() const {
    return situation_.pods.master_ready && situation_.pods.servers_running >= job_.spec.servers &&
           situation_.pods.workers_running >= job_.spec.workers.min;
  }

  /// Reports whether the pods run. Kueue may evict a job whose pods are not ready in time (waitForPodsReady).
  void tell_ready(workload const& w, bool yes) {
    kubernetes::condition const* const was = w.find("PodsReady");
    if (was ? (was->status == kubernetes::truth::yes) == yes : !yes) return;
    bool const again = was && was->status == kubernetes::truth::no && was->reason == "WaitForRecovery";
    if (yes)
      owe(set_condition(w, "PodsReady", true, again ? "Recovered" : "Started", "The job's pods run.", now_));
    else
      owe(set_condition(w, "PodsReady", false, "WaitForRecovery", "Less than the job's least size runs.",
                        now_));
  }

  /// Handles quota of fixed size: quota returned stays lost until the job is queued anew.
  void keep_one(workload const& w, std::vector<workload const*> const& waiting) {
    for (workload const* s : waiting) take_if_idle(*s, "the job has another one");
    std::uint32_t const have = w.granted(workers_set), need = std::max(ceiling_, situation_.pods.workers);
    pod_set const* const workers = w.set(workers_set);
    if (need < have) owe(reclaim(w, workers_set, workers->count - need));
  }

  // Elastic quota.

  void follow(workload const& w, std::vector<workload const*> const& waiting) {
    std::uint32_t const have = w.granted(workers_set);
    std::uint32_t const want = std::clamp(situation_.wanted, job_.spec.workers.min, ceiling_);
    workload const* slice = nullptr;
    for (workload const* s : waiting) {
      bool const next = !slice && (!s->leaving || s->reserved()) && s->replaces == w.space + "/" + w.name &&
                        describes(*s, job_);
      // The plan's size for the job fluctuates, so a young slice is kept.
      double const until = seconds_of(s->created).value_or(situation_.now) + options_.slice_timeout;
      bool const young = !s->leaving && !s->reserved() && situation_.now < until;
      if (next && (want > have || young))
        slice = s;
      else
        take_if_idle(*s, "the job does not grow by it");
      if (next && want <= have && young) look_again(until);
    }
    std::uint32_t const least = std::max(want, situation_.pods.workers);
    if (least < have) return owe(resize(w, workers_set, least));
    if (want <= have) return;
    if (!slice) {
      auto const priority = resolved();
      if (!priority) return;
      std::uint32_t n = 0;
      for (workload const* s : all_) n = std::max(n, workload_number(job_, s->name));
      return owe(create(job_, n + 1, {want}, *priority, &w));
    }
    if (slice->reserved()) return;
    std::uint32_t const asks = slice->set(workers_set)->count, ask = ask_of(*slice, have, want, asks);
    if (asks != ask) owe(resize(*slice, workers_set, ask));
  }

  /// Kueue admits a slice as a whole or not at all. To get what is available soon, this halves the growth of
  /// a slice that Kueue refused, and asks for a single worker once Kueue has not decided within
  /// `slice_timeout`.
  std::uint32_t ask_of(workload const& slice, std::uint32_t have, std::uint32_t want, std::uint32_t asks) {
    kubernetes::condition const* const said = slice.find("QuotaReserved");
    bool const refused =
        said && said->status == kubernetes::truth::no && said->observed_generation == slice.generation;
    double const since = seconds_of(slice.created).value_or(situation_.now);
    if (situation_.now >= since + options_.slice_timeout) return have + 1;
    look_again(since + options_.slice_timeout);
    asks = std::clamp(asks, have + 1, want);
    return refused ? have + (asks - have + 1) / 2 : asks;
  }

  void look_again(double at) { out_.again_at = std::min(out_.again_at.value_or(at), at); }

  situation const& situation_;
  kubernetes::training_job const& job_;
  options const& options_;
  std::string now_;
  bool elastic_;
  std::uint32_t ceiling_ = 1;
  std::vector<workload const*> all_;
  std::vector<workload const*> older_;  ///< they have quota, and the current one is to replace them
  assessment out_;
};

}  // namespace detail

EDL_INLINE assessment judge(situation const& is, options const& o) { return detail::judgement(is, o).run(); }

EDL_INLINE std::vector<api_write> judge_orphan(workload const& w, std::uint32_t pods) {
  if (pods > 0) return {};
  if (!w.leaving) return {};  // the API server collects it
  return w.held ? std::vector<api_write>{release(w)} : std::vector<api_write>{};
}

}  // namespace edl::kueue

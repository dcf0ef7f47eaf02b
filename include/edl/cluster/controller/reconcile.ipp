// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

#include "edl/cluster/controller/job_status.hpp"
#include "edl/cluster/controller/reconcile.hpp"
#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/cluster/kueue/podgroup.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/wall_time.hpp"

namespace edl::controller {
namespace detail {

namespace ct = kubernetes::condition_type;

/// Reasons of the condition Running that determine the next step.
namespace run {
inline constexpr char not_started[] = "NotStarted", starting[] = "Starting", runs[] = "MasterRuns",
                      lost[] = "MasterLost", attempt_failed[] = "AttemptFailed", suspended[] = "Suspended",
                      finished[] = "Finished";
}

class reconciler {
 public:
  reconciler(job_situation const& is, job_memo& memo, reconcile_options const& o)
      : situation_(is), job_(is.entry.job), memo_(memo), options_(o), next_(job_.status), now_(is.now) {
    if (is.master && is.master->owner == job_.uid && is.master->master) master_ = is.master;
  }

  decision run() {
    if (!job_.deleted.empty()) {
      if (master_ && master_->held) out_.actions.push_back(release_pod{master_->name(), master_->uid});
      add_kueue_requests();
      return std::move(out_);
    }
    if (!job_.ours()) return std::move(out_);
    next_.observed_generation = job_.generation;
    next_.selector = fmt::format("elasticdl-job-name={},elasticdl-replica-type=worker", job_.name);
    if (memo_.generation != job_.generation) memo_.stalled.clear(), memo_.generation = job_.generation;
    if (!situation_.entry.invalid.empty()) {
      stall("InvalidSpec", situation_.entry.invalid);
    } else if (job_.spec.spot && situation_.queue) {
      stall("InvalidSpec",
            "spec.spot chooses the nodes of workers, and so does Kueue: remove spec.spot, or the "
            "job's queue");
    } else if (!job_.finished()) {
      advance();
    }
    if (is_finished()) clean_up();
    remove_lost_pods();
    tell_of_pressure();
    update_status();
    return take_decision();
  }

 private:
  bool is_finished() const { return is_true(next_, ct::succeeded) || is_true(next_, ct::failed); }

  void set(std::string_view type, bool yes, std::string reason, std::string message) {
    set_condition(next_, {.type = std::string(type),
                          .status = yes ? kubernetes::truth::yes : kubernetes::truth::no,
                          .reason = std::move(reason),
                          .message = std::move(message),
                          .last_transition_time = stamp_of(now_),
                          .observed_generation = job_.generation});
  }
  std::string reason_of(std::string_view type) const {
    auto const* c = find_condition(next_, type);
    return c ? c->reason : std::string();
  }
  void stall(std::string const& reason, std::string const& why) {
    stalled_ = true;
    set(ct::stalled, true, reason, why);
  }

  // Pods.

  /// Deletes a pod that is no longer needed.
  void discard(pod_record const& p, bool force = false) {
    if (!p.leaving || force) out_.actions.push_back(delete_pod{p.name(), p.uid, force});
    bool const ended = p.at == pod_record::phase::over || (p.master && !p.master->started);
    if (p.held && (ended || force)) out_.actions.push_back(release_pod{p.name(), p.uid});
  }
  void discard_members() {
    for (pod_record const* p : situation_.members)
      if (!p->leaving) discard(*p);
  }

  bool node_answers(pod_record const& p) const {
    return p.node.empty() || situation_.state_of(p.node) == inventory::node_state::ready;
  }

  /// Deletes pods by force that a lost node cannot release.
  void remove_lost_pods() {
    std::map<std::string, double> gone;
    auto const check = [&](pod_record const& p) {
      if (p.node.empty()) return;
      auto const node = situation_.state_of(p.node);
      if (node == inventory::node_state::ready) return;
      bool const late = p.leaving && now_ >= p.leave_by;
      if (p.leaving && !late) out_.look_again(p.leave_by);
      if (node == inventory::node_state::gone) {
        auto const known = memo_.nodes_gone.find(p.node);
        double const since = gone[p.node] = known == memo_.nodes_gone.end() ? now_ : known->second;
        if (now_ - since < options_.node_timeout) return out_.look_again(since + options_.node_timeout);
        if (p.at == pod_record::phase::over && is_finished()) return;
        discard(p, true);
      } else if (late) {
        discard(p, true);
      }
    };
    for (pod_record const* p : situation_.members) check(*p);
    if (master_) check(*master_);
    memo_.nodes_gone = std::move(gone);
  }

  /// A kubelet short of a resource evicts pods. Reports each node once per episode. Notifies the master about
  /// those that run its workers.
  void tell_of_pressure() {
    if (!situation_.pressure_of) return;
    std::map<std::string, std::string> nodes;
    std::set<std::string> of_workers;
    auto const look = [&](pod_record const& p) {
      if (p.node.empty() || p.at == pod_record::phase::over) return;
      std::string what = situation_.pressure_of(p.node);
      if (what.empty()) return;
      if (p.who.role == role::worker) of_workers.insert(fmt::format("{}={}", p.node, what));
      if (!nodes.emplace(p.node, what).second) return;
      if (auto const noted = memo_.nodes_short.find(p.node);
          noted == memo_.nodes_short.end() || noted->second != what)
        out_.notes.push_back({true, "NodePressure",
                              fmt::format("node {}, on which {} runs, has {}: pods may be evicted from it",
                                          p.node, p.name(), what)});
    };
    for (pod_record const* p : situation_.members) look(*p);
    if (master_) look(*master_);
    memo_.nodes_short = std::move(nodes);
    std::string const noted = fmt::format("{}", fmt::join(of_workers, ";"));
    if (!master_ || master_->leaving || master_->at == pod_record::phase::over ||
        master_->master->short_nodes == noted)
      return;
    std::optional<std::string> note;
    if (!noted.empty()) note = noted;
    out_.actions.push_back(
        annotate_master{master_->name(), master_->uid, {{annotation::short_nodes, std::move(note)}}});
  }

  // The life of the job.

  void end_job(std::string_view type, std::string reason, std::string message) {
    set(type, true, std::move(reason), std::move(message));
    set(ct::running, false, run::finished, "The job has ended.");
    set(ct::resizing, false, run::finished, "");
    set(ct::stalled, false, run::finished, "");
    next_.completion_time = stamp_of(now_);
    memo_.stalled.clear();
  }

  /// Removes the pods of a finished job. Keeps the pod of a master that exited by itself, for inspection.
  void clean_up() {
    discard_members();
    if (master_ && !master_->leaving && (master_->at != pod_record::phase::over || master_->outlived))
      discard(*master_);
    if (master_ && master_->held && (master_->at == pod_record::phase::over || !master_->master->started))
      out_.actions.push_back(release_pod{master_->name(), master_->uid});
    if (auto const ttl = job_.spec.ttl_seconds_after_finished) {
      double const at = seconds_of(next_.completion_time).value_or(now_) + double(*ttl);
      if (now_ >= at)
        out_.actions.push_back(delete_job{});
      else
        out_.look_again(at);
    }
  }

  void advance() {
    if (!job_.spec.suspend && !held_by_kueue()) place_workers();
    if (master_ && master_->at == pod_record::phase::over) record_end();
    if (master_ && crashes_in_place(*master_))
      fail_attempt(master_->master->attempt,
                   "crashes whenever its kubelet starts it again: " + master_->trouble);
    if (is_finished()) return;
    if (job_.spec.suspend || held_by_kueue() || waits_for_pool()) return suspend();
    memo_.suspend_since = 0;
    if (is_true(next_, ct::suspended)) set(ct::suspended, false, "Resumed", "The job goes on.");
    if (overdue()) return;
    if (!is_true(next_, ct::admitted) && !admit()) return;
    choose_size();
    if (master_)
      keep_master();
    else
      make_master();
  }

  /// Chooses the pool of nodes for the workers.
  void place_workers() {
    if (!job_.spec.spot) return void(next_.spot = {});
    bool const no_room =
        !master_ && situation_.plan && !situation_.plan->admitted && !situation_.plan->suspended;
    std::optional<double> still;
    if (master_ && master_->master->report) still = master_->master->report->standstill_s;
    auto step = choose_pool({.job = job_,
                             .members = situation_.members,
                             .standstill = still,
                             .leaving_nodes = master_ ? master_->master->leaving_nodes : std::string(),
                             .no_room = no_room,
                             .prices = situation_.prices,
                             .nodes_with = situation_.nodes_with,
                             .now = now_},
                            memo_.pools, next_, options_.pools);
    out_.look_again(step.again_at);
    if (step.event) out_.events.push_back(std::move(*step.event));
  }

  bool waits_for_pool() const { return job_.spec.spot && next_.spot.pool == kubernetes::no_pool; }

  /// Evaluates the exit of the master's pod, if the pod belongs to the current attempt.
  void record_end() {
    master_state const& m = *master_->master;
    if (m.attempt != std::max(1u, next_.attempts)) return;
    if (m.ending.code == 0 && !m.ending.outside && m.ending.signal == 0)
      return end_job(ct::succeeded, "MasterFinished", "All is done.");
    if (m.ending.code == platform::suspended && !m.ending.outside)
      return set(ct::running, false, run::suspended, "The master has suspended the job.");
    std::string const how = platform::describe(m.ending);
    // Killed for lack of memory, or superseded by another master: not the attempt's fault.
    bool const taken = m.ending.code == 128 + SIGKILL || m.ending.code == platform::gave_up_waiting;
    bool const crashed = m.ending.signal != 0 && m.ending.signal != SIGKILL && m.ending.signal != SIGTERM;
    if (m.ending.outside || taken || (m.ending.signal != 0 && !(crashed && crashes_too_often())))
      return set(ct::running, false, run::lost, fmt::format("The master {}.", how));
    fail_attempt(m.attempt, how);
  }

  bool crashes_in_place(pod_record const& p) const {
    master_state const& m = *p.master;
    return p.at != pod_record::phase::over && !p.leaving && !m.ready && !p.trouble.empty() &&
           m.crashes >= options_.most_crashes && m.attempt == std::max(1u, next_.attempts);
  }

  /// Whether one more early crash of a master exhausts the limit.
  bool crashes_too_often() const {
    return now_ - memo_.master_since < options_.steady && memo_.early_losses + 1 >= options_.most_crashes;
  }

  void fail_attempt(std::uint32_t attempt, std::string const& how) {
    memo_.early_losses = 0;
    if (attempt > job_.spec.backoff_limit)
      return end_job(
          ct::failed, "BackoffLimitExceeded",
          fmt::format("Attempt {} has failed, and spec.backoffLimit={} allows no more: the master {}.",
                      attempt, job_.spec.backoff_limit, how));
    next_.attempts = attempt + 1;
    set(ct::running, false, run::attempt_failed,
        fmt::format("Attempt {} has failed: the master {}.", attempt, how));
    double const pause =
        std::min(options_.longest_backoff, options_.first_backoff * double(1u << std::min(attempt - 1, 20u)));
    memo_.pause_until = now_ + pause;
  }

  bool overdue() {
    auto const limit = job_.spec.active_deadline_seconds;
    auto const since = seconds_of(next_.start_time);
    if (!limit || !since) return false;
    double const until = *since + double(*limit) - double(next_.active_seconds);
    if (now_ < until) {
      out_.look_again(until);
      return false;
    }
    end_job(ct::failed, "DeadlineExceeded",
            fmt::format("The job was active for longer than spec.activeDeadlineSeconds={}.", *limit));
    return true;
  }

  /// Whether Kueue forbids the job to run.
  bool held_by_kueue() const { return situation_.queue && !situation_.queue->may_run; }

  void add_kueue_requests() {
    if (!situation_.queue) return;
    for (kueue::api_write const& r : situation_.queue->requests) {
      out_.actions.push_back(ask_kueue{r});
      if (!r.why.empty()) out_.events.push_back({false, "Kueue", r.why});
    }
    if (situation_.queue->again_at) out_.look_again(*situation_.queue->again_at);
  }

  void suspend() {
    if (held_by_kueue() && situation_.queue->stalled)
      stall(situation_.queue->reason, situation_.queue->message);
    bool const running =
        master_ && master_->at != pod_record::phase::over && master_->master->started && !master_->leaving;
    if (running) {
      if (memo_.suspend_since == 0) memo_.suspend_since = now_;
      set(ct::suspended, false, "Suspending", "The master is suspending the job.");
      if (now_ - memo_.suspend_since >= options_.suspend_timeout) {
        discard(*master_);
      } else {
        if (!master_->master->suspending)
          out_.actions.push_back(
              annotate_master{master_->name(), master_->uid, {{annotation::suspend, "true"}}});
        out_.look_again(memo_.suspend_since + options_.suspend_timeout);
      }
      return;
    }
    memo_.suspend_since = 0;
    if (master_) discard(*master_);
    discard_members();
    if (master_ || !situation_.members.empty()) {
      set(ct::suspended, false, "Suspending", "Pods of the job still exist.");
      return;
    }
    memo_.stalled.clear();  // retry what was refused when the job resumes
    bool const was_in = is_true(next_, ct::admitted);
    if (job_.spec.suspend) {
      if (is_true(next_, ct::suspended)) return;
      set(ct::suspended, true, "Suspended", "The job has no pods until spec.suspend is false.");
      set(ct::admitted, false, "Suspended", "The job is suspended.");
    } else {  // it waits without being suspended
      bool const queued = held_by_kueue();
      if (find_condition(next_, ct::suspended))
        set(ct::suspended, false, "Queued",
            queued ? "Kueue decides when the job runs." : "The job waits for machines.");
      set(ct::admitted, false, queued ? situation_.queue->reason : "WaitsForPool",
          queued ? situation_.queue->message : next_.spot.reason);
      if (!was_in) return;
    }
    set(ct::running, false, run::suspended, "The job is suspended.");
    set(ct::resizing, false, "Suspended", "");
    if (auto const since = seconds_of(next_.start_time))
      next_.active_seconds += std::uint64_t(std::max(0.0, now_ - *since));
    next_.start_time.clear();
    next_.workers.desired = 0;
  }

  /// Returns whether the job is admitted.
  bool admit() {
    // An existing master shows that the job was admitted, although that status was lost.
    bool const has_master = master_ && !master_->leaving && master_->at != pod_record::phase::over;
    if (!has_master && !memo_.stalled.empty() && now_ < memo_.retry_at) {
      set(ct::admitted, false, memo_.stalled, memo_.why);
      wait_after_refusal();
      return false;
    }
    if (!has_master && (!situation_.plan || !situation_.plan->admitted)) {
      // A plan that treated the job as suspended has not looked for room. The next one will.
      if (situation_.plan && !situation_.plan->suspended)
        set(ct::admitted, false, "NoRoom", situation_.plan->reason);
      return false;
    }
    set(ct::admitted, true, "Admitted", "The cluster has room for the job's pods at its minimum size.");
    if (next_.start_time.empty()) next_.start_time = stamp_of(now_);
    next_.attempts = std::max(1u, next_.attempts);
    if (!find_condition(next_, ct::running))
      set(ct::running, false, run::not_started, "No master has been made yet.");
    if (has_master && !situation_.plan) next_.workers.desired = size_of_master();
    return true;
  }

  /// Reports what the API server has refused, and retries later.
  void wait_after_refusal() {
    stall(memo_.stalled, memo_.why);
    if (now_ < memo_.retry_at) out_.look_again(memo_.retry_at);
  }

  /// Sets the job's desired number of workers.
  void choose_size() {
    kubernetes::worker_range const& range = job_.spec.workers;
    std::uint32_t least = range.replicas.value_or(range.min), most = range.replicas.value_or(range.max);
    if (situation_.queue && situation_.queue->most_workers) {
      most = std::max(range.min, std::min(most, *situation_.queue->most_workers));
      least = std::min(least, most);
    }
    std::uint32_t want = next_.workers.desired;
    std::string why;
    if (situation_.plan && situation_.plan->admitted)
      want = std::uint32_t(std::max(0, situation_.plan->workers)), why = situation_.plan->reason;
    std::uint32_t const planned = std::exchange(want, std::clamp(want, least, most));
    if (want == next_.workers.desired) return;
    // The plan may be older than the spec, so its reason may refer to another size.
    if (range.replicas == want)
      why = "its owner set this size";
    else if (planned != want)
      why = want < planned && situation_.queue && situation_.queue->most_workers
                ? "Kueue has admitted no more"
                : "the spec allows no other size";
    add_scale_record(next_, {stamp_of(now_), next_.workers.desired, want, why});
    memo_.leave.clear();
    if (want < next_.workers.desired && situation_.plan) memo_.leave = leaving_workers();
    out_.events.push_back(
        {false, "Scaled", fmt::format("{} -> {}: {}", next_.workers.desired, counted(want, "worker"), why)});
    next_.workers.desired = want;
  }

  /// The size last requested of the master.
  std::uint32_t size_of_master() const {
    master_state const& m = *master_->master;
    if (auto const requested_size = kubernetes::number(m.requested_size)) return *requested_size;
    return m.size ? m.size->workers : m.first_size;
  }

  /// Whether a master that replaced another may have adopted workers without reporting their number.
  static bool may_have_adopted(master_state const& m) {
    return m.restart > 0 && !m.size && m.requested_size.empty();
  }

  /// Handles an existing master's pod.
  void keep_master() {
    master_state const& m = *master_->master;
    bool const old = m.attempt < next_.attempts, over = master_->at == pod_record::phase::over;
    if (old) {
      discard(*master_);
      return discard_members();
    }
    if (over) {
      discard(*master_);
      if (m.ending.code == platform::suspended) discard_members();
      return;
    }
    next_.restarts = m.restart;
    memo_.pause_until = 0;
    if (std::exchange(memo_.master, master_->uid) != master_->uid) memo_.master_since = now_;
    if (master_->leaving) {
      set(ct::running, false, run::lost, "The master's pod is being removed.");
      // The pod has no node, so no kubelet will report its end.
      if (master_->held && master_->node.empty())
        out_.actions.push_back(release_pod{master_->name(), master_->uid});
      return;
    }
    if (m.suspending)
      out_.actions.push_back(annotate_master{master_->name(), master_->uid, {{annotation::suspend, {}}}});
    // A master may fail a probe briefly: without known trouble it still counts as running.
    bool const runs = m.ready || (is_true(next_, ct::running) && master_->trouble.empty());
    if (!node_answers(*master_))
      set(ct::running, false, run::lost,
          fmt::format("Node {} of the master no longer responds; its pods go when the cluster gives it up.",
                      master_->node));
    else if (runs)
      set(ct::running, true, run::runs, "The master runs.");
    else
      set(ct::running, false, run::starting,
          master_->trouble.empty() ? "The master's pod starts." : master_->trouble);
    memo_.stalled.clear();
    if (!runs && !master_->hopeless.empty())
      stall(master_->hopeless, master_->trouble +
                                   ": bring the image to the nodes, or delete the job and name another in "
                                   "spec.master.template");
    else if (!m.missing.empty())
      stall(m.missing.find("exceeded quota") != std::string::npos ? "QuotaExceeded" : "MemberRefused",
            m.missing + "; the job needs this pod, and the master goes on asking for it");
    if (options_.pod_groups) open_gang_once();
    tell_of_pool(m);
    resize(m);
  }

  void tell_of_pool(master_state const& m) {
    std::string const pool = pool_selector(job_, next_);
    if (m.pool == pool) return;
    std::optional<std::string> note;
    if (!pool.empty()) note = pool;
    out_.actions.push_back(
        annotate_master{master_->name(), master_->uid, {{annotation::pool, std::move(note)}}});
  }

  /// Opens the gang, and repeats that each minute while a member waits for a node: a request may be lost.
  void open_gang_once() {
    std::uint32_t placed = 0, waiting = 0;
    for (pod_record const* p : situation_.members)
      if (p->at != pod_record::phase::over) ++(p->node.empty() ? waiting : placed);
    if (placed < kueue::gang_size(job_)) return;
    if (memo_.gang_opened == 0 || (waiting > 0 && now_ >= memo_.gang_opened + 60)) {
      memo_.gang_opened = now_;
      out_.actions.push_back(open_gang{});
    }
    if (waiting > 0) out_.look_again(memo_.gang_opened + 60);
  }

  /// The workers that the plan chose to remove when it shrank the job.
  std::vector<std::uint32_t> leaving_workers() const {
    std::set<std::uint32_t> ids;
    for (std::string const& key : situation_.plan->leaving)
      for (pod_record const* p : situation_.members)
        if (p->key == key && p->who.role == role::worker && !p->leaving) ids.insert(p->who.id);
    return {ids.begin(), ids.end()};
  }

  void request_size(master_state const& m, std::string const& want) {
    std::map<std::string, std::optional<std::string>> notes{{annotation::num_workers, want}};
    std::uint32_t const has = m.size ? m.size->workers : m.first_size;
    bool const fewer = next_.workers.desired < has;
    // The desired size may have changed since the plan chose which workers leave.
    if (fewer && memo_.leave.size() > has - next_.workers.desired)
      memo_.leave.resize(has - next_.workers.desired);
    if (fewer && !memo_.leave.empty())
      notes[annotation::leave] = fmt::format("{}", fmt::join(memo_.leave, ","));
    else if (!m.leave.empty())
      notes[annotation::leave] = std::nullopt;
    if (auto const& all = next_.scale_records; !all.empty() && all.front().to == next_.workers.desired)
      notes[annotation::why] = all.front().reason;
    memo_.requested_size = want;
    memo_.size_refused_until = now_ + options_.refusal_backoff;
    out_.actions.push_back(annotate_master{master_->name(), master_->uid, std::move(notes)});
  }

  void resize(master_state const& m) {
    std::string const want = std::to_string(next_.workers.desired);
    bool const refused = m.requested_size.empty() && m.scaled.starts_with("refused") &&
                         size_of_master() != next_.workers.desired;
    if (refused && memo_.requested_size == want && now_ < memo_.size_refused_until)
      out_.look_again(memo_.size_refused_until);
    else if (size_of_master() != next_.workers.desired || may_have_adopted(m))
      request_size(m, want);
    std::uint32_t running = 0;
    for (pod_record const* p : situation_.members)
      running += p->who.role == role::worker && p->at == pod_record::phase::running && !p->leaving;
    bool const complete = is_true(next_, ct::running) && running == next_.workers.desired &&
                          m.requested_size.empty() && (!m.size || m.size->workers == next_.workers.desired);
    if (complete)
      set(ct::resizing, false, "AtSize", fmt::format("{}.", counted(running, "worker runs", "workers run")));
    else if (refused)
      set(ct::resizing, true, "Refused",
          fmt::format("The master rejects {}: {}", counted(next_.workers.desired, "worker"), m.scaled));
    else
      set(ct::resizing, true, "Resizing", fmt::format("{} of {} workers run.", running, want));
  }

  /// Creates the missing master's pod.
  void make_master() {
    if (situation_.master) {  // owned by somebody else
      bool const going = situation_.master->leaving, earlier = !situation_.master->owner.empty();
      memo_.stalled = "NameTaken";
      memo_.why =
          fmt::format("pod {} belongs to {}", situation_.master->name(),
                      earlier ? "an earlier TrainingJob of this name, and goes with it"
                      : going ? "another job; it is being removed"
                              : "another job: delete that one, or create this one under another name");
      memo_.retry_at = now_ + (going || earlier ? 2 : 30);
      return wait_after_refusal();
    }
    std::string const was = reason_of(ct::running);
    if (was == run::attempt_failed || was == run::suspended) {
      discard_members();
      if (!situation_.members.empty()) return;
    }
    bool const replaced = was == run::starting || was == run::runs || was == run::lost;
    if (was == run::attempt_failed && memo_.pause_until == 0)
      memo_.pause_until = now_ + options_.first_backoff;
    if (replaced && !std::exchange(memo_.master, {}).empty()) {
      bool const early = now_ - memo_.master_since < options_.steady;
      memo_.early_losses = early ? memo_.early_losses + 1 : 0;
      if (memo_.early_losses >= 3)
        memo_.pause_until =
            now_ + std::min(options_.longest_backoff,
                            options_.first_backoff * double(1u << std::min(memo_.early_losses - 3, 20u)));
    }
    if (replaced && was != run::lost) set(ct::running, false, run::lost, "The master's pod is gone.");
    if (!memo_.stalled.empty() && now_ < memo_.retry_at) return wait_after_refusal();
    if (now_ < memo_.pause_until) return out_.look_again(memo_.pause_until);
    if (situation_.queue && !situation_.queue->may_start)
      return set(ct::running, false, was.empty() ? run::not_started : was, situation_.queue->message);
    if (situation_.members.empty()) memo_.gang_opened = 0;
    if (situation_.queue) out_.changes = situation_.queue->changes;
    out_.actions.push_back(create_master{next_.attempts, next_.restarts + (replaced ? 1 : 0),
                                         next_.workers.desired, situation_.members.empty(),
                                         pool_selector(job_, next_)});
  }

  // Status and events.

  void update_status() {
    count_pods(next_, job_, situation_.members, master_);
    if (master_ && master_->master->report) take_report(next_, *master_->master->report, now_);
    if (!stalled_ && is_true(next_, ct::stalled))
      set(ct::stalled, false, "GoesOn", "Nothing stands in the way.");
    bool const done = is_finished() || is_true(next_, ct::suspended);
    bool const moving = !done && !stalled_ && (!is_true(next_, ct::running) || is_true(next_, ct::resizing));
    if (moving || find_condition(next_, ct::reconciling))
      set(ct::reconciling, moving, moving ? phase_of(next_) : "Settled",
          moving ? "The job is changing to the state of its spec." : "");
  }

  decision take_decision() {
    add_kueue_requests();
    bool const nothing_to_tell = next_.conditions.empty();
    if (nothing_to_tell || next_ == job_.status) return std::move(out_);
    bool const urgent = differs_in_substance(next_, job_.status);
    if (!urgent && now_ < memo_.status_written + options_.progress_every) {
      out_.look_again(memo_.status_written + options_.progress_every);
      return std::move(out_);
    }
    auto events = events_of(job_.status, next_);
    out_.events.insert(out_.events.end(), events.begin(), events.end());
    out_.actions.insert(out_.actions.begin(), write_status{next_});
    return std::move(out_);
  }

  job_situation const& situation_;
  kubernetes::training_job const& job_;
  job_memo& memo_;
  reconcile_options const& options_;
  kubernetes::training_job_status next_;
  double now_;
  pod_record const* master_ = nullptr;  ///< null unless this job owns it
  bool stalled_ = false;
  decision out_;
};

}  // namespace detail

EDL_INLINE decision reconcile(job_situation const& is, job_memo& memo, reconcile_options const& options) {
  return detail::reconciler(is, memo, options).run();
}

}  // namespace edl::controller

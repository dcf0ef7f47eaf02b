// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/generation.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/master/coordinator.hpp"

namespace edl::master {
namespace detail {

EDL_INLINE std::uint64_t records_per_task(job_options const& o) {
  if (o.minibatches_per_task > 0 &&
      o.minibatch_size > std::numeric_limits<std::uint64_t>::max() / o.minibatches_per_task)
    throw usage_error(
        fmt::format("--minibatch_size={} times --num_minibatches_per_task={} is too many records for a task",
                    o.minibatch_size, o.minibatches_per_task));
  return o.minibatch_size * o.minibatches_per_task;
}

EDL_INLINE task_queue::options queue_options(job_options const& o) {
  return {.records_per_task = records_per_task(o),
          .minibatch_size = o.minibatch_size,
          .num_epochs = o.trains() ? o.num_epochs : 1,
          .seed = o.seed,
          .shuffle = o.trains() && o.shuffle,
          .max_retries = o.max_retries,
          .max_minibatches = o.trains() ? o.max_step : 0,
          .min_timeout = o.task_timeout,
          .lanes = o.trains() ? o.lanes : 0,
          .unwatched = o.num_servers > 0 && o.server_copies < 2 && !o.checks};
}

inline constexpr char const* left = "it left";  // it announced that itself

inline long long whole_seconds(duration d) {
  return std::chrono::duration_cast<std::chrono::seconds>(d).count();
}

/// Describes the oldest lease of a queue.
EDL_INLINE std::string oldest_of(task_queue const* q, char const* kind, time_point now) {
  auto const l = q ? q->oldest() : std::nullopt;
  if (!l) return {};
  return fmt::format("worker {}, which has had {} task for {} s", l->worker, kind,
                     whole_seconds(now - l->since));
}

}  // namespace detail

EDL_INLINE coordinator::coordinator(job_options o, time_point now,
                                    std::optional<persisted_state> const& before)
    : options_(std::move(o)),
      worlds_(options_.gathering),
      roster_(options_, job_),
      versions_(options_, job_, worlds_, detail::queue_options(options_), now),
      dispatch_(options_, job_, versions_, detail::queue_options(options_)),
      generations_(options_, job_, roster_, versions_, dispatch_, worlds_, before ? before->generation : 0,
                   now) {
  job_.raise_generation(in_epoch(options_.epoch, job_.generation()));
  if (before) {
    generations_.resume(*before);
    dispatch_.checks().resume(before->good);
    roster_.resume(*before, now);
    if (before->finished) {
      job_.enter(job_phase::finished);
      return;
    }
  }
  if (options_.num_servers > 0 || options_.replicas) return;
  generations_.begin(now);
  advance();
}

EDL_INLINE persisted_state coordinator::remembered() const {
  return {.generation = generation(),
          .members = std::uint32_t(workers().all().size()),
          .wanted_servers = generations_.servers().wanted(),
          .evaluated = versions_.evaluations().completed(),
          .workers = roster_.lines(role::worker).now(),
          .servers = roster_.lines(role::server).now(),
          .addresses = {},
          .finished = finished() && versions_.unevaluated().empty(),
          .good = dispatch_.checks().known_good(),
          .undo = generations_.undoes(),
          .void_until = worlds_.void_until()};
}

EDL_INLINE std::array<std::uint64_t, 9> coordinator::remembers() const {
  return {generation(),
          workers().all().size(),
          generations_.servers().wanted(),
          roster_.lines(role::worker).changes(),
          roster_.lines(role::server).changes(),
          versions_.evaluations().completed().value_or(~std::uint64_t{0}),
          finished(),
          generations_.undoes().value_or(~std::uint64_t{0}),
          dispatch_.checks().changes()};
}

EDL_INLINE std::vector<command> coordinator::take_commands() { return job_.take_commands(); }

// ---- Members ----

EDL_INLINE join_reply coordinator::join(join_request const& r, time_point now) {
  auto const refuse = [&](std::string why) {
    job_.say(severity::warning, fmt::format("{} {} is refused: {}", in_words(r.role), r.id, why));
    return join_reply{false, std::move(why), over(),
                      roster_.of(r.role).check(r.id, r.incarnation) == membership::standing::given_up};
  };
  untold_.erase({{r.role, r.id}, r.incarnation});
  if (over()) return refuse("the job is over");
  if (roster_.spare(r, generations_.servers().wanted())) {
    job_.say(severity::info, fmt::format("server {} is not needed any more", r.id));
    if (r.id >= generations_.servers().wanted()) roster_.forget_server(r.id);
    return {.reason = "it is not needed any more", .spare = true};
  }
  if (std::string why = roster_.refusal(r, generations_.servers().wanted()); !why.empty())
    return refuse(std::move(why));
  bool const fresh = !roster_.of(r.role).known(r.id, r.incarnation);
  if (fresh && roster_.of(r.role).find(r.id)) lose(r.role, r.id, "a new process takes its place", now);
  if (over()) return refuse("the job is over");
  roster_.join(r, now);
  if (r.role == role::server && r.id >= generations_.servers().wanted()) roster_.forget_server(r.id);
  invariant(roster_.of(r.role).known(r.id, r.incarnation), "who has joined is a member");
  if (fresh) {
    job_.say(severity::info, fmt::format("{} {} joined", in_words(r.role), r.id), topic::joined);
    if (r.role == role::worker) slow_starts_.began(r.id, r.speeds);
    if (r.role == role::worker && options_.checks)
      dispatch_.checks().joined(r.id, versions_.newest(), r.heard > 0);
    generations_.rise_above(r, now);
    give_up(generations_.joined(r, now), now);
    advance();
  }
  return {true, {}};
}

EDL_INLINE heartbeat_reply coordinator::heartbeat(role of, std::uint32_t id, std::uint64_t incarnation,
                                                  vitals const& v, time_point now) {
  auto [reply, trained] = roster_.heartbeat(of, id, incarnation, v, now);
  if (!reply.known) untold_.erase({{of, id}, incarnation});
  if (!reply.known) return reply;
  if (of == role::worker && trained) dispatch_.progressed(id, now);
  // Until all servers have this generation's state, a server may report a version that has been rolled back.
  // So may a worker that follows.
  if (job_.leasing() &&
      (of == role::server ? id == 0 : options_.num_servers == 0 && !generations_.worlds().follows(id)))
    versions_.heard(v.version);
  if (!v.notice.empty())
    reply.leave = has_notice({of, id}, incarnation, v.notice, now);
  else if (auto const moves = noticed_.find({{of, id}, incarnation});
           moves != noticed_.end() && of == role::worker && !over() && !suspending())
    reply.leave = (moves->second || roster_.complete(role::worker)) && hands_over(id, moves->second);
  return reply;
}

EDL_INLINE void coordinator::left(role of, std::uint32_t id, std::uint64_t incarnation, time_point now) {
  if (roster_.of(of).known(id, incarnation)) lose(of, id, detail::left, now);
}

EDL_INLINE void coordinator::hung_up(role of, std::uint32_t id, std::uint64_t incarnation, time_point now) {
  bool const known = roster_.of(of).known(id, incarnation);
  if (!known) untold_.erase({{of, id}, incarnation});  // the process is gone and cannot learn it any more
  if (over() || !known) return;
  if (roster_.cut_off(now) || roster_.finds_back(*roster_.of(of).find(id), now))
    return;  // an outage may end every connection; silence tells which members do not return
  lose(of, id, "its connection has ended", now);
}

EDL_INLINE void coordinator::lose(role of, std::uint32_t id, std::string const& how, time_point now) {
  invariant(roster_.of(of).find(id), "who is lost has been a member");
  bool const left = how == detail::left;
  severity const level = left ? severity::info : severity::warning;
  topic const of_line = left ? topic::left : topic::lost;
  roster_.lose(of, id, now);
  if (over()) return;
  if (!left) ++lost_;
  if (of == role::server) {
    job_.say(level,
             left ? fmt::format("server {} has left", id) : fmt::format("server {} is lost: {}", id, how),
             of_line);
    return generations_.server_lost(id, now);
  }
  std::size_t const n = dispatch_.lost(id);
  job_.say(level,
           fmt::format("worker {} {}; {} to others", id, left ? "has left" : "is lost: " + how,
                       counted(n, "task goes", "tasks go")),
           of_line);
  give_up(generations_.worker_lost(id, now), now);
  advance();
}

// The process may be alive. It learns that it was given up, and nobody waits for its end.
EDL_INLINE void coordinator::give_up(role of, std::uint32_t id, std::string const& why, time_point now) {
  untold_.insert({{of, id}, roster_.of(of).find(id)->incarnation});
  lose(of, id, why, now);
  if (!over()) roster_.replace(of, id);
}

EDL_INLINE void coordinator::give_up(std::optional<std::uint32_t> unreachable, time_point now) {
  if (unreachable) give_up(role::worker, *unreachable, "others cannot reach it", now);
}

EDL_INLINE void coordinator::exited(role of, std::uint32_t id, exit_kind kind, std::string const& why,
                                    time_point now) {
  std::erase_if(untold_, [&](auto const& one) { return one.first == process_id{of, id}; });
  if (over()) return;
  if (roster_.of(of).find(id)) lose(of, id, fmt::format("it ended: {}", why), now);
  if (over()) return;
  if (std::string const fatal = roster_.ended(of, id, kind, why, now); !fatal.empty()) fail(fatal);
}

EDL_INLINE void coordinator::leaving(std::uint32_t worker, std::string const& why) {
  if (!over()) roster_.leaving(worker, why);
}

EDL_INLINE void coordinator::tick(time_point now) {
  if (auto const absence = roster_.excuse(now)) generations_.excuse(*absence, now);
  find_silent(now);
  if (over()) return;
  generations_.recover_servers(now);
  find_slow(now);
  find_rotting(now);
  if (suspending()) keep_state(now);
  advance();
}

EDL_INLINE void coordinator::find_silent(time_point now) {
  for (role const of : {role::worker, role::server}) {
    // A loss in this loop may entail that of another member.
    for (member const& m : roster_.silent(of, now))
      if (!over() && roster_.of(of).find(m.id)) give_up(of, m.id, "it gave no sign of life", now);
    if (over()) return;
    roster_.replace_overdue(of, now);
  }
  for (std::uint32_t const id : generations_.absent(now))
    if (!over() && workers().find(id)) give_up(role::worker, id, "it does not come to the next world", now);
  if (options_.replicas) {
    give_up(generations_.leave_out_missed(now), now);
    give_up(generations_.form_world(now), now);
  }
}

EDL_INLINE void coordinator::find_slow(time_point now) {
  for (member const& m : workers().hanging(now))
    if (!over() && workers().find(m.id))
      give_up(role::worker, m.id,
              fmt::format("it lives, but has been at one minibatch for {} s",
                          detail::whole_seconds(now - m.moved)),
              now);
  for (std::uint32_t const worker : dispatch_.recover_slow(now))
    if (!over() && workers().find(worker))
      give_up(role::worker, worker, "it takes too long for its task", now);
}

// Moves one worker at a time to another place; the next follows once the previous one has a successor.
EDL_INLINE void coordinator::find_rotting(time_point now) {
  auto found = slow_starts_.look(workers());
  for (auto const& [id, times] : slow_.look(workers(), now))
    found.push_back(
        {id, fmt::format("is slow: its passes take {:.1f} times as long as its siblings'", times)});
  for (auto const& [id, why] : found) {
    job_.say(severity::warning, fmt::format("worker {} {}", id, why), topic::note);
    if (options_.leave_bad_nodes && options_.trains())
      rotting_.push_back({id, workers().find(id)->incarnation, why});
  }
  if (job_.leasing() && !suspending() && roster_.complete(role::worker)) hand_over_one();
  if (job_.leasing() && !suspending() && roster_.complete(role::worker)) move_some();
}

EDL_INLINE void coordinator::hand_over_one() {
  if (!rotting_.empty()) {
    auto const [id, incarnation, why] = rotting_.front();
    rotting_.pop_front();
    if (!workers().known(id, incarnation)) return;
    job_.add(avoid_place{id, why});
    return hand_over(id, why);
  }
  // For these the platform knows that it must not start anything there, and for how long.
  if (!options_.leave_bad_nodes || !options_.trains()) return;
  for (auto const& [id, why] : pressed_)
    if (member const* const m = workers().find(id); m && handed_over_.emplace(id, m->incarnation).second) {
      job_.say(severity::warning, fmt::format("worker {} {}", id, why), topic::note);
      return hand_over(id, why);
    }
}

// Returns whether a worker is to leave now.
EDL_INLINE bool coordinator::has_notice(process_id who, std::uint64_t incarnation, std::string const& notice,
                                        time_point now) {
  if (over() || suspending()) return false;
  auto const [it, fresh] = noticed_.try_emplace({who, incarnation}, false);
  if (fresh) {
    job_.add(evade_place{who.role, who.id, "has notice: " + notice});
    if (who.role == role::worker) {
      roster_.leaving(who.id, "has notice: " + notice);
    } else {
      job_.say(severity::info, fmt::format("server {} is about to leave: it has notice: {}", who.id, notice),
               topic::left);
      generations_.vacate(who.id, now);
    }
  }
  return who.role == role::worker && hands_over(who.id, it->second);
}

EDL_INLINE bool coordinator::hands_over(std::uint32_t worker, bool& told) {
  if (!told && !can_spare(worker)) return false;
  if (!std::exchange(told, true)) job_.add(stop_process{role::worker, worker});
  return true;
}

// A pool may turn out to have no machines for all: so the first one tries.
EDL_INLINE void coordinator::move_some() {
  if (moving_.empty()) moved_ = 0;
  std::size_t most = std::max<std::size_t>(1, moved_);
  for (auto const& [id, why] : moving_) {
    member const* const m = workers().find(id);
    if (!m || !noticed_.try_emplace({{role::worker, id}, m->incarnation}, false).second) continue;
    roster_.leaving(id, why);
    ++moved_;
    if (--most == 0) return;
  }
}

// Whether another worker can go on: with servers any other one, otherwise one that has the model. Workers
// that have notice themselves, or move, cannot.
EDL_INLINE bool coordinator::can_spare(std::uint32_t worker) const {
  auto const stays = [&](std::uint32_t id, std::uint64_t incarnation) {
    return id != worker && workers().known(id, incarnation) &&
           !noticed_.contains({{role::worker, id}, incarnation});
  };
  if (!options_.replicas)
    return std::ranges::any_of(workers().all(),
                               [&](auto const& one) { return stays(one.first, one.second.incarnation); });
  if (!job_.leasing()) return false;
  world const& now = current_world();
  return std::ranges::any_of(now.members, [&](world::member const& m) {
    return stays(m.id, m.incarnation) && (m.current || versions_.newest() > now.version);
  });
}

EDL_INLINE void coordinator::hand_over(std::uint32_t worker, std::string const& why) {
  roster_.leaving(worker, why);
  job_.add(stop_process{role::worker, worker});
}

// ---- Tasks ----

EDL_INLINE task_reply coordinator::request_task(std::uint32_t worker, std::uint64_t incarnation,
                                                time_point now, std::uint32_t lane, std::uint64_t rests_at) {
  task_reply nothing;
  nothing.generation = generation();
  if (over()) nothing.kind = task_kind::finished;
  if (over() || !roster_.seen(role::worker, worker, incarnation, now) || !job_.leasing() || suspending())
    return nothing;
  if (worlds_.follows(worker)) return nothing;
  return dispatch_.request(worker, incarnation, now, lane, rests_at, workers());
}

EDL_INLINE bool coordinator::report_task(task_report const& r, time_point now) {
  if (over() || !roster_.seen(role::worker, r.worker, r.incarnation, now)) return false;
  roster_.announced(r.worker, r.trained);
  bool const accepted = dispatch_.report(r, now, workers());
  if (auto const v = dispatch_.checks().take_verdict()) heed(*v, now);
  for (auto const& [id, incarnation, why] : dispatch_.take_suspects()) {
    if (over() || !workers().known(id, incarnation)) continue;
    if (options_.leave_bad_nodes) job_.add(avoid_place{id, why});
    give_up(role::worker, id, why, now);
  }
  if (accepted) advance();
  return accepted;
}

EDL_INLINE void coordinator::heed(gradient_checks::verdict const& v, time_point now) {
  if (!v.good_at) return job_.say(severity::warning, v.text, topic::note);
  if (!job_.leasing())
    return job_.say(severity::error,
                    v.text + "; the training is over, and its model can no longer be undone: train again",
                    topic::note);
  // The job is not responsible for the state with which it began.
  std::uint64_t const good = std::max(*v.good_at, options_.start.version);
  job_.say(severity::error, fmt::format("{}; the training after version {} is undone", v.text, good),
           topic::recovery);
  give_up(generations_.undo(good, now), now);
  for (std::uint32_t const id : v.culprits)
    if (!over() && workers().find(id)) {
      job_.add(avoid_place{id, "computes wrongly"});
      give_up(role::worker, id, "it computes wrongly", now);
    }
}

// ---- Generations ----

EDL_INLINE void coordinator::enter(std::uint32_t worker, entry e, time_point now) {
  if (over() || !options_.replicas || !roster_.seen(role::worker, worker, e.incarnation, now)) return;
  give_up(generations_.enter(worker, std::move(e), now), now);
  advance();
}

EDL_INLINE void coordinator::restore_point_found(std::uint64_t generation, std::optional<restore_point> point,
                                                 time_point now) {
  if (generation != job_.generation()) return;
  generations_.restore_point_found(std::move(point), now);
  advance();
}

EDL_INLINE void coordinator::server_configured(std::uint32_t id, std::uint64_t incarnation,
                                               std::uint64_t generation, std::string const& error,
                                               time_point now, std::optional<copy_position> kept) {
  bool const current = generation == job_.generation() && job_.phase() == job_phase::configuring;
  if (!current || !servers().known(id, incarnation)) return;
  roster_.seen(role::server, id, incarnation, now);
  generations_.server_configured(id, error, std::move(kept), now);
  advance();
}

EDL_INLINE void coordinator::server_ahead(std::uint32_t id, std::uint64_t incarnation,
                                          std::uint64_t generation, time_point now) {
  bool const current = generation == job_.generation() && job_.phase() == job_phase::configuring;
  if (current && servers().known(id, incarnation)) generations_.server_ahead(id, now);
}

EDL_INLINE void coordinator::backup_cut_off(std::uint32_t server, std::uint64_t generation,
                                            std::uint32_t range, time_point now) {
  if (over() || generation != job_.generation()) return;
  if (auto const backup = generations_.backup_of(server, range); backup && servers().find(*backup))
    lose(role::server, *backup, fmt::format("server {} cannot reach it", server), now);
}

// ---- Versions, checkpoints ----

EDL_INLINE void coordinator::version_reached(version_report const& r, time_point now) {
  if (r.generation != generation() || !job_.leasing()) return;
  versions_.reached(r, now);
  advance();
}

EDL_INLINE void coordinator::judged(std::uint64_t version, time_point now, std::string const& error,
                                    verdict const& what) {
  if (over()) return;
  // While the result was written, the job may have gone back behind it.
  bool const counts = versions_.evaluations().to_be_judged(version);
  if (!error.empty())
    job_.say(severity::warning,
             fmt::format("the evaluation of version {} does not count, because it cannot be stored: {}",
                         version, error));
  else if (counts) {
    dispatch_.set_rates(what.rates);
    if (!what.line.empty()) job_.say(severity::info, what.line);
  }
  if (what.stops && counts) stop(now, version);
  if (!over() && versions_.judged(version)) advance();
}

EDL_INLINE void coordinator::checkpoint_written(std::uint64_t generation, std::uint64_t version,
                                                std::string const& error, time_point) {
  if (generation != job_.generation() || !job_.leasing()) return;
  if (error.empty()) generations_.written(version);
  versions_.written(version, error);
  if (error.empty() && options_.checks) dispatch_.checks().written(version);
  advance();
}

EDL_INLINE void coordinator::model_written(std::uint64_t generation, std::string const& error) {
  if (generation != job_.generation() || job_.phase() != job_phase::closing) return;
  if (!error.empty()) return fail(error);
  model_written_ = generation;
  advance();
}

EDL_INLINE void coordinator::version_announced(std::uint64_t generation, std::uint64_t version,
                                               time_point now) {
  if (generation != job_.generation() || job_.phase() != job_phase::closing) return;
  versions_.last(version, now);
  advance();
}

// ---- Size ----

EDL_INLINE std::string coordinator::scale(platform::size_request const& r, time_point now) {
  server_generations const& held = generations_.servers();
  if (over()) return "the job is over";
  if (suspending()) return "the job is being suspended";
  if (r.workers && (*r.workers == 0 || *r.workers > roster::most_workers))
    return fmt::format("--num_workers={}: expected 1 to {}", *r.workers, roster::most_workers);
  if (r.servers && options_.num_servers == 0) return "--num_ps_pods: this job has no servers";
  if (r.servers && (*r.servers < options_.server_copies || *r.servers > held.ranges()))
    return fmt::format(
        "--num_ps_pods={}: expected {} to {}, the ranges that the variables were cut into at the start; "
        "start "
        "the job again with a larger --ps_ranges, and it goes on from its checkpoint",
        *r.servers, options_.server_copies, held.ranges());
  if (r.servers) {
    job_.say(severity::info,
             fmt::format("Scaling from {} to {}", held.wanted(), counted(*r.servers, "server")),
             topic::resized);
    roster_.scale_servers(*r.servers);
    generations_.want_servers(*r.servers, now);
  }
  if (r.workers) {
    roster_.scale_workers(*r.workers, r.leave, r.why);
    generations_.expect_workers(*r.workers);
  }
  return {};
}

EDL_INLINE void coordinator::adopt(platform::findings const& those, time_point now) {
  if (those.running.empty()) return;
  generations_.adopt(those);
  roster_.adopt(those, generations_.servers().wanted(), now);
}

// ---- The end ----

EDL_INLINE void coordinator::advance() {
  if (over()) return;
  versions_.take_results();
  if (job_.phase() == job_phase::running && (suspending() || dispatch_.finished())) {
    if (!options_.trains()) return job_.finish();
    job_.enter(job_phase::closing);
    job_.add(ask_version{generation()});
  }
  if (job_.phase() != job_phase::closing || !versions_.last_known() || versions_.checkpoints().current())
    return;
  if (suspending())
    job_.end_suspended({});
  else if (versions_.evaluations().idle())
    finish();
}

EDL_INLINE void coordinator::finish() {
  if (!options_.writes_model || model_written_ == generation()) return job_.finish();
  if (std::exchange(model_of_, generation()) != generation()) job_.add(write_model{generation()});
}

// Ends a job so that it can resume later. Forms a generation that leases nothing: the workers' current
// minibatches are void, the keepers of the model agree on a state, and that is written.
EDL_INLINE void coordinator::suspend(time_point now) {
  if (over() || suspending()) return;
  job_.suspend(now);
  job_.say(severity::info, "Suspending: no more tasks are leased", topic::end);
  if (!options_.trains() || !options_.final_checkpoint) return job_.end_suspended({});
  if (job_.leasing()) give_up(generations_.regroup(now), now);
  keep_state(now);
}

EDL_INLINE void coordinator::keep_state(time_point now) {
  if (over() || generations_.state_may_come(now)) return;
  job_.end_suspended(generations_.ever_begun() ? "those that have the newest state do not tell it" : "");
}

EDL_INLINE void coordinator::fail(std::string const& reason) { job_.fail(reason); }

EDL_INLINE void coordinator::stop(time_point, std::uint64_t at) {
  if (over()) return;
  dispatch_.stop(at);
  advance();
}

// ---- For people ----

EDL_INLINE job_progress coordinator::progress() const {
  job_progress p;
  p.version = versions_.newest();
  p.workers = workers().all().size();
  p.servers = servers().all().size();
  if (task_queue const* const of = dispatch_.counted_tasks()) {
    p.done = of->done();
    // Includes the parts of tasks that no worker continues.
    if (over()) p.done.records_done = sum_of(of->done_by_epoch()).records_done;
    p.total_tasks = of->total_tasks();
    p.total_records = of->total_records();
    if (of->epochs_opened() > 0)
      p.epoch = of->epochs_opened() - 1;
    else if (auto const applied = of->done_by_epoch(); !applied.empty())
      p.epoch = applied.rbegin()->first;  // it has rolled back, or is at its end: no worker has a task
    p.leased = of->leased();
  }
  p.trained = workers().trained();
  p.lost = lost_;
  if (task_queue const* const of = tasks())
    p.repeated = of->history().repeated, p.recovered = of->history().recovered,
    p.taken_back = of->history().records_taken_back, p.account = of->restored_account();
  std::size_t trained = 0;
  for (auto const& [id, m] : workers().all()) {
    p.rate += m.rate;
    if (m.last.records == 0) continue;
    p.loss += m.last.loss;
    ++trained;
  }
  // The workers may leave a finished job before its final report.
  p.loss = trained > 0 ? p.loss / double(trained) : workers().last_loss();
  return p;
}

EDL_INLINE std::uint64_t coordinator::steps() const {
  std::uint64_t mark = versions_.newest();
  auto const mix = [&](std::uint64_t more) { mark = mark * 0x9e3779b97f4a7c15u + more; };
  auto const count = [&](task_queue const* q) { mix(q ? q->done().records_done : 0); };
  count(tasks());
  count(versions_.evaluations().active());
  mix(versions_.evaluations().completed().value_or(0));
  mix(roster_.minibatches());
  return mark;
}

EDL_INLINE std::string coordinator::waits_for(time_point now) const {
  std::vector<std::string> all = generations_.waits_for();
  auto const add = [&](std::string one) {
    if (!one.empty()) all.push_back(std::move(one));
  };
  if (roster_.isolated()) all.insert(all.begin(), "a word of any member: this master may be cut off");
  if (!job_.leasing()) return fmt::format("{}", fmt::join(all, "; "));
  if (workers().all_gone()) add("a worker to join");
  add(detail::oldest_of(tasks(), "a", now));
  add(detail::oldest_of(versions_.evaluations().active(), "an evaluation", now));
  if (model_of_ == generation()) add("the trained model to be written");
  if (job_.phase() == job_phase::closing && !versions_.last_known()) add("the last version to be told");
  if (auto const& c = versions_.checkpoints().current())
    add(fmt::format("the checkpoint of version {} to be written", c->version));
  if (all.empty())
    add(fmt::format("{}, of which none asks for a task", counted(workers().all().size(), "worker")));
  return fmt::format("{}", fmt::join(all, "; "));
}

}  // namespace edl::master

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/master/coordinator.hpp"

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
  bool const trains = o.type == job_type::training_only || o.type == job_type::training_with_evaluation;
  return {.records_per_task = records_per_task(o),
          .minibatch_size = o.minibatch_size,
          .num_epochs = trains ? o.num_epochs : 1,
          .seed = o.seed,
          .shuffle = trains && o.shuffle,
          .max_retries = o.max_retries,
          .max_minibatches = trains ? o.max_step : 0,
          .min_timeout = o.task_timeout,
          .lanes = trains ? o.lanes : 0};
}

EDL_INLINE std::vector<shard> evaluated_shards(job_options const& o) {
  bool const wanted = o.type == job_type::evaluation_only ||
                      (o.type == job_type::training_with_evaluation && o.evaluation_steps > 0);
  return wanted ? o.validation : std::vector<shard>{};
}

inline constexpr char const* left = "it left";  // by its own word
inline char const* name(role of) { return of == role::worker ? "worker" : "server"; }

}  // namespace detail

EDL_INLINE coordinator::coordinator(job_options o, time_point now,
                                    std::optional<persisted_state> const& before)
    : options_(std::move(o)),
      workers_(options_.silence, options_.hang),
      servers_(options_.silence),
      worker_lines_({.count = options_.num_workers,
                     .budget = options_.worker_failures,
                     .closed = options_.starts_all,
                     .grace = options_.exit_grace}),
      server_lines_({.count = options_.num_servers,
                     .budget = options_.server_failures,
                     .same_id = true,
                     .grace = options_.exit_grace}),
      evaluation_(detail::evaluated_shards(options_),
                  {.tasks = detail::queue_options(options_),
                   .start_delay = options_.evaluation_start_delay,
                   .throttle = options_.evaluation_throttle,
                   .judged = options_.judges},
                  now),
      point_(options_.start),
      isolation_(options_.silence, options_.isolation),
      generations_({.wanted = options_.num_servers,
                    .ranges = options_.ranges ? options_.ranges : options_.num_servers,
                    .copies = options_.server_copies,
                    .gathering = options_.gathering},
                   before && options_.num_servers > 0 ? before->generation : 0, now),
      worlds_(options_.gathering),
      version_(options_.start.version) {
  if (options_.type == job_type::evaluation_only) {
    if (evaluation_.empty()) throw usage_error("--validation_data holds no record");
  } else {
    bool const prediction = options_.type == job_type::prediction_only;
    tasks_.emplace(prediction ? options_.prediction : options_.training, detail::queue_options(options_));
  }
  if (trains()) {
    tasks_->restore(point_->applied);
    announced_ = point_->version;
    if (point_->version > 0) evaluation_.roll_back(point_->version);
  }
  worlds_.expect(options_.num_workers);
  if (before) {
    generation_ = before->generation + 1;
    worlds_.expect(before->members);
    generations_.want(before->wanted_servers);
    worker_lines_ = lineages(worker_lines_.of(), before->workers, now);
    server_lines_ = lineages(server_lines_.of(), before->servers, now);
    if (before->evaluated) evaluation_.resume_after(*before->evaluated);
    point_.reset();
    recovered_ = true;
  }
  if (options_.num_servers == 0 && !options_.replicas) begin(now);
}

EDL_INLINE persisted_state coordinator::remembered() const {
  return {.generation = generation_,
          .members = std::uint32_t(workers_.all().size()),
          .wanted_servers = generations_.wanted(),
          .evaluated = evaluation_.completed(),
          .workers = worker_lines_.now(),
          .servers = server_lines_.now(),
          .addresses = {}};
}

EDL_INLINE std::array<std::uint64_t, 6> coordinator::remembers() const {
  return {generation_,
          workers_.all().size(),
          generations_.wanted(),
          worker_lines_.changes(),
          server_lines_.changes(),
          evaluation_.completed().value_or(~std::uint64_t{0})};
}

EDL_INLINE void coordinator::say(severity level, std::string text) {
  commands_.emplace_back(log_line{level, std::move(text)});
}

EDL_INLINE std::vector<command> coordinator::take_commands() { return std::exchange(commands_, {}); }

// ---- Who takes part ----

EDL_INLINE join_reply coordinator::join(join_request const& r, time_point now) {
  auto const refuse = [&](std::string why) {
    say(severity::warning, fmt::format("{} {} is refused: {}", detail::name(r.of), r.id, why));
    return join_reply{false, std::move(why), over()};
  };
  if (over()) return refuse("the job is over");
  if (r.of == role::server && r.id >= generations_.wanted())
    return refuse(fmt::format("the job has {}, give --num_ps_pods={}",
                              counted(generations_.wanted(), "server"), r.id + std::uint64_t{1}));
  if (r.of == role::worker && r.id >= most_workers) return refuse("its id is out of range");
  if (r.heard > newest_generation) return refuse("the generation that it knows of is out of range");
  if (layout_ && *layout_ != r.layout)
    return refuse(
        fmt::format("its model (layout {:016x}) is not the job's (layout {:016x}): start all from one image",
                    r.layout, *layout_));
  for (std::string const& flag : r.flags)
    if (std::ranges::find(options_.flags, flag) == options_.flags.end())
      return refuse(fmt::format("it was started with {}, and the job with {}: give all processes the same",
                                printable(flag, 64), fmt::join(options_.flags, " ")));
  membership& all = members(r.of);
  auto const standing = all.check(r.id, r.incarnation);
  if (standing == membership::standing::given_up) return refuse("it has been given up: start a new process");
  layout_ = r.layout;
  if (standing == membership::standing::fresh && all.find(r.id))
    lose(r.of, r.id, "a new process takes its place", now);
  if (over()) return refuse("the job is over");
  all.join(r.id, r.incarnation, r.addresses, now);
  lines(r.of).joined(r.id);
  if (standing == membership::standing::fresh) {
    say(severity::info, fmt::format("{} {} joined", detail::name(r.of), r.id));
    rise_above(r, now);
    if (keeps_model(r.of)) keeper_joined(r, now);
  }
  return {true, {}};
}

EDL_INLINE heartbeat_reply coordinator::heartbeat(role of, std::uint32_t id, std::uint64_t incarnation,
                                                  vitals const& v, time_point now) {
  member const* const before = members(of).find(id);
  std::uint64_t const records = before ? before->last.records : 0,
                      position = before ? before->last.position : 0;
  heartbeat_reply reply{.known = members(of).heartbeat(id, incarnation, v, now), .finished = over()};
  reply.stranger = !reply.known && members(of).check(id, incarnation) == membership::standing::fresh;
  if (!reply.known) return reply;
  minibatches_ += v.records > records || (before && v.position > position);
  if (of == role::worker && tasks_ && v.records > records) tasks_->progressed(id, now);
  // Before all servers have this generation's state, a version may be one that has been rolled back.
  if (leasing() && v.version > version_ && (of == role::server ? id == 0 : options_.num_servers == 0))
    version_ = v.version;
  return reply;
}

EDL_INLINE void coordinator::left(role of, std::uint32_t id, std::uint64_t incarnation, time_point now) {
  if (members(of).known(id, incarnation)) lose(of, id, detail::left, now);
}

EDL_INLINE void coordinator::hung_up(role of, std::uint32_t id, std::uint64_t incarnation, time_point now) {
  if (over() || !members(of).known(id, incarnation)) return;
  if (isolation_.suspected(present(), now))
    return;  // all connections may have ended, and silence tells who does not come back
  lose(of, id, "its connection has ended", now);
}

EDL_INLINE void coordinator::lose(role of, std::uint32_t id, std::string const& how, time_point now) {
  membership& all = members(of);
  bool const left = how == detail::left;
  all.lose(id, all.find(id)->incarnation);
  lines(of).lost(id, now);
  if (over()) return;
  if (of == role::server) {
    say(left ? severity::info : severity::warning,
        left ? fmt::format("server {} has left", id) : fmt::format("server {} is lost: {}", id, how));
    return server_lost(id, now);
  }
  training_first_.erase(id);
  speeds_.gone(id);
  std::size_t const n = (tasks_ ? tasks_->recover(id) : 0) + evaluation_.recover(id);
  say(left ? severity::info : severity::warning,
      fmt::format("worker {} {}; {} to others", id, left ? "has left" : "is lost: " + how,
                  counted(n, "task goes", "tasks go")));
  if (keeps_model(of)) {
    worlds_.left(id);
    regroup(now);
  }
  advance();
}

// It may live, and hears of it; nobody need wait for its end.
EDL_INLINE void coordinator::give_up(role of, std::uint32_t id, std::string const& why, time_point now) {
  lose(of, id, why, now);
  if (over()) return;
  if (auto const r = lines(of).given_up(id)) commands_.emplace_back(replace_process{of, r->id, r->with});
}

// What a member knows of when it joins has been, whatever this master remembers: the same number must not
// mean two states.
EDL_INLINE void coordinator::rise_above(join_request const& r, time_point now) {
  if (r.heard < generation_ || r.heard == 0) return;
  say(severity::warning,
      fmt::format("{} {} knows generation {}, this master only {}: its journal was lost or is an older one; "
                  "the job goes on above that",
                  detail::name(r.of), r.id, r.heard, generation_));
  generation_ = r.heard;
  if (phase_ == phase::forming) {
    ++generation_;
    if (!options_.replicas && !point_ && !generations_.awaits_past())
      find_point();  // asked for of the generation before
  } else if (!keeps_model(r.of) && options_.num_servers > 0)
    regroup(now);  // for the others their joining does
}

EDL_INLINE void coordinator::exited(role of, std::uint32_t id, exit_kind kind, std::string const& why,
                                    time_point now) {
  if (over()) return;
  if (members(of).find(id)) lose(of, id, fmt::format("it ended: {}", why), now);
  if (over()) return;
  lineages& all = lines(of);
  std::size_t const ended = all.ended();
  if (auto const r = all.exited(id, kind, why)) {
    commands_.emplace_back(replace_process{of, r->id, r->with});
  } else if (all.ended() > ended) {
    say(severity::error,
        fmt::format("{} {} failed too often and is not replaced: {}", detail::name(of), id, why));
    if (of == role::server)
      fail(fmt::format("server {} failed too often: {}", id, all.reason()));
    else if (all.all_ended() && workers_.all_gone())
      fail(fmt::format("all workers failed: {}", all.reason()));
  }
}

EDL_INLINE void coordinator::leaving(std::uint32_t worker, std::string const& why) {
  if (over()) return;
  if (auto const r = worker_lines_.exited(worker, exit_kind::preempted, why)) {
    say(severity::info, fmt::format("worker {} is about to leave: it {}", worker, why));
    commands_.emplace_back(start_process{role::worker, r->with, r->id});
  }
}

EDL_INLINE void coordinator::tick(time_point now) {
  if (duration const pause = now - last_tick_.value_or(now); pause > options_.silence / 2) {
    workers_.excuse(pause, now);
    servers_.excuse(pause, now);
  }
  last_tick_ = now;
  excuse(now);
  for (role const of : {role::worker, role::server}) {
    if (!isolation_.suspected(present(), now))
      for (auto const& m : members(of).silent(now))
        if (!over() && !isolation_.finds_back(m.seen, now)) give_up(of, m.id, "it gave no sign of life", now);
    if (over()) return;
    for (auto const& r : lines(of).overdue(now)) commands_.emplace_back(replace_process{of, r.id, r.with});
  }
  if (options_.replicas) find_absent(now);
  recover_servers(now);
  recover_slow(now);
  if (suspending_) keep_state(now);
  if (!over()) advance();
}

// What members could not tell while the master was cut off is held against nobody.
EDL_INLINE void coordinator::excuse(time_point now) {
  std::optional<time_point> newest;
  for (role const of : {role::worker, role::server})
    for (auto const& [id, m] : members(of).all()) newest = std::max(newest.value_or(m.seen), m.seen);
  auto const found = isolation_.look(newest, present(), now);
  if (found.absence) {
    workers_.excuse(*found.absence, now);
    servers_.excuse(*found.absence, now);
    worlds_.excuse(*found.absence, now);
    say(severity::info, fmt::format("Members are heard again after {:.1f} s: what they could not tell "
                                    "meanwhile is held against nobody",
                                    std::chrono::duration<double>(*found.absence).count()));
  }
  if (found.began)
    say(severity::warning,
        fmt::format("no member has been heard for {:.1f} s: this master may be cut off; it blames nobody "
                    "for up to {} s",
                    std::chrono::duration<double>(isolation_.quiet(now)).count(),
                    std::chrono::duration_cast<std::chrono::seconds>(options_.isolation).count()));
}

EDL_INLINE void coordinator::recover_slow(time_point now) {
  for (member const& m : workers_.hanging(now))
    if (!over() && workers_.find(m.id))
      give_up(role::worker, m.id,
              fmt::format("it lives, but has been at one minibatch for {} s",
                          std::chrono::duration_cast<std::chrono::seconds>(now - m.moved).count()),
              now);
  auto slow = tasks_ ? tasks_->expired(now) : std::vector<expired_lease>{};
  auto const more = evaluation_.expired(now);
  slow.insert(slow.end(), more.begin(), more.end());
  for (auto const& [lease, worker] : slow) {
    if (options_.replace_slow) {
      if (workers_.find(worker) && !over())
        give_up(role::worker, worker, "it takes too long for its task", now);
    } else if ((lease & evaluation::lease_bit) ? evaluation_.recover_lease(lease)
                                               : tasks_->recover_lease(lease)) {
      say(severity::warning,
          fmt::format("worker {} takes too long for its task, which goes to another", worker));
    }
  }
}

// ---- Versions, checkpoints, the end ----

EDL_INLINE void coordinator::version_reached(version_report const& r, time_point now) {
  if (r.generation != generation_ || !leasing()) return;
  if (r.version > version_) version_ = r.version;
  announced_ = std::max(announced_, r.version);
  if (r.evaluate) evaluate({r.version, true}, now);
  if (r.checkpoint) {
    // A world that begins with it tells it again.
    bool const again = options_.replicas && checkpoints_.newest() && r.version <= *checkpoints_.newest();
    if (options_.checkpoint && !again)
      enqueue_when_judged(r.version);
    else
      commands_.emplace_back(release_frozen{r.version, false});
  }
  advance();
}

EDL_INLINE void coordinator::evaluate(evaluated_version v, time_point now) {
  if (evaluation_.version_reached(v, now)) {
    if (v.frozen) worlds_.freeze(v.version);
  } else if (v.frozen && !evaluation_.wants_frozen(v.version)) {
    commands_.emplace_back(release_frozen{v.version, true});
  }
}

// What is decided by evaluations up to a checkpoint is decided when the job goes on from it.
EDL_INLINE void coordinator::enqueue_when_judged(std::uint64_t version) {
  if (!options_.judges || evaluation_.done_up_to(version)) return enqueue({generation_, version, false});
  if (auto const older = std::exchange(unjudged_, version))
    commands_.emplace_back(release_frozen{*older, false});
}

EDL_INLINE void coordinator::judged(std::uint64_t version, time_point) {
  if (over() || !evaluation_.judged(version)) return;
  worlds_.release(version);
  commands_.emplace_back(release_frozen{version, true});
  if (unjudged_ && evaluation_.done_up_to(*unjudged_))
    enqueue({generation_, *std::exchange(unjudged_, std::nullopt), false});
  advance();
}

EDL_INLINE void coordinator::enqueue(write_checkpoint const& c) {
  auto const next = checkpoints_.add(c);
  if (next.dropped) commands_.emplace_back(release_frozen{*next.dropped, false});
  if (next.start) commands_.emplace_back(*next.start);
}

EDL_INLINE void coordinator::checkpoint_written(std::uint64_t generation, std::uint64_t version,
                                                std::string const& error, time_point) {
  auto const written = checkpoints_.current(version);
  if (generation != generation_ || !leasing() || !written) return;
  auto const next = checkpoints_.ended(error.empty());
  if (written->final && !error.empty()) {
    if (suspending_) return suspended_with(fmt::format("the newest state cannot be written: {}", error));
    return fail(fmt::format("the final checkpoint cannot be written: {}", error));
  }
  if (!written->final) commands_.emplace_back(release_frozen{version, false});
  if (error.empty())
    say(severity::info, fmt::format("Checkpoint of version {} written", version));
  else
    say(severity::warning, fmt::format("the checkpoint of version {} cannot be written: {}", version, error));
  if (next) commands_.emplace_back(*next);
  advance();
}

EDL_INLINE void coordinator::version_announced(std::uint64_t generation, std::uint64_t version,
                                               time_point now) {
  if (generation != generation_ || phase_ != phase::closing || last_version_) return;
  last_version_ = version_ = version;
  if (options_.final_checkpoint && checkpoints_.final_version() != version)
    enqueue({generation_, version, true});
  if (!suspending_) {
    evaluation_.rests(version);
    evaluate({version, false}, now);
  }
  advance();
}

EDL_INLINE void coordinator::advance() {
  while (auto result = evaluation_.take_result()) {
    auto const of = result->of;
    commands_.emplace_back(evaluation_done{*std::move(result)});
    if (options_.judges) break;
    release(of);
  }
  if (phase_ == phase::running && (suspending_ || (tasks_ ? tasks_->finished() : evaluation_.idle())))
    close();
  if (phase_ == phase::closing && last_version_ && !checkpoints_.current() && suspending_)
    suspended_with({});
  else if (phase_ == phase::closing && last_version_ && evaluation_.idle() && !checkpoints_.current())
    finish();
}

EDL_INLINE void coordinator::release(evaluated_version of) {
  worlds_.release(of.version);
  if (of.frozen) commands_.emplace_back(release_frozen{of.version, true});
}

EDL_INLINE void coordinator::close() {
  if (!trains()) return finish();
  phase_ = phase::closing;
  commands_.emplace_back(ask_version{generation_});
}

EDL_INLINE void coordinator::finish() {
  phase_ = phase::finished;
  commands_.emplace_back(finish_job{});
}

EDL_INLINE void coordinator::fail(std::string const& reason) {
  if (over()) return;
  phase_ = phase::failed;
  reason_ = reason;
  commands_.emplace_back(fail_job{reason});
}

EDL_INLINE void coordinator::stop(time_point, std::uint64_t at) {
  if (!tasks_ || over()) return;
  stopped_at_ = at;
  stop_tasks();
  advance();
}

EDL_INLINE void coordinator::stop_tasks() {
  if (options_.rests_to_evaluate)
    tasks_->halt();
  else
    tasks_->stop_leasing();
}

// Throws error.
EDL_INLINE void coordinator::restore_tasks(std::uint64_t version, ledger const& applied) {
  tasks_->restore(applied);
  if (!stopped_at_) return;
  if (version >= *stopped_at_) return stop_tasks();
  stopped_at_.reset();
}

EDL_INLINE job_progress coordinator::progress() const {
  job_progress p;
  p.version = version_;
  p.workers = workers_.all().size();
  p.servers = servers_.all().size();
  // A job that only evaluates has no other tasks.
  if (task_queue const* const of = tasks_ ? &*tasks_ : evaluation_.active()) {
    p.done = of->done();
    // With the parts of tasks that nobody goes on with.
    if (over()) p.done.records_done = sum_of(of->done_by_epoch()).records_done;
    p.total_tasks = of->total_tasks();
    p.total_records = of->total_records();
    p.epoch = of->epochs_opened() > 0 ? of->epochs_opened() - 1 : 0;
    p.leased = of->leased();
  }
  std::size_t trained = 0;
  for (auto const& [id, m] : workers_.all()) {
    p.rate += m.rate;
    if (m.last.records == 0) continue;
    p.loss += m.last.loss;
    ++trained;
  }
  // Workers leave a job that has ended before its last word is said.
  p.loss = trained > 0 ? p.loss / double(trained) : workers_.last_loss();
  return p;
}

}  // namespace edl::master

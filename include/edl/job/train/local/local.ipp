// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "edl/base/checkpoint/job_files.hpp"
#include "edl/base/checkpoint/layout_digest.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/master/coordinator.hpp"
#include "edl/job/ps/store.hpp"
#include "edl/job/train/local/local.hpp"
#include "edl/job/train/local/store_link.hpp"
#include "edl/job/train/observe/history_log.hpp"
#include "edl/job/train/observe/metric_history.hpp"
#include "edl/job/train/observe/reporter.hpp"
#include "edl/job/train/prediction/hard_records.hpp"
#include "edl/job/train/prediction/sample_pictures.hpp"
#include "edl/job/train/setup/onnx_model.hpp"
#include "edl/job/train/setup/outputs.hpp"
#include "edl/job/train/setup/records.hpp"
#include "edl/job/train/setup/setup.hpp"
#include "edl/job/train/setup/start.hpp"
#include "edl/job/worker/session.hpp"

namespace edl::train {
namespace detail {

/// The compute threads are idle while rows are pulled and pushed, so the store uses them.
inline ps::store_options shared_by(ps::store_options o, worker::trainer& trainer) {
  for (sparse::table_options& t : o.tables)
    t.share = [&trainer](std::function<void(int)> const& work) { trainer.share(work); };
  return o;
}

/// Whether steps can be made in the arena. Excludes what needs host memory between steps: --get_model_steps,
/// steps of several minibatches, differing histories and a moving average. Also excludes partial training,
/// because the arena changes every parameter.
inline bool may_move(ps::store const& s, job const& j) {
  return s.segments().size() == 1 && j.training.get_model_steps == 1 && minibatches_of_a_step(j) == 1 &&
         j.training.moving_average == 0 && j.training.freeze.empty();
}

/// The master of a job with one worker and one store, all in this process: it makes the decisions and carries
/// them out by calls.
class local_master final : public worker::master_link {
 public:
  local_master(program& p, job const& j, records const& r, ps::store& s, checkpoint::directory_lock* lock,
               logger log, local_context const& around)
      : program_(p),
        job_(j),
        around_(around),
        lock_(lock),
        log_(log),
        store_(s),
        options_(options_of(j, p, r, lock, log)),
        coordinator_(options_, now()),
        reporter_(p, j, options_.start.version, around.show, log, {.token = around.token}),
        files_(files_of(j, p, r, [lock] {
          if (lock) lock->check();
        })) {
    reporter_.view().goes_on_from(options_.start.applied);
  }

  master::restore_point const& start() const { return options_.start; }

  /// Starts the job. The store must have the state of `start`.
  void begin() {
    if (!coordinator_.over())
      coordinator_.join({.role = role::worker, .layout = checkpoint::layout_digest(program_.layout)}, now());
    run_commands();
    coordinator_.set_rates(reporter_.rates());
    // A job that is stopped while it rests writes the version that it has not evaluated yet.
    if (options_.rests_to_evaluate && reporter_.newest_judged() != options_.start.version)
      pushed(store_.due());
    if (auto const at = reporter_.stopped_at()) coordinator_.stop(now(), *at);
    reporter_.history().look(coordinator_, progress(), now());
  }

  /// Sets the worker's progress.
  void watch(worker::progress const& of) { seen_ = &of; }

  worker::assignment next(std::uint32_t) override {
    alive();
    master::task_reply const r = coordinator_.request_task(0, 0, now());
    run_commands();
    if (coordinator_.failed()) throw error(coordinator_.reason());
    worker::assignment a;
    a.kind = r.kind;
    a.rests = r.rests;
    if (!is_work(a.kind)) return a;
    a.lease = r.lease, a.task = r.key, a.shard = r.range.shard, a.begin = r.range.begin, a.end = r.range.end;
    auto const& shards = options_.shards(a.kind);
    invariant(a.shard < shards.size() && a.begin <= a.end, "a task is of a shard that the job has");
    a.shard_name = shards[a.shard].name;
    a.version = r.version, a.applied = r.applied, a.resumed = r.resumed, a.until = r.until, a.rate = r.rate;
    return a;
  }

  bool report(worker::outcome const& o) override {
    bool const accepted = coordinator_.report_task({.lease = o.lease,
                                                    .error = o.error,
                                                    .metrics = o.metrics,
                                                    .returned = o.returned,
                                                    .applied = o.applied,
                                                    .skipped = o.skipped,
                                                    .refused = o.refused},
                                                   now());
    alive();
    run_commands();
    return accepted;
  }

  /// Call before a push to the store: all earlier pushes are counted by then.
  void pushing() {
    if (reporter_.history().due(store_.version())) reporter_.history().look(coordinator_, progress(), now());
  }

  /// Call after a push to the store.
  void pushed(ps::push_result const& r) {
    // Mark the version as in use now, so that a newer one cannot replace it before it is evaluated.
    bool const evaluate = r.evaluate && store_.frozen().has_evaluation(r.version);
    if (evaluate || r.checkpoint)
      coordinator_.version_reached({.generation = coordinator_.generation(),
                                    .version = r.version,
                                    .evaluate = evaluate,
                                    .checkpoint = r.checkpoint},
                                   now());
    alive();
    run_commands();
  }

  /// Records the gradients of a push.
  void learned(std::uint64_t version, view<float> gradients) {
    if (version / job_.observe.tensorboard_histograms == shown_ / job_.observe.tensorboard_histograms) return;
    invariant(version > shown_, "versions ascend");
    shown_ = version;
    std::vector<std::pair<std::string, view<float>>> all;
    view<float> const variables = store_.current();
    for (variable const& v : program_.layout.variables) {
      std::size_t const n = v.dims.size();
      invariant(v.offset + n <= variables.size(), "a variable lies within the store");
      all.emplace_back("variables/" + v.name, variables.subspan(v.offset, n));
      if (v.offset < program_.layout.parameters)
        all.emplace_back("gradients/" + v.name, gradients.subspan(v.offset, n));
    }
    reporter_.history().tensors(version, all);
  }

  /// Sets the function that is called at the end of each evaluation.
  void tell_worst(std::function<std::string()> of) { worst_ = std::move(of); }

  void show(std::vector<std::pair<std::string, event_picture>> const& pictures) {
    reporter_.history().pictures(pictures);
  }

  /// Finishes the outputs once the worker has ended. `complete`: it has worked to the end.
  void close(bool complete) {
    finish_writing(true);
    close_history();
    if (!complete && keeps_state(job_) && coordinator_.versions().checkpoints().newest() != store_.version())
      retry("the final checkpoint", [this] { write(store_.full_snapshot()); });
    if (complete && !job_.outputs.output.empty())
      retry("the model", [this] { export_model(job_.outputs.output, store_.averaged()); });
    if (complete && !job_.outputs.export_onnx.empty())
      log_.info(export_onnx(program_, job_, job_.outputs.output + "/model.safetensors", log_));
    reporter_.view().update(progress(), now());
    reporter_.view().clear();
    if (std::string const line = store_.rows().describe(); !line.empty()) log_.info(line);
    reporter_.close(coordinator_, progress());
    if (!complete) reporter_.stopped("stopped", around_.command);
    if (!coordinator_.versions().unevaluated().empty()) throw error(coordinator_.versions().unevaluated());
    if (complete) reporter_.complete(coordinator_, around_.command);
  }

 private:
  static time_point now() { return clock::now(); }

  static master::job_options options_of(job const& j, program const& p, records const& r,
                                        checkpoint::directory_lock* lock, logger const& log) {
    std::uint64_t const epoch = begin_epoch(j, lock, log);
    master::job_options o = master_options(j, p, r, log);
    o.epoch = epoch;
    return o;
  }

  /// Writes the final state or the best model like a master's server: retries for a time if the storage
  /// fails. Throws the last failure.
  void retry(std::string name, std::function<void()> const& work) const {
    for (master::final_retries tries(std::move(name), around_.storage, log_, now());;) try {
        return work();
      } catch (error const& e) {
        bool const lost = lock_ && lock_->lost();  // no retry changes that
        if (lost || !tries.go_on(e.what(), now())) throw;
        std::this_thread::sleep_for(tries.pause());
      }
  }

  /// A server's master knows version and loss from heartbeats; here they are exact.
  master::job_progress progress() const {
    master::job_progress p = coordinator_.progress();
    p.version = store_.version();
    if (seen_ && seen_->loss != 0) p.loss = seen_->loss;
    if (seen_) p.trained = seen_->trained();
    return p;
  }

  void close_history() {
    if (job_.command == command::train) reporter_.history().close(coordinator_, progress(), now());
  }

  void alive() {
    auto const at = now();
    master::job_progress const p = progress();
    reporter_.view().update(p, at);
    reporter_.look(coordinator_, p, at);
    finish_writing(false);
    if (at - last_beat_ < std::chrono::seconds(1)) return;
    last_beat_ = at;
    master::vitals v;
    if (seen_) v = {.version = seen_->version, .records = seen_->records, .loss = seen_->loss};
    coordinator_.heartbeat(role::worker, 0, 0, v, at);
    coordinator_.tick(at);
  }

  /// Reports a checkpoint once it is on the disk. `wait`: waits until it is.
  void finish_writing(bool wait) {
    if (!written_.valid()) return;
    if (!wait && written_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
    coordinator_.checkpoint_written(coordinator_.generation(), writing_, written_.get(), now());
  }

  void write(ps::full_snapshot const& what) {
    auto one = files_.begin(what.version(), coordinator_.generation());
    one.contents.files =
        ps::write_snapshot(what, files_.directory.at(one.path), program_.layout,
                           {.most_changes = std::size_t(job_.checkpoints.delta_checkpoints)});
    reporter_.history().flush();  // before the checkpoint is valid
    files_.commit(one);
    files_.prune(log_);
  }

  void export_model(std::string const& directory, ps::snapshot const& variables) const {
    ps::full_snapshot const rows = store_.full_snapshot();
    std::vector<checkpoint::row_source> tables;
    for (auto const& table : rows.tables) tables.push_back(checkpoint::rows_of(*table));
    files_.export_model(directory, variables.variables(), tables, variables.version(), log_);
  }

  void run_commands() {
    for (auto commands = coordinator_.take_commands(); !commands.empty();
         commands = coordinator_.take_commands())
      for (master::command const& c : commands) std::visit([this](auto const& one) { execute(one); }, c);
  }

  // What follows corresponds to the calls of a master to the servers, which keep the model; here the store
  // does. No call is retried, because no other process can be unavailable. The start is the only restore
  // point, because nothing can be lost.
  void execute(master::find_restore_point const& c) {
    coordinator_.restore_point_found(c.generation, options_.start, now());
  }
  void execute(master::ask_version const& c) {
    store_.flush();
    coordinator_.version_announced(c.generation, store_.version(), now());
  }
  void execute(master::write_checkpoint const& c) {
    finish_writing(true);
    if (c.final) close_history();
    ps::full_snapshot what = c.final ? store_.full_snapshot() : store_.frozen().checkpoint(c.version);
    invariant(what.version() == c.version, "a checkpoint has the requested version");
    if (std::string const line = store_.rows().describe(); !line.empty() && !c.final)
      log_.info(fmt::format("version {}: {}", c.version, line));
    invariant(!written_.valid(), "one checkpoint is written at a time");
    writing_ = c.version;
    written_ = std::async(std::launch::async, [this, final = c.final, what = std::move(what)] {
      try {
        final ? retry("the final checkpoint", [&] { write(what); }) : write(what);
        return std::string();
      } catch (std::exception const& e) {
        return std::string(e.what());
      }
    });
    if (c.final) finish_writing(true);
  }
  void execute(master::release_frozen const& c) {
    c.evaluation ? store_.frozen().release_evaluation(c.version)
                 : store_.frozen().release_checkpoint(c.version);
  }
  void execute(master::evaluation_done const& c) {
    if (worst_) reporter_.worst(c.result.evaluated.version, worst_());
    bool const best = reporter_.evaluated(c.result, coordinator_);
    if (options_.judges) judge(c.result, best);
  }
  void execute(master::log_line const& c) { reporter_.say(c); }

  // There are no processes to configure, start or notify; the worker learns of the end when it asks for work.
  void execute(master::configure_servers const&) {}
  void execute(master::replace_process const&) {}
  void execute(master::start_process const&) {}
  void execute(master::stop_process const&) {}
  void execute(master::avoid_place const&) {}
  void execute(master::evade_place const&) {}
  void execute(master::write_model const&) {}
  void execute(master::finish_job const&) {}
  void execute(master::suspend_job const&) {}
  void execute(master::fail_job const&) {}

  /// Writes the best model before it is listed as the best.
  void judge(master::evaluation_result const& r, bool best) {
    std::string failed;
    master::verdict follows;
    try {
      if (best)
        retry("the best model",
              [&] { export_model(best_path(job_), frozen_or_current(store_, r.evaluated.version)); });
      follows = reporter_.judged(r)();
    } catch (std::exception const& e) {
      failed = e.what();
    }
    coordinator_.judged(r.evaluated.version, now(), failed, follows);
  }

  program& program_;
  job const& job_;
  local_context const& around_;
  checkpoint::directory_lock* lock_;
  logger log_;
  ps::store& store_;
  master::job_options options_;
  master::coordinator coordinator_;
  reporter reporter_;
  checkpoint::job_files files_;
  worker::progress const* seen_ = nullptr;
  time_point last_beat_{};
  std::function<std::string()> worst_;
  std::uint64_t shown_ = store_.version();  // of the last histograms
  std::uint64_t writing_ = 0;               // version of the checkpoint being written on another thread
  std::future<std::string> written_;        // why that failed; empty: it is written
};

}  // namespace detail

EDL_INLINE int run_local(program& p, job const& j, logger const& log, local_context const& around) {
  make_directories(j);
  auto const lock = lock_outputs(j, checkpoint::lock_options::part::whole, log);
  records const r = open_records(j, p.open, log, trained_reading(j));
  plan_training(*p.rule, j, r);
  tell_of(r, j, *p.rule, log);
  auto const trainer = p.make_trainer(trainer_options_of(j, p, 1, 0));
  if (!trainer->device().empty()) log.info(fmt::format("computes on {}", trainer->device()));
  if (j.command == command::train && !trainer->device().empty() &&
      (j.observe.tensorboard_histograms > 0 || j.evaluation.worst > 0))
    throw usage_error(fmt::format("--{} works on a processor only: add --device=cpu",
                                  j.evaluation.worst > 0 ? "worst" : "tensorboard_histograms"));
  if (std::string const note = precision_note(j, *trainer); !note.empty()) log.warning(note);
  p.rule->share([&trainer](std::function<void(int)> const& work) { trainer->share(work); });
  auto const policy = policy_of(j);
  ps::store store(detail::shared_by(store_options_of(j, p, *policy, 0, 1), *trainer));
  detail::local_master master(p, j, r, store, lock.get(), log, around);
  configure(store, j, p, master.start().directory);
  arena* const own = trainer->arena();
  bool const moved = own && detail::may_move(store, j);
  if (moved) store.move_to(*own);
  worker::time_account* spent = nullptr;  // set before the first push
  store_link parameters(
      store, moved,
      [&master, &spent](ps::push_result const& pushed) {
        worker::time_account::scope const counts(*spent, worker::time_account::tasks);
        master.pushed(pushed);
      },
      [&master] { master.pushing(); });
  if (j.rests_to_evaluate()) parameters.rest_every(j.evaluation.evaluation_steps);
  if (j.observe.tensorboard_histograms > 0)
    parameters.watch(
        [&](std::uint64_t version, view<float> gradients) { master.learned(version, gradients); });
  worker::prediction_sink const sink = predictions_of(j, p, r.prediction.get(), 0);
  std::optional<hard_records> hard;
  if (hard_records::wanted(j)) hard.emplace(j, p, *r.evaluation);
  master.begin();
  clean_outputs(j, false, log);  // everything has been checked by now
  if (j.observe.tensorboard_pictures > 0) master.show(sample_pictures(j, p, r, *trainer));
  worker::session session(session_options_of(j, p), *trainer, *p.rule, r.view(), master, parameters, log,
                          sink);
  spent = &session.account();
  master.watch(session.seen());
  session.stop_when([&] {
    if (auto const lost = lock ? lock->lost() : std::nullopt) throw error(*lost);
    return around.interrupted();
  });
  if (hard) {
    session.inspect_with([&](data::batch const& b) { hard->look(*trainer, b); });
    if (j.command == command::train) master.tell_worst([&hard] { return hard->take_worst(); });
  }
  call_on_step(session, j, p, 0, log);
  bool const complete = session.run();
  master.close(complete);
  if (hard && complete && j.command != command::train) hard->tell(std::cout, log);
  write_profile(j, *trainer, session, "local", log);
  return complete ? 0 : 1;
}

}  // namespace edl::train

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>

#include "edl/checkpoint/directory.hpp"
#include "edl/checkpoint/layout_digest.hpp"
#include "edl/checkpoint/model_file.hpp"
#include "edl/core/inline.hpp"
#include "edl/master/coordinator.hpp"
#include "edl/ps/store.hpp"
#include "edl/train/local.hpp"
#include "edl/train/metric_history.hpp"
#include "edl/train/onnx_model.hpp"
#include "edl/train/outputs.hpp"
#include "edl/train/progress.hpp"
#include "edl/train/records.hpp"
#include "edl/train/setup.hpp"
#include "edl/train/start.hpp"
#include "edl/train/summary.hpp"
#include "edl/worker/session.hpp"

namespace edl::train {
namespace detail {

/// Threads that compute have nothing to do while rows come and go.
inline ps::store_options shared_by(ps::store_options o, worker::trainer& trainer) {
  for (sparse::table_options& t : o.tables)
    t.share = [&trainer](std::function<void(int)> const& work) { trainer.share(work); };
  return o;
}

/// The master's decisions and the only store, as the worker of this process sees them.
class local_links final : public worker::master_link, public worker::parameter_link {
 public:
  local_links(program& p, job const& j, records const& r, worker::trainer& trainer,
              checkpoint::permission allowed, logger log, local_surroundings const& around)
      : program_(p),
        around_(around),
        job_(j),
        manifest_(describe(j, r)),
        allowed_(std::move(allowed)),
        log_(std::move(log)),
        policy_(policy_of(j)),
        store_(detail::shared_by(store_options_of(j, p, *policy_, 0, 1), trainer)),
        options_(master_options(j, p, r, log_)),
        master_(options_, now()),
        history_(history_of(j, p, options_.start.version)),
        view_(j, log_, around.show) {
    view_.goes_on_from(options_.start.applied);
    configure(store_, job_, program_, options_.start.directory);
    // Not what would need host memory between steps: --get_model_steps, steps of several minibatches,
    // servers' differing histories, and a moving average. Nor what is trained in part: there all is.
    if (arena* const there = trainer.arena(); there && store_.segments() == 1 && j.get_model_steps == 1 &&
                                              minibatches_of_a_step(j) == 1 && j.moving_average == 0 &&
                                              j.freeze.empty()) {
      store_.move_to(*there);
      moved_ = true;
    }
    if (!master_.over())
      master_.join({.of = master::role::worker, .layout = checkpoint::layout_digest(p.layout)}, now());
    run_commands();
    if (history_ && history_->stopped()) master_.stop(now());
  }

  worker::assignment next(std::uint32_t) override {
    alive();
    master::task_reply const r = master_.request_task(0, 0, now());
    run_commands();
    if (master_.failed()) throw error(master_.reason());
    worker::assignment a;
    a.kind = r.kind;
    if (!is_work(a.kind)) return a;
    a.lease = r.lease, a.task = r.key, a.shard = r.range.shard, a.begin = r.range.begin, a.end = r.range.end;
    a.shard_name = options_.shards(a.kind)[a.shard].name;
    a.version = r.version, a.applied = r.applied, a.resumed = r.resumed, a.until = r.until;
    return a;
  }

  bool report(worker::outcome const& o) override {
    bool const accepted = master_.report_task({.lease = o.lease,
                                               .error = o.error,
                                               .metrics = o.metrics,
                                               .returned = o.returned,
                                               .applied = o.applied,
                                               .skipped = o.skipped},
                                              now());
    alive();
    run_commands();
    return accepted;
  }

  std::optional<std::uint64_t> in_place() const override {
    return moved_ ? std::optional(store_.version()) : std::nullopt;
  }

  std::uint64_t pull(std::span<float> variables) override {
    std::ranges::copy(store_.current(), variables.begin());
    return store_.version();
  }

  void pull_frozen(std::uint64_t version, std::span<float> variables) override {
    if (version == store_.version())
      std::ranges::copy(store_.averaged().variables(), variables.begin());
    else
      std::ranges::copy(store_.evaluation(version).variables(), variables.begin());
  }

  void pull_rows(sparse::minibatch_rows& rows) override {
    for (std::size_t t = 0; t < rows.tables(); ++t) store_.pull_rows(t, rows.ids(t), rows.rows(t));
  }

  worker::pushed push(contribution const& minibatch, std::uint64_t version, view<float> gradients,
                      view<float> state_change, std::span<sparse::row_gradients const> rows) override {
    ps::push_result const r = store_.push(minibatch, version, gradients, state_change, rows);
    // In use from now on: what is newer does not take its place before it is evaluated.
    bool const evaluate = r.evaluate && store_.has_evaluation(r.version);
    if (evaluate || r.checkpoint)
      master_.version_reached({.generation = master_.generation(),
                               .version = r.version,
                               .evaluate = evaluate,
                               .checkpoint = r.checkpoint},
                              now());
    alive();
    run_commands();
    return {.stale = r.outcome == ps::push_outcome::stale, .version = r.version};
  }

  std::uint32_t position(task_key const& task, std::uint32_t minibatches) override {
    auto const at = store_.position(task);
    return at.closed ? minibatches : at.applied;
  }

  /// What is left when the worker has nothing to do any more. `complete`: it has worked to the end.
  void close(bool complete) {
    finish_writing(true);
    if (!complete && !job_.checkpoint_dir.empty() && job_.command == command::train)
      write(store_.full_snapshot());
    if (complete && !job_.output.empty()) {
      ps::snapshot const what = store_.averaged();
      export_to(job_.output, what.variables(), what.version());
      if (!job_.export_onnx.empty())
        log_.info(export_onnx(program_, job_, job_.output + "/model.safetensors", job_.export_onnx, log_));
    }
    view_.update(progress(), now());
    view_.clear();
    if (std::string const line = store_.describe_tables(); !line.empty()) log_.info(line);
    for (std::string const& line : account_lines(master_)) log_.info(line);
    if (history_)
      for (std::string const& line : history_lines(job_, *history_)) log_.info(line);
    if (!complete) tell_stopped("stopped", job_, view_, around_.command, log_);
    if (std::string const line = outcome(job_, program_); complete && !line.empty()) log_.info(line);
    if (!master_.unevaluated().empty()) throw error(master_.unevaluated());
    if (complete) tell({job_, master_, view_, around_.command, history_ && history_->stopped()}, now(), log_);
  }

  void watch(worker::progress const& of) { seen_ = &of; }

 private:
  using clock = std::chrono::steady_clock;
  static clock::time_point now() { return clock::now(); }

  /// Heartbeats tell the version and the loss now and then; here they are known.
  master::job_progress progress() const {
    master::job_progress p = master_.progress();
    p.version = store_.version();
    if (seen_ && seen_->loss != 0) p.loss = seen_->loss;
    return p;
  }

  void alive() {
    auto const at = now();
    view_.update(progress(), at);
    finish_writing(false);
    if (at - last_beat_ < std::chrono::seconds(1)) return;
    last_beat_ = at;
    master::vitals v;
    if (seen_) v = {.version = seen_->version, .records = seen_->records, .loss = seen_->loss};
    master_.heartbeat(master::role::worker, 0, 0, v, at);
    master_.tick(at);
  }

  void run_commands() {
    for (auto commands = master_.take_commands(); !commands.empty(); commands = master_.take_commands())
      for (master::command const& c : commands) std::visit([this](auto const& one) { execute(one); }, c);
  }

  void execute(master::find_restore_point const& c) {
    master_.restore_point_found(c.generation, options_.start, now());
  }
  void execute(master::configure_servers const&) {}
  void execute(master::ask_version const& c) {
    store_.flush();
    master_.version_announced(c.generation, store_.version(), now());
  }
  void execute(master::write_checkpoint const& c) {
    finish_writing(true);
    writing_ = c;
    ps::full_snapshot const what = c.final ? store_.full_snapshot() : store_.checkpoint(c.version);
    if (std::string const line = store_.describe_tables(); !line.empty() && !c.final) {
      log_.info(fmt::format("version {}: {}", what.version(), line));
    }
    written_ = std::async(std::launch::async, [this, what] {
      try {
        write(what);
        return std::string();
      } catch (std::exception const& e) {
        return std::string(e.what());
      }
    });
    if (c.final) finish_writing(true);
  }
  void execute(master::release_frozen const& c) {
    c.evaluation ? store_.release_evaluation(c.version) : store_.release_checkpoint(c.version);
  }
  void execute(master::replace_process const&) {}
  void execute(master::start_process const&) {}
  void execute(master::stop_process const&) {}
  void execute(master::evaluation_done const& c) {
    view_.evaluated(program_.metrics(c.result.totals), c.result.of.version, c.result.records);
    tell_evaluation(job_, evaluation_line(program_, c.result), view_, log_);
    if (std::string const odd = odd_metrics(job_, program_, c.result); !odd.empty()) log_.warning(odd);
    if (history_) judge(c.result);
  }

  /// The best is written before it is said to be the best.
  void judge(master::evaluation_result const& r) {
    try {
      keep(r);
      if (history_->stopped()) master_.stop(now());
    } catch (std::exception const& e) {
      log_.warning(fmt::format("the evaluation of version {} does not count, it cannot be kept: {}",
                               r.of.version, e.what()));
    }
    master_.judged(r.of.version, now());
  }

  void keep(master::evaluation_result const& r) {
    auto const metrics = program_.metrics(r.totals);
    if (history_->is_best(r.of.version, metrics)) {
      ps::snapshot const what =
          r.of.version == store_.version() ? store_.averaged() : store_.evaluation(r.of.version);
      std::filesystem::create_directories(best_path(job_));
      export_to(best_path(job_), what.variables(), what.version());
    }
    history_->add(r.of.version, metrics);
  }

  void export_to(std::string const& directory, view<float> variables, std::uint64_t version) {
    ps::full_snapshot const rows = store_.full_snapshot();
    std::vector<checkpoint::row_source> tables;
    for (auto const& snapshot : rows.tables) tables.push_back(checkpoint::rows_of(*snapshot));
    std::string const path = directory + "/model.safetensors";
    checkpoint::export_model(path, program_.layout, variables, tables, version,
                             {job_.seed, job_.hyperparameters});
    log_.info(fmt::format("model written to {}", path));
  }
  void execute(master::finish_job const&) {}
  void execute(master::suspend_job const&) {}
  void execute(master::fail_job const&) {}
  void execute(master::log_line const& c) { log_.log(c.level, c.text); }

  void write(ps::full_snapshot const& what) {
    std::string const path = checkpoint::checkpoint_path(job_.checkpoint_dir, what.version());
    auto const earlier = checkpoint::begin_checkpoint(path);
    checkpoint::manifest m = manifest_;
    m.version = what.version();
    m.layout = checkpoint::layout_digest(program_.layout);
    m.files = ps::write_snapshot(what, path, program_.layout, {.most_changes = job_.delta_checkpoints});
    checkpoint::commit_checkpoint(path, m, earlier, allowed_);
    try {
      checkpoint::prune(job_.checkpoint_dir, std::uint64_t(job_.keep_checkpoint_max), allowed_);
    } catch (std::exception const& e) {
      log_.warning(fmt::format("old checkpoints in {} cannot be removed: {}", job_.checkpoint_dir, e.what()));
    }
  }

  /// Tells the master when a checkpoint is on the disk; `wait`: not before it is.
  void finish_writing(bool wait) {
    if (!written_.valid()) return;
    if (!wait && written_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
    std::string const error = written_.get();
    master_.checkpoint_written(master_.generation(), writing_.version, error, now());
  }

  program& program_;
  local_surroundings const& around_;
  job const& job_;
  checkpoint::manifest manifest_;
  checkpoint::permission allowed_;  // to write checkpoints
  logger log_;
  std::unique_ptr<ps::policy> policy_;
  ps::store store_;
  bool moved_ = false;  // to the trainer
  master::job_options options_;
  master::coordinator master_;
  std::optional<metric_history> history_;
  progress_view view_;
  worker::progress const* seen_ = nullptr;
  clock::time_point last_beat_{};
  master::write_checkpoint writing_;
  std::future<std::string> written_;
};

}  // namespace detail

EDL_INLINE int run_local(program& p, job const& j, logger const& log, local_surroundings const& around) {
  make_directories(j);
  auto const lock = lock_outputs(j, checkpoint::lock_options::part::whole, log);
  records const r = open_records(j, p.open, log);
  tell_of(r, j, log);
  auto const trainer = p.make_trainer(trainer_options_of(j, p, 1, 0));
  if (!trainer->device().empty()) log.info(fmt::format("computes on {}", trainer->device()));
  if (std::string const note = precision_note(j, *trainer); !note.empty()) log.warning(note);
  p.rule->share([&trainer](std::function<void(int)> const& work) { trainer->share(work); });
  checkpoint::permission const allowed = [&] {
    if (lock) lock->check();
  };
  detail::local_links links(p, j, r, *trainer, allowed, log, around);
  clean_outputs(j, false, log);
  worker::session session(session_options_of(j, p), *trainer, *p.rule, r.view(), links, links, log,
                          predictions_of(j, p, 0));
  links.watch(session.seen());
  session.stop_when([&] {
    if (auto const lost = lock ? lock->lost() : std::nullopt) throw error(*lost);
    return around.interrupted();
  });
  bool const complete = session.run();
  links.close(complete);
  write_profile(j, *trainer, "local", log);
  return complete ? 0 : 1;
}

}  // namespace edl::train

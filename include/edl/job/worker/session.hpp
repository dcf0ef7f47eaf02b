// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "edl/compute/data/loader.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/compute/features/string_lookup.hpp"
#include "edl/compute/optim/part_rates.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/log.hpp"
#include "edl/core/partition.hpp"
#include "edl/core/task_kind.hpp"
#include "edl/core/trained.hpp"
#include "edl/job/worker/clip.hpp"
#include "edl/job/worker/kept_minibatch.hpp"
#include "edl/job/worker/links.hpp"
#include "edl/job/worker/trainer.hpp"

namespace edl::worker {

/// The visible progress of a running session. Thread safety: safe.
struct progress {
  std::atomic<std::uint64_t> version{0}, records{0};
  std::atomic<std::uint64_t> position{0};  ///< passes begun plus ended: odd within one
  std::atomic<float> pass{
      0};  ///< seconds per record, the median of the newest training passes; 0: too few yet
  std::atomic<float> loss{0};  ///< the mean of the newest `losses_shown` minibatches, or of all

  /// All minibatches together.
  edl::trained trained() const {
    std::lock_guard const lock(mutex_);
    return trained_;
  }
  void add(edl::trained const& more) {
    std::lock_guard const lock(mutex_);
    trained_ += more;
  }

 private:
  mutable std::mutex mutex_;
  edl::trained trained_;
};

inline constexpr std::size_t losses_shown = 100, passes_measured = 32;

/// The time of a session's `run` by parts. Each moment of its thread counts for one part, so the parts add up
/// to the total. Thread safety: distinct objects: safe. Shared objects: unsafe, except `loading`.
class time_account {
 public:
  enum part : std::uint8_t { records, training, evaluation, prediction, parameters, step, tasks, other };
  static constexpr std::size_t parts = 8;

  /// Unless it counts, it reads no clock.
  explicit time_account(bool counts) : counts_(counts) {}
  time_account(time_account const&) = delete;

  /// During its lifetime time counts for this part, and afterwards again for the one before; outside all
  /// scopes for none.
  class scope {
   public:
    scope(time_account& of, part p) : account_(of), before_(of.now_) { of.turn(p); }
    scope(scope const&) = delete;
    ~scope() { account_.turn(before_); }

   private:
    time_account& account_;
    std::optional<part> before_;
  };

  bool counts() const { return counts_; }
  std::chrono::nanoseconds of(part p) const { return spent_[p]; }

  std::chrono::nanoseconds layers{0}, loss{0};  ///< parts of `training`, from the network's trace
  data::loading_times loading;                  ///< of all loader threads, also during computation: in no sum

 private:
  void turn(std::optional<part> next) {
    if (!counts_) return;
    auto const now = clock::now(), since = std::exchange(since_, now);
    invariant(since <= now, "a session's time goes on");
    if (auto const ends = std::exchange(now_, next)) spent_[*ends] += now - since;
  }

  bool counts_;
  std::array<std::chrono::nanoseconds, parts> spent_{};
  time_point since_{};
  std::optional<part> now_;
};

struct session_options {
  bool trains = true;
  bool one_pass = false;   ///< the job has one epoch, so that no training record is read twice
  bool evaluates = false;  ///< before its end, too
  int minibatch_size = 64;
  int loader_threads = 0;  ///< the loader's own; 0: use those that the trainer leaves idle
  std::uint64_t seed = 1;  ///< determines the order of records
  bool shuffle = true;
  bool skip_damaged = false;
  int get_model_steps = 1;  ///< steps between two pulls
  bool rounds = false;      ///< these steps are pushed together (`local_rounds`)
  clipping clip{};
  std::vector<element_range> fixed{};  ///< parameters, from `fixed_elements`: no step changes these
  std::vector<rated_range> rated{};    ///< likewise, from `rates_of_parts`
  std::uint64_t log_loss_steps = 100;
  struct checks {
    std::uint64_t period = 0;   ///< one minibatch in this many is reported as digests and kept; 0: none
    bool common = false;        ///< check all workers at the same versions: multiples of `period`
    std::uint64_t weights = 0;  ///< with `common`: report digests of weights at multiples of this; 0: never
  } checks{};
};

/// Where a worker reads records from; null where a job has none of that kind.
struct sources {
  data::source const* training = nullptr;
  data::source const* evaluation = nullptr;
  data::source const* prediction = nullptr;

  data::source const* of(task_kind k) const {
    if (k == task_kind::check) return training;
    return k == task_kind::training ? training : k == task_kind::evaluation ? evaluation : prediction;
  }
};

/// Receives the predictions of a whole task: rows × outputs, in the order of its records, and each record's
/// number in the task's shard. Excludes damaged records that were skipped. Receives a repeated task again.
using prediction_sink =
    std::function<void(assignment const& task, view<float> outputs, view<std::uint64_t> records)>;

/// A worker's loop: lease, read, compute, push, report, until there is no work. It leases one task ahead in
/// every lane, so that records are read and decoded while the previous task is computed. Thread safety: `run`
/// once, on one thread; `seen` from any.
class session {
 public:
  /// References must outlive the session. `rule` makes local steps between pulls (--get_model_steps).
  session(session_options const& o, trainer& model, update_rule const& rule, sources from,
          master_link& master, parameter_link& parameters, logger log, prediction_sink sink = {});
  ~session();

  /// Works until the job is finished (true) or it is asked to stop (false: its leases have been handed back).
  /// Throws edl::error if the master or the servers are lost for good.
  bool run();

  /// Called before every minibatch: true makes `run` hand back the rest and return.
  void stop_when(std::function<bool()> stopping) { stopping_ = std::move(stopping); }

  /// Calls this after each minibatch that the servers or the other workers have accepted.
  void after_step(std::function<void(std::uint64_t version, double loss, int records)> call) {
    after_step_ = std::move(call);
  }

  /// Calls `inspect` with each evaluated minibatch, while the trainer has its version, and `end` with each
  /// completed task, before the session reports it, together with the result of `end`, to the master.
  void inspect_with(std::function<void(data::batch const& b)> inspect,
                    std::function<std::string(task_key const& done)> end = {}) {
    inspect_ = std::move(inspect);
    inspected_ = std::move(end);
  }

  /// The store of minibatches that others may recompute, and the function that fetches theirs
  /// (`kept_minibatch::fetch`). Without it nothing is checked.
  using fetch_inputs = std::function<bool(assignment const& check, std::span<float> variables,
                                          std::span<std::span<float> const> rows)>;
  void check_with(kept_minibatch& kept, fetch_inputs fetch);

  progress const& seen() const { return seen_; }
  time_account& account() { return account_; }  ///< for code on this thread, and after `run`

 private:
  struct lease {
    assignment task;
    std::uint64_t ticket = 0;                            // identifies the loader's work
    std::uint32_t minibatches = 0, next = 0, until = 0;  // total, next one, and end
    std::uint64_t skipped = 0;                           // damaged records
    std::vector<double> totals;                          // evaluation
    std::vector<float> outputs;                          // prediction
    std::vector<std::uint64_t> records;                  // likewise: the records' numbers
    std::vector<checked_minibatch> checked = {};
  };

  struct lane {
    std::deque<lease> leases;           // the first is in work, the loader reads the others
    time_point ask_again{};             // after the master had no work
    bool rests = false;                 // the master said that no step is made for now
    std::chrono::milliseconds pause{};  // until the next request
    std::map<data::source const*, std::unique_ptr<data::loader>> loaders;
  };

  void tell_damage(data::batch const& b);
  void tell_words() const;
  lane& here();
  void check() const;
  int loader_threads() const;
  data::loader& loader_of(lane& in, assignment const& a);
  void lease_ahead();
  void begin(lane& in, assignment const& a);
  void try_evaluation();
  bool next_lane();
  void idle();
  void work(lease& l, data::batch& b);
  bool train(lease& l, data::batch& b);  // false: the lease has been returned
  void check(lease& l, data::batch& b);  // recomputes another worker's minibatch
  enum class sample { none, weights, whole };
  sample sample_of_next() const;
  std::shared_ptr<kept_minibatch::inputs const> copy_inputs(minibatch_key const& of);
  double pass(data::batch const& b, minibatch_key const& of, gradients_ready const& ready);
  std::uint64_t result_digest(double loss, std::span<sparse::row_gradients const> of_rows) const;
  void pull_rows(data::batch& b);
  void clip_gradients();
  std::uint64_t scheduled_step() const;
  void local_step(float rate);
  void pull(data::batch& b);
  void end(std::string const& error, bool wrong = false, bool refused = false);
  void report_applied();
  void end_round();
  void give_back();
  void hand_back();
  bool rests() const;
  void rest();
  void drop_leases();
  void start_again(rolled_back const& why);

  session_options options_;
  trainer& model_;
  rated_rule rule_;
  sources from_;
  master_link& master_;
  parameter_link& parameters_;
  logger log_;
  prediction_sink sink_;

  std::deque<lane> lanes_ = std::deque<lane>(1);
  lane_range own_;        // the job's lanes that `lanes_` are
  std::size_t turn_ = 0;  // the current lane
  bool turn_is_over_ = false;
  std::optional<std::uint64_t> rested_at_;  // the version at which all leases were returned
  std::vector<outcome> unreported_;         // of tasks whose last minibatches are not applied yet
  bool finished_ = false;
  std::uint64_t ticket_ = 0;

  std::uint64_t version_ = 0;            // of the variables here
  std::optional<std::uint64_t> frozen_;  // set if the variables here are of a frozen version
  int steps_since_pull_ = -1;            // −1: pull first
  std::uint64_t local_steps_ = 0, next_loss_line_ = 0;
  std::deque<float> losses_;   // the newest
  std::vector<float> passes_;  // since the last median
  std::vector<float> state_before_, change_;
  sparse::minibatch_rows rows_;
  std::optional<contribution> at_work_;  // the minibatch being computed
  gradients_ready ready_;
  std::vector<std::vector<float>> slots_;
  std::vector<std::span<float>> clipped_;  // the parts of a gradient

  progress seen_;
  time_account account_;
  features::lookup_count evaluated_, predicted_;
  std::optional<std::string> tried_evaluation_;  // the result: empty, or an error
  std::function<bool()> stopping_;
  std::function<void(std::uint64_t version, double loss, int records)> after_step_;
  std::function<void(data::batch const&)> inspect_;
  std::function<std::string(task_key const&)> inspected_;
  std::set<std::string> reported_damage_;
  kept_minibatch* kept_ = nullptr;
  fetch_inputs fetch_;
};

}  // namespace edl::worker

#ifdef EDL_HEADER_ONLY
#include "edl/job/worker/session.ipp"
#endif

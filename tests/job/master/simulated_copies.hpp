// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "job/master/simulated_time.hpp"

namespace simulated_worlds {

using namespace edl::master;
using edl::ledger;
using edl::minibatch_key;
using edl::task_kind;

struct setting {
  std::uint32_t workers = 4, tasks = 24, minibatches = 3;
  std::uint32_t epochs = 2;
  std::uint64_t evaluation_steps = 0, checkpoint_steps = 0;
  std::uint32_t lanes = 0;                 // 0: tasks go to whoever asks
  std::optional<std::uint32_t> slow = {};  // the worker whose passes take twice as long; bad nodes are left
  // Probabilities: of a death and of a hang in the middle of a step, of a death at any other time (per worker
  // and second), of everybody's death at once (per second), of a newcomer (per second).
  double kill_in_step = 0, hang_in_step = 0, kill = 0, kill_all = 0, join = 0;
};

/// The workers of a job by all-reduce as they are at one moment, each with a copy of the model.
class simulated_copies : public simulated_time {
 public:
  simulated_copies(setting const& s, std::uint64_t seed)
      : simulated_time(seed), set(s), master(options(s, seed), at(0)) {}

  static job_options options(setting const& s, std::uint64_t seed) {
    job_options o;
    o.type = s.evaluation_steps ? job_type::training_with_evaluation : job_type::training_only;
    o.minibatch_size = 2;
    o.minibatches_per_task = s.minibatches;
    o.training = {{"a", std::uint64_t(s.tasks) * s.minibatches * 2 - 1}};
    o.validation = {{"v", 31}};
    o.num_epochs = s.epochs;
    o.evaluation_steps = s.evaluation_steps;
    o.checkpoint = s.checkpoint_steps > 0;
    o.final_checkpoint = true;
    o.seed = seed;
    o.num_workers = s.workers;
    o.lanes = s.lanes;
    o.worker_failures = 1u << 30;
    o.replicas = true;
    o.leave_bad_nodes = s.slow.has_value();
    o.exit_grace = std::chrono::seconds(8);
    o.absence = std::chrono::seconds(12);
    return o;
  }

  /// A copy of the model. It has what has been applied to it, by the ledger, and how often, minibatch by
  /// minibatch. In which order all that was stands for its values.
  struct copy_state {
    std::uint64_t version = 0;
    ledger applied;
    std::vector<std::uint8_t> times;
    std::uint64_t value = 0;
    friend bool operator==(copy_state const&, copy_state const&) = default;
  };

  enum class doing { nothing, entering, copying, asking, idle, computing, ready, evaluating };

  /// A training task in a worker's hands.
  struct hand {
    task_reply task;
    std::uint32_t lane = 0, done = 0;
    bool over() const { return done >= minibatches_of(task); }
  };

  struct worker {
    std::uint32_t id = 0;
    std::uint64_t incarnation = 0;
    bool alive = true, joined = false;
    double hangs = 0;  // until then it does nothing
    doing now = doing::nothing;
    std::uint64_t number = 0;           // of the world that it is in
    std::uint64_t copied = 0;           // of the last one that its copy is of
    std::uint64_t life = 0;             // what was begun in an earlier life is void
    std::uint64_t history = 0;          // another one whenever its copy did not come about by steps
    std::uint64_t reached = 0;          // the world that it has followed others in
    std::vector<std::uint32_t> brings;  // who has followed it
    std::optional<copy_state> copy;
    std::map<std::uint64_t, copy_state> to_write;
    std::set<std::uint64_t> to_evaluate;
    std::vector<hand> hands;         // by lane
    std::optional<task_reply> task;  // of an evaluation
  };

  /// The job ends with it, whether it was due or is that of the end.
  copy_state const& last_checkpoint() const { return checkpoints.rbegin()->second; }

  setting set;
  coordinator master;
  std::vector<std::unique_ptr<worker>> workers;
  std::map<std::uint32_t, worker*> newest;
  std::map<std::uint64_t, copy_state> checkpoints;  // by version, as directories are
  std::vector<evaluation_result> results;
  std::uint64_t kills = 0, hangs = 0, joins = 0, torn = 0, copies = 0, restores = 0, behind = 0, gaps = 0,
                lost_evaluations = 0, missing_checkpoints = 0, followed = 0, avoided = 0;
  std::string failure;

  worker* member(world::member const& m) {
    auto const it = newest.find(m.id);
    return it != newest.end() && it->second->incarnation == m.incarnation ? it->second : nullptr;
  }

  /// The living members of the last world.
  std::vector<worker*> survivors() {
    std::vector<worker*> all;
    for (auto const& m : master.current_world().members)
      if (worker* const w = member(m); w && w->alive) all.push_back(w);
    return all;
  }

  /// For people, when it does not end.
  std::string state() {
    std::string out = "generation " + std::to_string(master.generation()) +
                      (master.ready() ? ", ready" : ", forming") + ", world " +
                      std::to_string(master.current_world().number) + ", leased " +
                      std::to_string(master.tasks()->leased());
    for (auto const& w : workers)
      if (w->alive)
        out += "\n  worker " + std::to_string(w->id) + " in " + std::to_string(w->number) + " doing " +
               std::to_string(int(w->now)) + " version " + std::to_string(w->copy ? w->copy->version : 0) +
               (w->hangs > clock ? " hangs" : "") + (w->hands.empty() ? "" : " with a task") +
               (master.workers().known(w->id, w->incarnation) ? "" : " unknown to the master");
    return out;
  }

  std::size_t place(minibatch_key const& m) const {
    return (std::size_t(m.task.epoch) * set.tasks + m.task.index) * set.minibatches + m.index;
  }
  copy_state fresh() const {
    return {0, {}, std::vector<std::uint8_t>(std::size_t(set.epochs) * set.tasks * set.minibatches), 0};
  }
};

}  // namespace simulated_worlds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "job/master/driven_master.hpp"

namespace replicated_master {

using namespace edl::master;
using edl::ledger;
using edl::task_kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Twenty records in tasks of four, in minibatches of two.
inline job_options replicated(job_type type = job_type::training_only) {
  job_options o;
  o.type = type;
  o.training = {{"t", 20}};
  o.validation = {{"v", 8}};
  o.prediction = {{"p", 8}};
  o.minibatch_size = 2;
  o.minibatches_per_task = 2;
  o.shuffle = false;
  o.num_workers = 2;
  o.replicas = true;
  o.absence = seconds(20);
  return o;
}

inline ledger with_closed(std::uint32_t tasks) {
  ledger l;
  if (tasks > 0) l.set_closed(0, 0, tasks);
  return l;
}

inline copy_position copy(std::uint64_t version, ledger applied = {}) {
  return {version, std::move(applied)};
}

// Workers' incarnation is 1 unless it is said.
struct master : driven_master {
  explicit master(job_options o = replicated()) : driven_master(std::move(o)) {}

  // Versions that may be released now: of one kind.
  std::vector<std::uint64_t> released(bool evaluation) {
    std::vector<std::uint64_t> out;
    look();
    for (auto i = seen.begin(); i != seen.end();) {
      auto const* c = std::get_if<release_frozen>(&*i);
      if (c && c->evaluation == evaluation) {
        out.push_back(c->version);
        i = seen.erase(i);
      } else {
        ++i;
      }
    }
    return out;
  }

  bool join(std::uint32_t id, std::uint64_t incarnation = 1) {
    return it.join({role::worker, id, incarnation, {"tcp:h:" + std::to_string(id + 1)}, 5}, now).accepted;
  }

  // It copies the model while the others go on.
  bool follow(std::uint32_t id) {
    join_request r{role::worker, id, 1, {"tcp:h:" + std::to_string(id + 1)}, 5};
    r.follows = true;
    return it.join(r, now).accepted;
  }

  world const* of(std::uint32_t id, std::uint64_t incarnation = 1) const {
    return it.generations().world_of(id, incarnation);
  }

  // "0 1*" : members of the world that is, and whose copies are current.
  std::string members() const {
    std::string out;
    for (auto const& m : it.current_world().members)
      out += (out.empty() ? "" : " ") + std::to_string(m.id) + (m.current ? "*" : "");
    return out;
  }

  // Workers 0 … n−1 are in the first world.
  void start(std::uint32_t n = 2) {
    for (std::uint32_t i = 0; i < n; ++i) CHECK(join(i));
    for (std::uint32_t i = 0; i < n; ++i) enter(i);
    if (!it.ready()) pass(seconds(4));
    REQUIRE(it.ready());
  }

  void lose(std::uint32_t id, std::uint64_t incarnation = 1) {
    it.hung_up(role::worker, id, incarnation, now);
  }

  void reached(std::uint64_t version, bool evaluate, bool checkpoint = false) {
    it.version_reached({it.generation(), version, evaluate, checkpoint}, now);
  }

  // All training tasks that there are; returns how many.
  int work(std::uint32_t worker = 0) {
    int n = 0;
    for (auto t = ask(worker); t.kind == task_kind::training; t = ask(worker), ++n) CHECK(done(t, worker));
    return n;
  }
};

inline job_options evaluated(std::uint64_t steps = 1) {
  auto o = replicated(job_type::training_with_evaluation);
  o.evaluation_steps = steps;
  return o;
}

inline job_options checkpointed() {
  auto o = replicated();
  o.checkpoint = o.final_checkpoint = true;
  return o;
}

}  // namespace replicated_master

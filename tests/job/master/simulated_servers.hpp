// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "edl/core/random.hpp"
#include "job/master/simulated_time.hpp"

namespace simulated_servers {

using namespace edl::master;
using edl::ledger;
using edl::minibatch_key;
using edl::task_kind;

struct setting {
  std::uint32_t workers = 20, servers = 3;
  std::uint64_t tasks = 200;
  std::uint32_t minibatches = 4;
  int epochs = 3;
  std::uint64_t evaluation_steps = 0, checkpoint_steps = 0, max_step = 0;
  bool replace_slow = false;
  // Probabilities of a fault: per minibatch, per report, and of the loss of a server per second.
  double kill = 0, partition = 0, hang = 0, error = 0, give_back = 0, duplicate = 0, server_loss = 0;
};

/// Everything around the master: workers, servers that keep ledgers, a network that delays and repeats, a
/// platform that starts processes, and somebody who kills them.
class simulated : public simulated_time {
 public:
  simulated(setting const& s, std::uint64_t seed)
      : simulated_time(seed), set(s), master(job(s, seed), at(0)) {
    servers.resize(s.servers);
    for (std::uint32_t i = 0; i < s.servers; ++i) start_server(i);
    for (std::uint32_t i = 0; i < s.workers; ++i) start_worker(i);
    every(1.0, [this] { master.tick(at(clock)); });
    every(1.0, [this] {
      if (chance(set.server_loss)) kill_server(std::uint32_t(random() % servers.size()));
    });
    // Some join that nobody has asked for.
    for (int i = 0; i < 3; ++i)
      after(uniform(5, 60), [this, i] { start_worker(std::uint32_t(1000000 + i)); });
    act();
  }

  /// False: the bound on events was reached.
  bool run(std::uint64_t bound) {
    while (!master.over() && next(bound)) act();
    return master.over();
  }

  static job_options job(setting const& s, std::uint64_t seed) {
    job_options o;
    o.type = s.evaluation_steps ? job_type::training_with_evaluation : job_type::training_only;
    o.minibatch_size = 2;
    o.minibatches_per_task = s.minibatches;
    std::uint64_t const per_task = o.minibatch_size * s.minibatches;
    // Three shards whose last tasks are short.
    o.training = {{"a", per_task * (s.tasks / 2) - 1},
                  {"empty", 0},
                  {"b", per_task * (s.tasks - s.tasks / 2) - (per_task > 2 ? 3 : 1)}};
    o.validation = {{"v", validation_records}};
    o.num_epochs = s.epochs;
    o.max_step = s.max_step;
    o.evaluation_steps = s.evaluation_steps;
    o.checkpoint = o.final_checkpoint = s.checkpoint_steps > 0;
    o.seed = seed;
    o.num_workers = s.workers;
    o.num_servers = s.servers;
    o.worker_failures = o.server_failures = 1u << 30;
    o.replace_slow = s.replace_slow;
    o.task_timeout = std::chrono::seconds(60);
    return o;
  }

  static constexpr std::uint64_t validation_records = 333;

  /// What a set of applied minibatches leaves behind in a server's parameters: order does not count, number
  /// does.
  struct state {
    ledger applied;
    std::uint64_t sum = 0, count = 0, version = 0;
  };

  static std::uint64_t effect(minibatch_key const& m) {
    return edl::mix(edl::mix(m.task.epoch, m.task.index), m.index);
  }

  struct server {
    std::uint64_t incarnation = 0, generation = 0;
    bool alive = false;
    state now;
    std::map<std::uint64_t, state> to_write;
    std::set<std::uint64_t> to_evaluate;
  };

  struct worker {
    std::uint32_t id = 0;
    std::uint64_t incarnation = 0;
    bool alive = true;
    double partitioned = 0;  // what it sends to the master arrives after
    task_reply task;
    std::uint32_t at = 0;
    int tries = 0;
    std::uint64_t records = 0;
  };

  setting set;
  coordinator master;
  std::vector<server> servers;
  std::vector<std::unique_ptr<worker>> workers;
  std::map<std::uint32_t, worker*> newest;
  std::vector<std::pair<std::uint64_t, std::vector<state>>> checkpoints;
  std::vector<evaluation_result> results;
  std::uint64_t gaps = 0, refused = 0, kills = 0, rollbacks = 0, half_pushed = 0, stale = 0, returned = 0;
  std::string failure;

 private:
  // ---- Processes ----

  void start_worker(std::uint32_t id) {
    workers.push_back(std::make_unique<worker>());
    worker* w = workers.back().get();
    w->id = id;
    w->incarnation = random();
    newest[id] = w;
    if (!master.join({role::worker, id, w->incarnation, {}, 7}, at(clock)).accepted) {
      w->alive = false;
      return;
    }
    after(uniform(0, 2), [this, w] { beat(w); });
    request(w, uniform(0, 1));
  }

  void beat(worker* w) {
    if (!w->alive) return;
    if (w->partitioned > clock) return after(w->partitioned - clock, [this, w] { beat(w); });
    auto const reply =
        master.heartbeat(role::worker, w->id, w->incarnation, {.records = w->records}, at(clock));
    if (!reply.known) return die(w, exit_kind::preempted, 1);
    after(2, [this, w] { beat(w); });
  }

  void die(worker* w, exit_kind kind, double told) {
    w->alive = false;
    ++kills;
    if (chance(0.7)) after(0.01, [this, w] { master.left(role::worker, w->id, w->incarnation, at(clock)); });
    if (chance(told))
      after(1, [this, w, kind] {
        if (newest[w->id] == w) master.exited(role::worker, w->id, kind, "killed", at(clock));
      });
  }

  void start_server(std::uint32_t i) {
    server& s = servers[i];
    s = {};
    s.incarnation = random();
    s.alive = true;
    auto const reply = master.join({role::server, i, s.incarnation, {"here"}, 7}, at(clock));
    if (!reply.accepted) failure = "a server was refused: " + reply.reason;
    beat_server(i, s.incarnation);
  }

  void beat_server(std::uint32_t i, std::uint64_t incarnation) {
    server& s = servers[i];
    if (!s.alive || s.incarnation != incarnation) return;
    master.heartbeat(role::server, i, incarnation, {.version = s.now.version}, at(clock));
    after(1, [this, i, incarnation] { beat_server(i, incarnation); });
  }

  void kill_server(std::uint32_t i) {
    server& s = servers[i];
    if (!s.alive) return;
    s.alive = false;
    std::uint64_t const incarnation = s.incarnation;
    if (chance(0.7))
      after(0.05, [this, i, incarnation] { master.left(role::server, i, incarnation, at(clock)); });
    if (chance(0.8))
      after(1, [this, i, incarnation] {
        if (servers[i].incarnation == incarnation)
          master.exited(role::server, i, exit_kind::preempted, "killed", at(clock));
      });
  }

  // ---- A worker's life ----

  double to_master(worker const* w) { return std::max(w->partitioned - clock, 0.0) + uniform(0.001, 0.05); }

  void request(worker* w, double delay) {
    after(delay, [this, w] {
      if (!w->alive) return;
      after(to_master(w), [this, w] {
        auto const reply = master.request_task(w->id, w->incarnation, at(clock));
        after(uniform(0.001, 0.02), [this, w, reply] { begin(w, reply); });
      });
    });
  }

  void begin(worker* w, task_reply const& reply) {
    if (!w->alive) return;
    w->task = reply;
    w->tries = 4;
    switch (reply.kind) {
      case task_kind::wait:
        return request(w, 1);
      case task_kind::finished:
        return;
      case task_kind::prediction:
      case task_kind::check:
        failure = "a task that nobody has asked for";
        return;
      case task_kind::evaluation:
        return evaluate(w);
      case task_kind::training:
        break;
    }
    w->at = reply.applied;
    if (reply.resumed) {
      std::uint32_t least = set.minibatches;
      for (auto const& s : servers) {
        if (!s.alive || s.generation != reply.generation)
          return request(w, 0.5);  // as an abandoned task would
        least = std::min(
            least, s.now.applied.closed(reply.key) ? set.minibatches : s.now.applied.position(reply.key));
      }
      if (least < reply.applied) failure = "the master knew of minibatches that are not applied";
      w->at = least;
    }
    step(w);
  }

  void step(worker* w) {
    std::uint32_t const count = std::min(minibatches_of(w->task), w->task.until);
    if (w->at >= count) return report(w, {.applied = count});
    if (chance(set.error)) return report(w, {.error = "no such image", .applied = w->at});
    if (chance(set.give_back)) return report(w, {.returned = true, .applied = w->at});
    if (chance(set.partition)) w->partitioned = clock + uniform(1, 20);
    after(uniform(0.5, 1.5), [this, w] { push(w); });
  }

  void push(worker* w) {
    if (!w->alive) return;
    minibatch_key const key{w->task.key, w->at, minibatches_of(w->task)};
    bool const hang = chance(set.hang), kill = chance(set.kill);
    std::size_t const reach = hang || kill ? random() % (servers.size() + 1) : servers.size();
    std::size_t const first = random() % servers.size();
    for (std::size_t i = 0; i < reach; ++i) {
      std::uint32_t const id = std::uint32_t((first + i) % servers.size());
      server& s = servers[id];
      if (!s.alive) return after(0.5, [this, w] { push(w); });
      if (s.generation != w->task.generation) {
        ++stale;
        return request(w, 0.1);
      }
      apply(id, key);
    }
    if (reach < servers.size() && reach > 0) ++half_pushed;
    if (hang) {
      w->alive = false;  // nobody is told
      return;
    }
    if (kill) return die(w, chance(0.8) ? exit_kind::preempted : exit_kind::failed, 0.9);
    w->records += 2;
    ++w->at;
    step(w);
  }

  void apply(std::uint32_t id, minibatch_key const& key) {
    server& s = servers[id];
    switch (s.now.applied.check(key)) {
      case ledger::sequence_check::repeat:
        return;
      case ledger::sequence_check::gap:
        ++gaps;
        return;
      case ledger::sequence_check::next:
        break;
    }
    s.now.applied.apply(key);
    s.now.sum += effect(key);
    ++s.now.count;
    std::uint64_t const v = ++s.now.version;
    bool const evaluate = set.evaluation_steps && v % set.evaluation_steps == 0;
    bool const write = set.checkpoint_steps && v % set.checkpoint_steps == 0;
    if (evaluate) s.to_evaluate.insert(v);
    if (write) s.to_write[v] = s.now;
    if (id == 0 && (evaluate || write)) {
      version_report const r{s.generation, v, evaluate, write};
      for (int copies = chance(set.duplicate) ? 2 : 1; copies > 0; --copies)
        after(uniform(0.01, 0.5), [this, r] { master.version_reached(r, at(clock)); });
    }
  }

  void evaluate(worker* w) {
    if (!w->alive) return;
    for (auto const& s : servers) {
      if (s.alive && s.generation != w->task.generation) return request(w, 0.1);
      if (s.alive && (!w->task.frozen || s.to_evaluate.contains(w->task.version))) continue;
      if (--w->tries > 0) return after(0.5, [this, w] { evaluate(w); });
      ++returned;
      return report(w, {.returned = true});
    }
    if (chance(set.kill * 4)) return die(w, exit_kind::preempted, 0.9);
    if (chance(set.partition * 4)) w->partitioned = clock + uniform(1, 20);
    task_report r;
    r.metrics = metrics(w->task.range.begin, w->task.range.end, w->task.version);
    after(uniform(0.2, 1), [this, w, r] {
      if (w->alive) report(w, r);
    });
  }

 public:
  static std::vector<double> metrics(std::uint64_t begin, std::uint64_t end, std::uint64_t version) {
    std::vector<double> sums{0, 0};
    for (; begin < end; ++begin) {
      sums[0] += 1;
      sums[1] += double(edl::mix(begin, version) % 1000);
    }
    return sums;
  }

 private:
  void report(worker* w, task_report r) {
    r.worker = w->id;
    r.incarnation = w->incarnation;
    r.lease = w->task.lease;
    // Messages overtake one another: the next request may arrive before the report, and a report twice.
    for (int copies = chance(set.duplicate) ? 2 : 1; copies > 0; --copies)
      after(to_master(w), [this, r] {
        if (!master.report_task(r, at(clock))) ++refused;
      });
    request(w, 0.01);
  }

  // ---- What the master asks for ----

  void act() {
    for (auto& c : master.take_commands()) std::visit([this](auto& it) { execute(it); }, c);
  }

  void execute(find_restore_point const& c) {
    ++rollbacks;
    after(1, [this, c] {
      std::optional<restore_point> point;
      if (!checkpoints.empty()) {
        auto const& [version, states] = checkpoints.back();
        point.emplace(restore_point{std::to_string(checkpoints.size() - 1), version, states[0].applied});
        for (auto const& s : states) point->applied.intersect(s.applied);
      }
      master.restore_point_found(c.generation, point, at(clock));
    });
  }

  void execute(start_process const&) {}  // nobody scales here
  void execute(stop_process const&) {}
  void execute(avoid_place const&) {}
  void execute(evade_place const&) {}
  void execute(configure_servers const& c) {
    for (std::uint32_t i = 0; i < servers.size(); ++i)
      after(uniform(0.1, 1), [this, c, i, incarnation = servers[i].incarnation] {
        server& s = servers[i];
        if (!s.alive || s.incarnation != incarnation || s.generation >= c.generation) return;
        s.generation = c.generation;
        s.now = c.restore.empty() ? state{} : checkpoints.at(std::stoul(c.restore)).second[i];
        s.to_write.clear();
        s.to_evaluate.clear();
        master.server_configured(i, incarnation, c.generation, {}, at(clock));
      });
  }

  void execute(ask_version const& c) {
    after(0.1, [this, c] {
      if (servers[0].alive && servers[0].generation == c.generation)
        master.version_announced(c.generation, servers[0].now.version, at(clock));
    });
  }

  void execute(write_checkpoint const& c) {
    after(0.5, [this, c] {
      std::vector<state> states;
      for (auto const& s : servers) {
        if (!s.alive || s.generation != c.generation) return;
        if (!c.final && !s.to_write.contains(c.version)) return execute(c);  // not there yet
        states.push_back(c.final ? s.now : s.to_write.at(c.version));
      }
      checkpoints.emplace_back(c.version, std::move(states));
      master.checkpoint_written(c.generation, c.version, {}, at(clock));
    });
  }

  void execute(release_frozen const& c) {
    for (auto& s : servers) c.evaluation ? s.to_evaluate.erase(c.version) : s.to_write.erase(c.version);
  }

  void execute(replace_process const& c) {
    if (c.role == role::server) {
      servers[c.id].alive = false;
      servers[c.id].incarnation = 0;
      after(uniform(1, 4), [this, c] {
        if (!servers[c.with].alive) start_server(c.with);
      });
    } else {
      if (auto const it = newest.find(c.id); it != newest.end()) it->second->alive = false;
      after(uniform(1, 4), [this, c] { start_worker(c.with); });
    }
  }

  void execute(evaluation_done const& c) { results.push_back(c.result); }
  void execute(fail_job const& c) { failure = c.reason; }
  void execute(write_model const&) {}
  void execute(finish_job const&) {}
  void execute(suspend_job const&) {}
  void execute(log_line const&) {}
};

}  // namespace simulated_servers

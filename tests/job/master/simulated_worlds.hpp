// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "edl/core/random.hpp"
#include "edl/job/collective/topology.hpp"
#include "job/master/simulated_copies.hpp"

namespace simulated_worlds {

/// Everything around the master: steps that some complete and others do not, processes that die, hang and
/// come.
class simulated : public simulated_copies {
 public:
  simulated(setting const& s, std::uint64_t seed) : simulated_copies(s, seed) {
    for (std::uint32_t i = 0; i < s.workers; ++i) start(i);
    every(0.25, [this] { master.tick(at(clock)); });
    every(0.5, [this] { mischief(); });
    act();
  }

  /// False: the bound on events was reached.
  bool run(std::uint64_t bound) {
    while (!master.over() && next(bound)) act();
    return master.over();
  }

 private:
  time_point now() const { return at(clock); }

  /// What a worker does later, unless it has died or begun something else by then; a hang delays it.
  template <class F>
  void later(worker* w, double delay, F what) {
    after(delay, [this, w, life = w->life, what] {
      if (!w->alive || w->life != life) return;
      if (w->hangs > clock) return later(w, w->hangs - clock + 0.001, what);
      what();
    });
  }
  void turn(worker* w, doing to) {
    w->now = to;
    ++w->life;
  }

  // ---- Processes ----

  void start(std::uint32_t id) {
    workers.push_back(std::make_unique<worker>());
    worker* const w = workers.back().get();
    w->id = id;
    w->incarnation = random();
    if (newest.contains(id)) newest[id]->alive = false;
    newest[id] = w;
    after(uniform(0, 1.5), [this, w] {
      if (!w->alive) return;
      join_request r{role::worker, w->id, w->incarnation, {}, 7};
      r.follows = chance(0.7);
      if (!master.join(r, at(clock)).accepted) {
        w->alive = false;
        return;
      }
      w->joined = true;
      beat(w);
      enter(w);
    });
  }

  void beat(worker* w) {
    if (!w->alive) return;
    if (w->hangs > clock) return after(w->hangs - clock, [this, w] { beat(w); });
    auto const passes = std::uint64_t(clock * 10);
    vitals const v{.pass = w->id == set.slow ? 2.0f : 1.0f, .trained = {0, passes, passes}};
    if (!master.heartbeat(role::worker, w->id, w->incarnation, v, at(clock)).known) return die(w);
    after(1, [this, w] { beat(w); });
  }

  void die(worker* w) {
    if (!w->alive) return;
    w->alive = false;
    ++kills;
    // The end of its connection, the platform's word, and silence: each may be how the master finds out.
    if (chance(0.7))
      after(uniform(0.1, 0.4), [this, w] { master.hung_up(role::worker, w->id, w->incarnation, at(clock)); });
    if (!w->joined || chance(0.8))
      after(uniform(0.05, 1), [this, w] {
        if (newest[w->id] == w) master.exited(role::worker, w->id, exit_kind::preempted, "killed", at(clock));
      });
    // Others see their links to it end.
    for (worker* const other : in_world(w->number))
      if (other->now != doing::entering && other->now != doing::nothing)
        later(other, uniform(0.005, 0.3), [this, other, w, number = w->number] {
          bool const waits =
              other->now == doing::ready || other->now == doing::idle || other->now == doing::asking;
          if (other->number == number && waits) enter(other, w->id);
        });
  }

  void mischief() {
    if (chance(set.kill_all / 2))
      for (auto const& w : workers) die(w.get());
    for (std::size_t i = 0; i < workers.size(); ++i)
      if (workers[i]->alive && chance(set.kill / 2)) die(workers[i].get());
    if (chance(set.join / 2)) start(std::uint32_t(1000 + joins++));
  }

  std::vector<worker*> in_world(std::uint64_t number) {
    std::vector<worker*> all;
    for (auto const& w : workers)
      if (w->alive && w->number == number) all.push_back(w.get());
    return all;
  }

  // ---- Worlds ----

  void enter(worker* w, std::optional<std::uint32_t> suspect = {}) {
    w->task.reset();
    w->hands.clear();
    turn(w, doing::entering);
    entry e{.incarnation = w->incarnation,
            .last = w->number,
            .copy = {},
            .suspect = suspect,
            .brings = std::exchange(w->brings, {})};
    if (w->copy) e.copy = copy_position{w->copy->version, w->copy->applied, w->copied};
    later(w, uniform(0.001, 0.1), [this, w, e] { ask(w, e); });
  }

  void ask(worker* w, entry const& e) {
    for (int times = chance(0.1) ? 2 : 1; times > 0; --times) master.enter(w->id, e, at(clock));
    if (!master.workers().known(w->id, w->incarnation)) return die(w);
    later(w, uniform(0.01, 0.2), [this, w, e] {
      world const* const now = master.generations().world_of(w->id, w->incarnation);
      if (!now) return ask(w, e);
      bool const member =
          std::ranges::any_of(now->members, [&](auto const& m) { return m.incarnation == w->incarnation; });
      member ? take_place(w, *now) : follow(w, *now);
    });
  }

  /// It takes a copy while that world goes on.
  void follow(worker* w, world const& now) {
    turn(w, doing::copying);
    world::member const from = now.members[random() % now.members.size()];
    later(w, uniform(0.05, 1), [this, w, from, number = now.number] {
      w->reached = number;
      worker* const source = member(from);
      bool const there = source && source->alive && source->hangs <= clock && source->copy &&
                         source->now != doing::copying && source->now != doing::entering;
      if (!there) return arrive(w);
      w->history = source->history;
      keep_up(w, source);
    });
  }

  void arrive(worker* w) {
    w->number = w->reached;
    enter(w);
  }

  /// It makes the steps of the one that it follows, and is brought into the next world, or comes by itself.
  void keep_up(worker* w, worker* source) {
    bool const there = source->alive && source->hangs <= clock && source->history == w->history &&
                       source->now != doing::copying;
    if (!there) return arrive(w);
    w->copy = source->copy;
    w->copied = source->copied;
    w->reached = std::max(w->reached, source->copied);
    w->to_evaluate.clear(), w->to_write.clear();
    if (set.evaluation_steps && w->copy->version > 0 && w->copy->version % set.evaluation_steps == 0)
      w->to_evaluate.insert(w->copy->version);
    if (set.checkpoint_steps && w->copy->version > 0 && w->copy->version % set.checkpoint_steps == 0)
      w->to_write[w->copy->version] = *w->copy;
    bool const trains = source->now == doing::ready || source->now == doing::idle;
    if (trains && chance(0.2)) {
      ++followed;
      source->brings.push_back(w->id);
      enter(source);
      return arrive(w);
    }
    if (chance(0.05)) return arrive(w);
    later(w, uniform(0.01, 0.2), [this, w, source] { keep_up(w, source); });
  }

  void take_place(worker* w, world const& now) {
    w->number = now.number;
    turn(w, doing::copying);
    std::vector<world::member> sources;
    bool current = false;
    for (auto const& m : now.members) {
      if (m.current) sources.push_back(m);
      if (m.id == w->id) current = m.current;
    }
    if (current) {
      w->copied = now.number;
      if (!w->copy || w->copy->version != now.version)
        failure = "a copy that is not the world's was taken for it";
      return begin(w);
    }
    if (sources.empty()) {
      w->history = random();
      w->copy = now.restore.empty() ? fresh() : checkpoints.at(std::stoull(now.restore));
      if (w->copy->version != now.version) failure = "a world that begins with another version than it says";
      w->to_write.clear(), w->to_evaluate.clear();
      return later(w, uniform(0.05, 0.5), [this, w] { begin(w); });
    }
    if (w->copy) ++behind;
    world::member const from = sources[random() % sources.size()];
    later(w, uniform(0.05, 1), [this, w, from, version = now.version] {
      worker* const source = member(from);
      if (!source || !source->alive || source->number > w->number) return enter(w, from.id);
      if (source->now == doing::copying || source->hangs > clock || source->number < w->number) {
        if (master.generation() > w->number) return enter(w, from.id);
        turn(w, doing::copying);  // not there yet
        world const* const again = master.generations().world_of(w->id, w->incarnation);
        return again ? take_place(w, *again) : enter(w);
      }
      ++copies;
      w->history = random();
      w->copy = source->copy;
      w->to_write.clear(), w->to_evaluate.clear();
      if (w->copy->version != version) failure = "a member made a step before all had come";
      begin(w);
    });
  }

  void begin(worker* w) {
    w->copied = w->number;
    turn(w, doing::idle);
    // The first whose copy went on tells what it has frozen.
    auto const& all = master.current_world().members;
    auto const first = std::find_if(all.begin(), all.end(), [](auto const& m) { return m.current; });
    if (master.current_world().number == w->number && first != all.end() && first->id == w->id)
      tell(w, w->to_evaluate.contains(w->copy->version), w->to_write.contains(w->copy->version));
    work(w);
  }

  void tell(worker* w, bool evaluate, bool write) {
    if (!evaluate && !write) return;
    version_report const r{w->number, w->copy->version, evaluate, write};
    int const times = chance(0.1) ? 2 : 1;
    after(uniform(0.01, 0.3), [this, r, times] {
      version_report claimed = r;
      if (r.generation == master.generation())
        for (std::uint32_t const id : master.generations().worlds().holders(r.version))
          if (worker* const h = newest[id]; !h->alive || !h->to_evaluate.contains(r.version))
            claimed.evaluate = false;
      for (int i = 0; i < times; ++i) master.version_reached(claimed, at(clock));
    });
  }

  void hear(std::uint64_t generation) {
    for (auto const& one : workers)
      if (worker* const w = one.get(); w->alive)
        after(uniform(0.001, 0.2), [this, w, generation] {
          if (!w->alive) return;
          bool const in_older = w->number > 0 && w->number < generation && w->now != doing::entering;
          if (in_older && w->now != doing::nothing && w->hangs <= clock) enter(w);
        });
  }

  // ---- Work ----

  /// Lanes whose tasks this worker works off; without lanes, one row of tasks.
  edl::collective::share own(worker const* w) const {
    if (set.lanes == 0) return {0, 1};
    auto const& all = master.current_world().members;
    auto const rank = std::find_if(all.begin(), all.end(), [&](auto const& m) { return m.id == w->id; });
    return edl::collective::share_of(set.lanes, int(all.size()), int(rank - all.begin()));
  }

  void work(worker* w) {
    // Without lanes, a step may well be made without who is about to ask.
    turn(w, set.lanes ? doing::asking : doing::idle);
    // Whoever hung while the world ended has to be told, too.
    if (master.generation() > w->number) return later(w, 0.05, [this, w] { enter(w); });
    later(w, uniform(0.001, 0.05), [this, w] {
      if (set.lanes && master.generation() > w->number) return enter(w);
      auto const [first, count] = own(w);
      for (std::uint32_t i = 0; i < count; ++i) {
        auto const lane = std::uint32_t(first) + i;
        auto const at =
            std::find_if(w->hands.begin(), w->hands.end(), [&](hand const& h) { return h.lane >= lane; });
        if (at != w->hands.end() && at->lane == lane) continue;
        auto const reply = master.request_task(w->id, w->incarnation, now(), lane);
        if (reply.kind == task_kind::finished) return;
        if (reply.kind == task_kind::wait || reply.generation != w->number) {
          if (set.lanes && reply.generation != w->number) return enter(w);
          continue;
        }
        if (reply.kind == task_kind::evaluation) {
          w->task = reply;
          return evaluate(w);
        }
        std::uint32_t const position =
            w->copy->applied.closed(reply.key) ? minibatches_of(reply) : w->copy->applied.position(reply.key);
        if (position < reply.applied) failure = "the master knew of minibatches that are not applied";
        if (position > reply.applied && !reply.resumed) failure = "a task that was begun came as a new one";
        w->hands.insert(at, {reply, lane, position});
      }
      if (!w->hands.empty()) return compute(w);
      turn(w, doing::idle);
      std::uint64_t const life = w->life;
      try_step(w->number);
      if (w->life == life) later(w, 0.1, [this, w] { work(w); });
    });
  }

  void compute(worker* w) {
    std::vector<task_report> reports;
    for (hand const& h : w->hands)
      if (h.over())
        reports.push_back({.worker = w->id, .incarnation = w->incarnation, .lease = h.task.lease});
    if (!reports.empty()) {
      std::erase_if(w->hands, [](hand const& h) { return h.over(); });
      turn(w, set.lanes ? doing::asking : doing::idle);
      return later(w, uniform(0.001, 0.05), [this, w, reports] {
        for (auto const& r : reports)
          for (int times = chance(0.05) ? 2 : 1; times > 0; --times) master.report_task(r, now());
        work(w);
      });
    }
    turn(w, doing::computing);
    later(w, uniform(0.02, 0.2), [this, w] {
      turn(w, doing::ready);
      try_step(w->number);
    });
  }

  /// A step, once every member has a minibatch or nothing to do. If somebody dies or hangs in its middle,
  /// each of the others completes it or does not.
  void try_step(std::uint64_t number) {
    world const& now = master.current_world();
    if (now.number != number || master.generation() != number) return;
    std::vector<worker*> all;
    std::vector<minibatch_key> keys;
    for (auto const& m : now.members) {
      worker* const w = member(m);
      bool const here = w && w->alive && w->number == number && w->hangs <= clock &&
                        (w->now == doing::idle || (w->now == doing::ready && !w->hands.empty()));
      if (!here) return;
      all.push_back(w);
      if (w->now == doing::ready)
        for (hand const& h : w->hands) keys.push_back({h.task.key, h.done, minibatches_of(h.task)});
    }
    if (keys.empty()) return;
    bool const kill = chance(set.kill_in_step), hang = !kill && chance(set.hang_in_step);
    worker* const victim = kill || hang ? all[random() % all.size()] : nullptr;
    double const completes = std::vector{0.0, 0.5, 1.0}[random() % 3];
    std::size_t done = 0;
    std::vector<worker*> undone;
    for (worker* const w : all) {
      if (victim && !chance(completes)) {
        undone.push_back(w);
        continue;
      }
      ++done;
      apply(w, keys, w->id == now.members[0].id);
    }
    if (!victim) return;
    if (done > 0 && done < all.size()) ++torn;
    for (worker* const w : undone)
      if (w != victim && kill) later(w, uniform(0.001, 0.1), [this, w, id = victim->id] { enter(w, id); });
    if (hang) {
      ++hangs;
      victim->hangs = clock + uniform(1, 12);
      for (worker* const w : undone)
        w->now = doing::ready, w->hands.clear(), ++w->life;  // in the middle, for ever
      after(victim->hangs - clock + 0.01, [this, undone, number] {
        // It goes on, but bytes are lost: the step has no end.
        for (worker* const w : undone)
          if (w->alive && w->number == number && w->now == doing::ready && w->hands.empty()) enter(w);
      });
      return;
    }
    die(victim);
  }

  void apply(worker* w, std::vector<minibatch_key> const& keys, bool first) {
    copy_state& c = *w->copy;
    for (minibatch_key const& k : keys) {
      if (c.applied.check(k) == ledger::sequence_check::gap) ++gaps;
      if (c.applied.check(k) != ledger::sequence_check::next) continue;
      c.applied.apply(edl::contribution{k});
      ++c.times[place(k)];
      c.value = edl::mix(c.value, place(k));
    }
    c.value = edl::mix(c.value, ~c.version);
    ++c.version;
    bool const evaluate = set.evaluation_steps && c.version % set.evaluation_steps == 0;
    bool const write = set.checkpoint_steps && c.version % set.checkpoint_steps == 0;
    if (evaluate) w->to_evaluate.insert(c.version);
    if (write) w->to_write[c.version] = c;
    if (first) tell(w, evaluate, write);
    if (w->now == doing::idle) return;
    for (hand& h : w->hands) ++h.done;
    compute(w);
  }

  void evaluate(worker* w) {
    turn(w, doing::evaluating);
    std::uint64_t const version = w->task->version;
    bool here = w->copy->version == version || w->to_evaluate.contains(version);
    std::optional<std::uint32_t> silent;
    for (auto const& m : master.current_world().members) {
      worker* const other = member(m);
      if (!other || !other->alive || other->hangs > clock)
        silent = m.id;
      else
        here = here || other->to_evaluate.contains(version);
    }
    if (!here && silent) return enter(w, *silent);  // its world is broken
    later(w, uniform(0.1, 0.6), [this, w, here, version] {
      task_report r{.worker = w->id, .incarnation = w->incarnation, .lease = w->task->lease};
      if (here)
        r.metrics = {double(w->task->range.records()), double(version)};
      else
        r.returned = true, ++lost_evaluations;
      w->task.reset();
      master.report_task(r, at(clock));
      work(w);
    });
  }

  // ---- What the master asks for ----

  void act() {
    for (auto commands = master.take_commands(); !commands.empty(); commands = master.take_commands())
      for (auto& c : commands) std::visit([this](auto& it) { execute(it); }, c);
    if (master.generation() != heard) hear(heard = master.generation());
  }

  void execute(find_restore_point const& c) {
    auto const answer = [this, c] {
      ++restores;
      std::optional<restore_point> point;
      if (!checkpoints.empty())
        point = restore_point{std::to_string(checkpoints.rbegin()->first), checkpoints.rbegin()->first,
                              checkpoints.rbegin()->second.applied};
      master.restore_point_found(c.generation, point, at(clock));
    };
    chance(0.5) ? answer() : after(uniform(0.01, 2), answer);
  }

  void execute(ask_version const& c) {
    after(0.05, [this, c] {
      std::uint64_t version = 0;
      if (master.generation() != c.generation || master.over()) return;
      for (auto const& m : master.current_world().members) {
        worker* const w = member(m);
        // It has yet to hear of its world; or its loss begins another one.
        if (!w || !w->alive || w->number != c.generation || w->now == doing::copying) return execute(c);
        if (w->copy) version = std::max(version, w->copy->version);
      }
      master.version_announced(c.generation, version, at(clock));
    });
  }

  void execute(write_checkpoint const& c) {
    auto const all = master.current_world().members;
    auto first = std::find_if(all.begin(), all.end(), [](auto const& m) { return m.current; });
    if (first == all.end()) first = all.begin();
    after(uniform(0.05, 1), [this, c, m = *first] { write(c, m, 200); });
  }

  void write(write_checkpoint const& c, world::member const& m, int tries) {
    worker* const w = member(m);
    std::string why;
    if (!w || !w->alive || !w->copy)
      why = "it cannot be reached";
    else if (w->number != c.generation)
      why = "it is in another world";
    else if (w->copy->version < c.version) {
      if (tries > 0) return after(0.1, [this, c, m, tries] { write(c, m, tries - 1); });
      why = "not there yet";
    } else if (c.final) {
      checkpoints[w->copy->version] = *w->copy;
    } else if (auto const it = w->to_write.find(c.version); it != w->to_write.end()) {
      checkpoints[c.version] = it->second;
    } else {
      why = "not frozen";
      missing_checkpoints += c.generation == master.generation();
    }
    if (!why.empty() && c.final) return;  // a call that fails with its callee; the loss ends the world
    master.checkpoint_written(c.generation, c.version, why, at(clock));
  }

  void execute(release_frozen const& c) {
    for (worker* const w : survivors())
      c.evaluation ? w->to_evaluate.erase(c.version) : w->to_write.erase(c.version);
  }
  void execute(replace_process const& c) {
    if (auto const it = newest.find(c.id); it != newest.end()) it->second->alive = false;
    after(uniform(0.2, 2), [this, c] { start(c.with); });
  }
  void execute(start_process const& c) {
    after(uniform(0.2, 2), [this, c] { start(c.id); });
  }
  void execute(stop_process const& c) {
    after(uniform(0.1, 1), [this, w = newest.at(c.id)] {
      if (!w->alive) return;
      for (hand const& h : w->hands)
        master.report_task({.worker = w->id,
                            .incarnation = w->incarnation,
                            .lease = h.task.lease,
                            .returned = true,
                            .applied = h.done},
                           now());
      master.left(role::worker, w->id, w->incarnation, now());
      w->alive = false;
    });
  }
  void execute(avoid_place const&) { ++avoided; }
  void execute(evade_place const&) {}
  void execute(configure_servers const&) { failure = "there are no servers"; }
  void execute(evaluation_done const& c) { results.push_back(c.result); }
  void execute(fail_job const& c) { failure = c.reason; }
  void execute(write_model const&) {}
  void execute(finish_job const&) {}
  void execute(suspend_job const&) {}
  void execute(log_line const&) {}

  std::uint64_t heard = 0;
};

}  // namespace simulated_worlds

// SPDX-License-Identifier: Apache-2.0
// The coordinator of a job whose workers have a copy of the model each: numbered worlds.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "edl/master/coordinator.hpp"

using namespace edl::master;
using edl::ledger;
using edl::task_kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Twenty records in tasks of four, in minibatches of two.
job_options replicated(job_type type = job_type::training_only) {
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

ledger with_closed(std::uint32_t tasks) {
  ledger l;
  if (tasks > 0) l.set_closed(0, 0, tasks);
  return l;
}

copy_position copy(std::uint64_t version, ledger applied = {}) { return {version, std::move(applied)}; }

// A coordinator, and what it has asked for since the last look. Workers' incarnation is 1 unless it is said.
struct master {
  explicit master(job_options o = replicated()) : it(std::move(o), now) { look(); }

  time_point now{};
  coordinator it;
  std::vector<command> seen;

  void look() {
    for (auto& c : it.take_commands()) seen.push_back(std::move(c));
  }

  template <class C>
  std::optional<C> take() {
    look();
    for (auto i = seen.begin(); i != seen.end(); ++i)
      if (auto* c = std::get_if<C>(&*i)) {
        C const found = *c;
        seen.erase(i);
        return found;
      }
    return std::nullopt;
  }

  bool said(std::string const& part) {
    look();
    for (auto const& c : seen)
      if (auto* line = std::get_if<log_line>(&c); line && line->text.find(part) != std::string::npos)
        return true;
    return false;
  }

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

  void enter(std::uint32_t id, std::uint64_t last = 0, std::optional<copy_position> c = {},
             std::optional<std::uint32_t> suspect = {}, std::uint64_t incarnation = 1) {
    it.enter(id, {.incarnation = incarnation, .last = last, .copy = std::move(c), .suspect = suspect}, now);
  }

  world const* of(std::uint32_t id, std::uint64_t incarnation = 1) const {
    return it.world_of(id, incarnation);
  }

  // "0 1*" : members of the world that is, and whose copies are current.
  std::string members() const {
    std::string out;
    for (auto const& m : it.current_world().members)
      out += (out.empty() ? "" : " ") + std::to_string(m.id) + (m.current ? "*" : "");
    return out;
  }

  // Time passes a quarter of a second at a time, in which everybody but `silent` is heard.
  void pass(duration d, std::vector<std::uint32_t> const& silent = {}) {
    for (auto const until = now + d; now < until;) {
      now += milliseconds(250);
      for (auto const& [id, m] : std::map(it.workers().all()))
        if (std::find(silent.begin(), silent.end(), id) == silent.end())
          it.heartbeat(role::worker, id, m.incarnation, {}, now);
      it.tick(now);
    }
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

  task_reply ask(std::uint32_t worker = 0) { return it.request_task(worker, 1, now); }

  bool done(task_reply const& t, std::uint32_t worker = 0, std::vector<double> sums = {}) {
    task_report const r{.worker = worker, .incarnation = 1, .lease = t.lease, .metrics = std::move(sums)};
    return it.report_task(r, now);
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

job_options evaluated(std::uint64_t steps = 1) {
  auto o = replicated(job_type::training_with_evaluation);
  o.evaluation_steps = steps;
  return o;
}

job_options checkpointed() {
  auto o = replicated();
  o.checkpoint = o.final_checkpoint = true;
  return o;
}

}  // namespace

// ---- The first world ----

TEST_CASE("the first world begins at once when all workers have entered") {
  master m;
  CHECK(m.join(0));
  m.enter(0);
  CHECK_FALSE(m.it.ready());
  CHECK(m.of(0) == nullptr);
  CHECK(m.ask().kind == task_kind::wait);
  CHECK(m.join(1));
  CHECK_FALSE(m.it.ready());
  m.enter(1);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0 1");
  REQUIRE(m.of(0));
  CHECK(m.of(0)->number == m.it.generation());
  CHECK(m.of(0)->version == 0);
  CHECK(m.of(0)->restore == "");
  CHECK(m.of(0)->members[1].addresses == std::vector<std::string>{"tcp:h:2"});
  CHECK(m.of(1) == m.of(0));
  CHECK(m.of(1, 9) == nullptr);
  CHECK(m.of(7) == nullptr);
  CHECK_FALSE(m.take<find_restore_point>());
  CHECK_FALSE(m.take<configure_servers>());
  auto const t = m.ask();
  CHECK(t.kind == task_kind::training);
  CHECK(t.generation == m.it.generation());
}

TEST_CASE("the first world waits a while for workers that have not come, and no longer") {
  auto o = replicated();
  o.gathering = seconds(3);
  master m(o);
  CHECK(m.join(0));
  m.enter(0);
  m.pass(milliseconds(2750));
  CHECK_FALSE(m.it.ready());
  m.pass(milliseconds(500));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0");
  // Who comes then ends it.
  CHECK(m.join(1));
  CHECK_FALSE(m.it.ready());
  m.enter(0, 1, copy(0));
  m.enter(1);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 1");
}

TEST_CASE("a job whose one worker comes does not wait") {
  auto o = replicated();
  o.num_workers = 1;
  master m(o);
  CHECK(m.join(0));
  m.enter(0);
  CHECK(m.it.ready());
}

TEST_CASE("a worker that joins and never enters does not keep the first world from beginning") {
  auto o = replicated();
  o.absence = seconds(20);
  master m(o);
  CHECK(m.join(0));
  CHECK(m.join(1));
  m.enter(0);
  m.pass(seconds(15));
  CHECK_FALSE(m.it.ready());  // it is alive, and has its time
  m.pass(seconds(10));
  CHECK(m.it.workers().find(1) == nullptr);
  REQUIRE(m.it.workers().find(0));
  CHECK(m.it.ready());
  CHECK(m.members() == "0");
}

TEST_CASE("the first world of a job that goes on begins from where it was") {
  auto o = replicated();
  o.start = {"/c/version-6", 6, with_closed(3)};
  master m(o);
  m.start();
  CHECK(m.of(0)->restore == "/c/version-6");
  CHECK(m.of(0)->version == 6);
  CHECK(m.members() == "0 1");  // nobody has it yet
  CHECK(m.ask().key.index == 3);
}

// ---- Losses ----

TEST_CASE("a loss voids all leases, and the next world goes on from the newest copy's ledger") {
  master m;
  m.start();
  auto const t0 = m.ask(0), t1 = m.ask(1), t2 = m.ask(0);
  CHECK(t0.key.index == 0);
  CHECK(t1.key.index == 1);
  CHECK(m.done(t0, 0));
  std::uint64_t const first = m.it.generation();
  m.lose(1);
  CHECK(m.it.generation() == first + 1);
  CHECK_FALSE(m.it.ready());
  CHECK(m.of(0) == nullptr);
  CHECK(m.ask(0).kind == task_kind::wait);
  CHECK_FALSE(m.done(t2, 0));  // void, though it is the survivor's own
  ledger l = with_closed(1);
  l.set_open({0, 1}, 1);
  m.enter(0, first, copy(3, l));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0*");
  CHECK(m.of(0)->version == 3);
  CHECK(m.of(0)->number == first + 1);
  CHECK_FALSE(m.take<find_restore_point>());
  CHECK_FALSE(m.said("Going back"));  // nothing that was done is undone
  // What is left, from where it stands.
  auto const a = m.ask(0);
  CHECK(a.key.index == 1);
  CHECK(a.applied == 1);
  CHECK(a.resumed);
  CHECK(a.generation == first + 1);
  CHECK_FALSE(m.done(t2, 0));
  CHECK(m.done(a));
  CHECK(m.work() == 3);
  CHECK(m.it.finished());
  CHECK(m.it.tasks()->done().records_done == 20);
}

TEST_CASE("what a lost worker had completed, and nobody else has, is leased again") {
  master m;
  m.start();
  auto const t0 = m.ask(0), t1 = m.ask(1);
  CHECK(m.done(t0, 0));
  CHECK(m.done(t1, 1));
  CHECK(m.it.progress().done.records_done == 8);
  m.lose(1);
  // The survivor has not completed the step that closed task 1.
  ledger l = with_closed(1);
  l.set_open({0, 1}, 1);
  m.enter(0, 1, copy(3, l));
  REQUIRE(m.it.ready());
  CHECK(m.it.progress().done.records_done == 4);
  CHECK(m.said("Going back to version 3, 4 records done"));
  auto const t = m.ask();
  CHECK(t.key.index == 1);
  CHECK(t.applied == 1);
}

TEST_CASE("a step that one survivor has completed counts for all") {
  master m;
  m.start(3);
  m.lose(2);
  m.enter(0, 1, copy(4, with_closed(1)));
  CHECK_FALSE(m.it.ready());
  m.enter(1, 1, copy(5, with_closed(2)));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0 1*");  // worker 0 is behind
  CHECK(m.of(0)->version == 5);
  CHECK(m.it.progress().version == 5);
  CHECK(m.ask().key.index == 2);
}

TEST_CASE("copies that are as new are all current") {
  master m;
  m.start(3);
  CHECK(m.join(3));
  for (std::uint32_t i : {2u, 0u, 1u}) m.enter(i, 1, copy(7, with_closed(1)));
  m.enter(3);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 1* 2* 3");
}

TEST_CASE("worlds have greater and greater numbers, however they end") {
  master m;
  m.start();
  std::uint64_t last = m.it.generation();
  for (std::uint32_t i = 2; i < 6; ++i) {
    CHECK(m.join(i));
    CHECK(m.it.generation() > last);
    last = m.it.generation();
    for (auto const& [id, _] : std::map(m.it.workers().all())) m.enter(id, last - 1, copy(0));
    REQUIRE(m.it.ready());
    CHECK(m.of(0)->number == last);
  }
}

TEST_CASE("when all workers are lost the newest checkpoint is where it goes on") {
  auto o = checkpointed();
  master m(o);
  m.start();
  CHECK(m.done(m.ask(0), 0));
  m.lose(0);
  m.lose(1);
  CHECK_FALSE(m.it.ready());
  CHECK_FALSE(m.take<find_restore_point>());  // there is nobody to take it
  CHECK(m.join(2));
  CHECK_FALSE(m.take<find_restore_point>());
  m.enter(2);
  auto const f = m.take<find_restore_point>();
  REQUIRE(f);
  CHECK(f->generation == m.it.generation());
  CHECK_FALSE(m.it.ready());
  m.it.restore_point_found(f->generation - 1, restore_point{"old", 1, {}}, m.now);
  CHECK_FALSE(m.it.ready());
  m.it.restore_point_found(f->generation, restore_point{"/c/version-4", 4, with_closed(2)}, m.now);
  REQUIRE(m.it.ready());
  CHECK(m.of(2)->restore == "/c/version-4");
  CHECK(m.of(2)->version == 4);
  CHECK(m.members() == "2");
  CHECK(m.ask(2).key.index == 2);
  m.it.restore_point_found(f->generation, restore_point{"again", 9, {}}, m.now);  // told twice
  CHECK(m.of(2)->restore == "/c/version-4");
}

TEST_CASE("when all workers are lost and there is no checkpoint, it starts again") {
  master m;
  m.start();
  CHECK(m.work() == 4 + 1);
  REQUIRE(m.it.finished());
  master n;
  n.start();
  CHECK(n.done(n.ask(0), 0));
  n.lose(0);
  n.lose(1);
  CHECK(n.join(2));
  n.enter(2);
  auto const f = n.take<find_restore_point>();
  REQUIRE(f);
  n.it.restore_point_found(f->generation, std::nullopt, n.now);
  REQUIRE(n.it.ready());
  CHECK(n.of(2)->restore == "");
  CHECK(n.of(2)->version == 0);
  CHECK(n.said("Going back to version 0, 0 records done"));
  CHECK(n.work(2) == 5);
}

TEST_CASE("survivors without a copy are as good as none") {
  // A newcomer that was still copying when the only one with a copy was lost.
  master m;
  m.start(1 + 1);
  m.lose(0);
  m.enter(1, 1);  // has not got its copy
  auto const f = m.take<find_restore_point>();
  REQUIRE(f);
  m.it.restore_point_found(f->generation, std::nullopt, m.now);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "1");
}

TEST_CASE("a loss or a newcomer while a checkpoint is looked for: it is asked again, and one answer counts") {
  master m;
  m.start();
  m.lose(0);
  m.lose(1);
  CHECK(m.join(2));
  m.enter(2);
  auto const first = m.take<find_restore_point>();
  REQUIRE(first);
  CHECK(m.join(3));
  m.it.restore_point_found(first->generation, restore_point{"a", 2, with_closed(1)}, m.now);
  CHECK_FALSE(m.it.ready());  // worker 3 has not entered
  m.enter(3);
  auto const second = m.take<find_restore_point>();
  REQUIRE(second);
  m.it.restore_point_found(second->generation, restore_point{"b", 4, with_closed(2)}, m.now);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "2 3");
  CHECK(m.of(2)->restore == "b");
}

TEST_CASE("a checkpoint of other data ends the job with its reason") {
  master m;
  m.start();
  m.lose(0);
  m.lose(1);
  CHECK(m.join(2));
  m.enter(2);
  auto const f = m.take<find_restore_point>();
  REQUIRE(f);
  m.it.restore_point_found(f->generation, restore_point{"/c", 4, with_closed(99)}, m.now);
  CHECK(m.it.failed());
  CHECK(m.it.reason().find("cannot go back to '/c'") == 0);
}

// ---- While a world is formed ----

TEST_CASE("who joins while a world is formed is in it") {
  master m;
  m.start(3);
  m.lose(2);
  m.enter(0, 1, copy(2));
  CHECK(m.join(5));
  m.enter(1, 1, copy(2));
  CHECK_FALSE(m.it.ready());  // worker 5 has joined and is awaited
  m.enter(5);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 1* 5");
  CHECK(m.it.generation() == 2);
}

TEST_CASE("who is lost while a world is formed is not in it, whether it had entered or not") {
  for (bool entered : {false, true}) {
    CAPTURE(entered);
    master m;
    m.start(3);
    m.lose(2);
    if (entered) m.enter(1, 1, copy(9, with_closed(4)));
    m.enter(0, 1, copy(2, with_closed(1)));
    m.it.exited(role::worker, 1, exit_kind::preempted, "killed", m.now);
    if (entered) {
      // Both had entered before worker 1 was lost: their world was already formed, and breaks.
      CHECK(m.it.generation() == 3);
      m.enter(0, 2, copy(2, with_closed(1)));
    }
    REQUIRE(m.it.ready());
    CHECK(m.members() == "0*");
    CHECK(m.of(0)->version == 2);
    CHECK(m.ask().key.index == 1);
  }
}

TEST_CASE("the copy of one that was lost after it had entered is not counted on") {
  master m;
  m.start(4);
  m.lose(3);
  m.enter(1, 1, copy(9, with_closed(4)));
  m.enter(0, 1, copy(2, with_closed(1)));
  m.lose(1);  // worker 2 is still awaited
  CHECK_FALSE(m.it.ready());
  m.enter(2, 1, copy(1));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 2");
  CHECK(m.of(0)->version == 2);
}

TEST_CASE("a new process under the id of a member ends its world") {
  master m;
  m.start();
  CHECK(m.join(1, 2));
  CHECK_FALSE(m.it.ready());
  m.enter(1, 1, copy(50), {}, 1);  // the old process: a stranger now
  m.enter(0, 1, copy(3));
  CHECK_FALSE(m.it.ready());
  m.enter(1, 0, {}, {}, 2);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 1");
  CHECK(m.of(0)->version == 3);
  CHECK(m.of(1, 1) == nullptr);
  CHECK(m.of(1, 2) != nullptr);
}

TEST_CASE("who does not come to the next world is given up after a while, and nobody else is") {
  // Whatever its place among the ids: the world that begins meanwhile is not to be taken for absence.
  for (std::uint32_t absent : {0u, 1u, 2u, 3u}) {
    CAPTURE(absent);
    master m;
    m.start(4);
    CHECK(m.join(4));
    for (std::uint32_t i = 0; i < 5; ++i)
      if (i != absent) m.enter(i, i == 4 ? 0 : 1, i == 4 ? std::nullopt : std::optional(copy(2)));
    m.pass(seconds(19));
    CHECK_FALSE(m.it.ready());
    CHECK(m.it.workers().all().size() == 5);
    m.pass(seconds(2));
    CHECK(m.said("worker " + std::to_string(absent) + " is lost: it does not come to the next world"));
    CHECK(m.it.workers().find(absent) == nullptr);
    CHECK(m.it.workers().all().size() == 4);
    CHECK(m.it.ready());
    CHECK(m.it.current_world().members.size() == 4);
    CHECK(m.it.generation() == 2);
  }
}

TEST_CASE("two that do not come are given up, the others go on") {
  master m;
  m.start(4);
  CHECK(m.join(4));
  m.enter(1, 1, copy(2));
  m.enter(3, 1, copy(2));
  m.enter(4);
  m.pass(seconds(21));
  CHECK(m.it.ready());
  CHECK(m.members() == "1* 3* 4");
}

TEST_CASE("nobody is given up while nobody has come") {
  master m;
  m.start();
  CHECK(m.join(2));
  m.pass(seconds(60));
  CHECK(m.it.workers().all().size() == 3);
}

TEST_CASE("who has only just joined has its time, however long the others have been waiting") {
  master m;
  m.start();
  CHECK(m.join(2));
  m.enter(0, 1, copy(1));
  m.enter(2);
  m.pass(seconds(18));  // worker 1 is awaited
  CHECK(m.join(3));
  m.pass(seconds(4));
  CHECK(m.it.workers().find(1) == nullptr);
  CHECK(m.it.workers().find(3) != nullptr);
  m.enter(3);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 2 3");
}

TEST_CASE("who falls silent while a world is formed is lost, and the world begins") {
  master m;
  m.start(3);
  m.lose(2);
  m.enter(0, 1, copy(2));
  m.pass(seconds(7), {1});
  CHECK(m.said("worker 1 is lost: it gave no sign of life"));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0*");
}

// ---- Entering ----

TEST_CASE("strangers do not enter, and end no world") {
  master m;
  m.start();
  m.enter(9, 1, copy(99));
  m.enter(0, 1, copy(99), {}, 77);  // not this process
  CHECK(m.it.ready());
  CHECK(m.it.generation() == 1);
  m.lose(1);
  m.enter(1, 1, copy(99));  // given up
  m.enter(9, 1, copy(99));
  CHECK_FALSE(m.it.ready());
  m.enter(0, 1, copy(2));
  REQUIRE(m.it.ready());
  CHECK(m.of(0)->version == 2);
}

TEST_CASE("without replicas nobody enters") {
  auto o = replicated();
  o.replicas = false;
  master m(o);
  CHECK(m.join(0));
  m.enter(0, 5, copy(3));
  CHECK(m.of(0) == nullptr);
  CHECK(m.it.ready());
  CHECK(m.it.generation() == 1);
}

TEST_CASE("to enter again changes nothing") {
  master m;
  CHECK(m.join(0));
  CHECK(m.join(1));
  for (int i = 0; i < 3; ++i) m.enter(0);
  CHECK_FALSE(m.it.ready());
  m.enter(1);
  REQUIRE(m.it.ready());
  // Asked again, with the world that it was in before: the answer is the world that there is.
  auto const t = m.ask(0);
  for (int i = 0; i < 3; ++i) m.enter(0), m.enter(1);
  CHECK(m.it.generation() == 1);
  CHECK(m.of(0)->number == 1);
  CHECK(m.done(t, 0));
  // Out of the world that there is: the next one is formed, once.
  for (int i = 0; i < 3; ++i) m.enter(0, 1, copy(2));
  CHECK(m.it.generation() == 2);
  CHECK_FALSE(m.it.ready());
  m.enter(1, 1, copy(2));
  CHECK(m.it.ready());
  m.enter(1, 1, copy(2));
  CHECK(m.it.ready());
  CHECK(m.it.generation() == 2);
}

TEST_CASE("a worker that enters anew with another position has the newer one") {
  master m;
  m.start();
  m.enter(0, 1, copy(3, with_closed(1)));
  m.enter(0, 1, copy(4, with_closed(2)));
  m.enter(1, 1, copy(3, with_closed(1)));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 1");
}

TEST_CASE("a broken world is ended by whoever says so first") {
  master m;
  m.start();
  auto const t = m.ask(1);
  m.enter(0, 1, copy(1), 1u);
  CHECK_FALSE(m.it.ready());
  CHECK(m.said("worker 0 has left world 1: it misses worker 1"));
  CHECK_FALSE(m.done(t, 1));
  CHECK(m.it.workers().all().size() == 2);  // nobody is lost for it
  m.enter(1, 1, copy(1), 0u);
  CHECK(m.it.ready());
  CHECK(m.members() == "0* 1*");
}

TEST_CASE("worlds that break over and over, without a step: who is missed is lost") {
  master m;
  m.start(3);
  for (std::uint64_t w = 1; w <= 4; ++w) {  // the first one has got somewhere
    CAPTURE(w);
    REQUIRE(m.it.ready());
    CHECK(m.it.workers().find(1) != nullptr);
    m.enter(0, w, copy(5), 1u);
    m.enter(1, w, copy(5));
    m.enter(2, w, copy(5));
  }
  CHECK(m.said("worker 1 is lost: others cannot reach it"));
  CHECK(m.it.workers().find(1) == nullptr);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 2*");
}

TEST_CASE("worlds that break after steps cost nobody its place") {
  master m;
  m.start(3);
  for (std::uint64_t w = 1; w <= 10; ++w) {
    REQUIRE(m.it.ready());
    m.enter(0, w, copy(5 + w), 1u);
    m.enter(1, w, copy(5 + w));
    m.enter(2, w, copy(5 + w));
  }
  CHECK(m.it.workers().all().size() == 3);
}

TEST_CASE("the last worker is not lost for anybody's suspicion") {
  master m;
  m.start(1);
  for (std::uint64_t w = 1; w <= 6; ++w) {
    REQUIRE(m.it.ready());
    m.enter(0, w, copy(5), 0u);
  }
  CHECK(m.it.workers().find(0) != nullptr);
}

TEST_CASE("whoever of two that accuse each other is lost, the other goes on, and is not lost for it") {
  master m;
  m.start();
  for (std::uint64_t w = 1; w <= 4; ++w) {
    REQUIRE(m.it.ready());
    m.enter(0, w, copy(5), 1u);
    m.enter(1, w, copy(5), 0u);
  }
  CHECK(m.it.workers().all().size() == 1);
  CHECK(m.it.workers().find(0) != nullptr);  // the older
  CHECK(m.it.ready());
}

// ---- Evaluation ----

TEST_CASE("an evaluation of a version that survivors have goes on in the next world") {
  master m(evaluated(2));
  m.start(3);
  m.reached(2, true);
  auto const e = m.ask(0), f = m.ask(1);
  REQUIRE(e.kind == task_kind::evaluation);
  CHECK(e.version == 2);
  CHECK(e.frozen);
  REQUIRE(f.kind == task_kind::evaluation);
  CHECK(m.done(e, 0, {4, 3}));
  m.lose(1);
  m.enter(0, 1, copy(3, with_closed(1)));
  m.enter(2, 1, copy(3, with_closed(1)));
  REQUIRE(m.it.ready());
  CHECK(m.released(true).empty());
  auto const again = m.ask(2);
  REQUIRE(again.kind == task_kind::evaluation);
  CHECK(again.version == 2);
  CHECK(again.range == f.range);  // the one that is done stays done
  CHECK(m.done(again, 2, {4, 1}));
  auto const result = m.take<evaluation_done>();
  REQUIRE(result);
  CHECK(result->result.of.version == 2);
  CHECK(result->result.records == 8);
  CHECK(result->result.totals == std::vector<double>{8, 4});
  CHECK(m.released(true) == std::vector<std::uint64_t>{2});
}

TEST_CASE("an evaluation of the very version that a world starts from goes on") {
  master m(evaluated(2));
  m.start();
  m.reached(4, true);
  REQUIRE(m.ask(0).kind == task_kind::evaluation);
  m.lose(1);
  m.enter(0, 1, copy(4, with_closed(2)));
  REQUIRE(m.it.ready());
  // Its first member tells again what it has frozen, as the loss may have swallowed it.
  m.reached(4, true);
  CHECK(m.released(true).empty());
  auto const e = m.ask(0), f = m.ask(0);
  REQUIRE(e.kind == task_kind::evaluation);
  CHECK(e.version == 4);
  CHECK(m.done(e, 0, {1}));
  CHECK(m.done(f, 0, {1}));
  auto const result = m.take<evaluation_done>();
  REQUIRE(result);
  CHECK(result->result.of.version == 4);
  CHECK(m.released(true) == std::vector<std::uint64_t>{4});
  m.reached(4, true);  // and once more: it has been evaluated
  CHECK(m.released(true) == std::vector<std::uint64_t>{4});
  CHECK(m.ask(0).kind == task_kind::training);
}

TEST_CASE("a version that waits for its evaluation is told again, and stays frozen") {
  master m(evaluated(2));
  m.start();
  m.reached(2, true);
  m.reached(4, true);  // waits
  m.lose(1);
  m.enter(0, 1, copy(4, with_closed(2)));
  REQUIRE(m.it.ready());
  m.reached(4, true);
  CHECK(m.released(true).empty());
}

TEST_CASE("an evaluation of a version that no survivor has is dropped, and its version may come again") {
  master m(evaluated(2));
  m.start();
  m.reached(4, true);
  auto const e = m.ask(0);
  REQUIRE(e.kind == task_kind::evaluation);
  m.lose(1);
  m.enter(0, 1, copy(3, with_closed(1)));
  REQUIRE(m.it.ready());
  CHECK_FALSE(m.done(e, 0, {1}));
  auto const t = m.ask(0);
  CHECK(t.kind == task_kind::training);
  m.reached(4, true);
  auto const again = m.ask(0), more = m.ask(0);
  REQUIRE(again.kind == task_kind::evaluation);
  CHECK(again.lease != e.lease);
  CHECK(m.done(again, 0, {1}));
  CHECK(m.done(more, 0, {1}));
  CHECK(m.take<evaluation_done>());
  CHECK_FALSE(m.take<evaluation_done>());
}

TEST_CASE("an evaluation whose version is frozen on nobody any more is dropped") {
  // Worker 2 comes after the version was frozen, and is the only one left.
  master m(evaluated(2));
  m.start();
  m.reached(2, true);
  REQUIRE(m.ask(0).kind == task_kind::evaluation);
  CHECK(m.join(2));
  m.enter(0, 1, copy(3, with_closed(1)));
  m.enter(1, 1, copy(3, with_closed(1)));
  m.enter(2);
  REQUIRE(m.it.ready());
  CHECK(m.ask(1).kind == task_kind::evaluation);  // workers 0 and 1 have it
  m.lose(0);
  m.enter(1, 2, copy(3, with_closed(1)));
  m.enter(2, 2, copy(3, with_closed(1)));
  REQUIRE(m.it.ready());
  REQUIRE(m.ask(2).kind == task_kind::evaluation);  // worker 1 has it
  m.lose(1);
  m.enter(2, 3, copy(3, with_closed(1)));
  REQUIRE(m.it.ready());
  CHECK(m.ask(2).kind == task_kind::training);
}

TEST_CASE("a copy that was behind has nothing frozen any more") {
  // It takes the state of another member, and drops what it had.
  master m(evaluated(2));
  m.start(3);
  m.reached(2, true);
  m.lose(2);
  m.enter(0, 1, copy(4, with_closed(2)));
  m.enter(1, 1, copy(3, with_closed(1)));
  REQUIRE(m.it.ready());
  REQUIRE(m.members() == "0* 1");
  REQUIRE(m.ask(1).kind == task_kind::evaluation);
  m.lose(0);
  m.enter(1, 2, copy(4, with_closed(2)));
  REQUIRE(m.it.ready());
  CHECK(m.ask(1).kind == task_kind::training);
}

TEST_CASE("all lost: evaluations of what was are dropped") {
  master m(evaluated(2));
  m.start();
  m.reached(4, true);
  CHECK(m.ask(0).kind == task_kind::evaluation);
  m.lose(0);
  m.lose(1);
  CHECK(m.join(2));
  m.enter(2);
  auto const f = m.take<find_restore_point>();
  REQUIRE(f);
  m.it.restore_point_found(f->generation, std::nullopt, m.now);
  REQUIRE(m.it.ready());
  CHECK(m.ask(2).kind == task_kind::training);
  m.reached(2, true);
  auto const e = m.ask(2);
  CHECK(e.kind == task_kind::evaluation);
  CHECK(e.version == 2);
}

TEST_CASE("a report of a version from a world that is over counts for nothing") {
  master m(evaluated(2));
  m.start();
  m.lose(1);
  m.it.version_reached({1, 2, true, false}, m.now);
  m.enter(0, 1, copy(2, with_closed(1)));
  REQUIRE(m.it.ready());
  m.it.version_reached({1, 2, true, false}, m.now);
  CHECK(m.ask(0).kind == task_kind::training);
}

TEST_CASE("an evaluation by itself goes on with those who are left, and starts again when none is") {
  auto o = replicated(job_type::evaluation_only);
  o.start = {"/c/version-6", 6, {}};
  master m(o);
  m.start();
  auto const e = m.ask(0), f = m.ask(1);
  REQUIRE(e.kind == task_kind::evaluation);
  CHECK(e.version == 6);
  CHECK(m.done(e, 0, {1}));
  m.lose(1);
  m.enter(0, 1, copy(6));
  REQUIRE(m.it.ready());
  CHECK_FALSE(m.take<find_restore_point>());
  auto const g = m.ask(0);
  REQUIRE(g.kind == task_kind::evaluation);
  CHECK(g.range == f.range);
  m.lose(0);
  CHECK(m.join(2));
  m.enter(2);
  REQUIRE(m.it.ready());
  CHECK(m.of(2)->restore == "/c/version-6");
  for (auto t = m.ask(2); t.kind == task_kind::evaluation; t = m.ask(2)) CHECK(m.done(t, 2, {1}));
  CHECK(m.it.finished());
  auto const result = m.take<evaluation_done>();
  REQUIRE(result);
  CHECK(result->result.records == 8);
}

TEST_CASE("predictions that are done stay done, whoever is lost") {
  master m(replicated(job_type::prediction_only));
  m.start();
  CHECK(m.done(m.ask(0), 0));
  m.lose(1);
  m.enter(0, 1, copy(0));
  REQUIRE(m.it.ready());
  CHECK_FALSE(m.said("Going back"));
  auto const t = m.ask(0);
  REQUIRE(t.kind == task_kind::prediction);
  CHECK(t.key.index == 1);
  m.lose(0);
  CHECK(m.join(2));
  m.enter(2);
  REQUIRE(m.it.ready());
  auto const u = m.ask(2);
  CHECK(u.key.index == 1);
  CHECK(m.done(u, 2));
  CHECK(m.it.finished());
}

// ---- Checkpoints ----

TEST_CASE("a checkpoint that a change of world interrupts is not held for ever") {
  // Members freeze two versions at most; what is never released keeps others out.
  master m(checkpointed());
  m.start();
  m.reached(2, false, true);
  REQUIRE(m.take<write_checkpoint>());
  m.reached(4, false, true);  // waits for the one before
  m.lose(1);
  m.enter(0, 1, copy(5, with_closed(2)));
  REQUIRE(m.it.ready());
  auto released = m.released(false);
  // Or they are written now.
  while (auto const w = m.take<write_checkpoint>()) {
    CHECK(w->generation == m.it.generation());
    m.it.checkpoint_written(w->generation, w->version, {}, m.now);
    for (std::uint64_t v : m.released(false)) released.push_back(v);
  }
  std::sort(released.begin(), released.end());
  CHECK(released == std::vector<std::uint64_t>{2, 4});
}

TEST_CASE("a version that has been written is told again, and is not written again") {
  // It is frozen no more: the attempt would only spoil the checkpoint that there is.
  master m(checkpointed());
  m.start();
  m.reached(4, false, true);
  auto const w = m.take<write_checkpoint>();
  REQUIRE(w);
  m.it.checkpoint_written(w->generation, 4, {}, m.now);
  CHECK(m.released(false) == std::vector<std::uint64_t>{4});
  m.lose(1);
  m.enter(0, 1, copy(4, with_closed(2)));
  REQUIRE(m.it.ready());
  m.reached(4, false, true);
  CHECK_FALSE(m.take<write_checkpoint>());
  m.reached(6, false, true);
  CHECK(m.take<write_checkpoint>());
}

TEST_CASE("a version that was being written when its world ended is written by the next") {
  master m(checkpointed());
  m.start();
  m.reached(4, false, true);
  REQUIRE(m.take<write_checkpoint>());
  m.lose(0);  // who wrote it
  m.enter(1, 1, copy(4, with_closed(2)));
  REQUIRE(m.it.ready());
  m.reached(4, false, true);
  auto const w = m.take<write_checkpoint>();
  REQUIRE(w);
  CHECK(w->generation == 2);
  CHECK(w->version == 4);
  CHECK_FALSE(m.take<write_checkpoint>());
  CHECK(m.released(false).empty());
  m.it.checkpoint_written(1, 4, "the connection has ended", m.now);  // the old world's
  CHECK_FALSE(m.said("cannot be written"));
  m.it.checkpoint_written(2, 4, {}, m.now);
  CHECK(m.said("Checkpoint of version 4 written"));
  CHECK(m.released(false) == std::vector<std::uint64_t>{4});
}

// ---- The end ----

TEST_CASE("a loss in the closing phase: the next world closes, with what has survived") {
  auto o = evaluated(100);
  o.checkpoint = o.final_checkpoint = true;
  master m(o);
  m.start();
  CHECK(m.work() == 5);
  REQUIRE(m.take<ask_version>());
  m.lose(1);
  m.it.version_told(1, 10, m.now);  // of the world that is over
  CHECK_FALSE(m.take<write_checkpoint>());
  m.enter(0, 1, copy(10, with_closed(5)));
  auto const ask = m.take<ask_version>();
  REQUIRE(ask);
  CHECK(ask->generation == 2);
  m.it.version_told(2, 10, m.now);
  auto const w = m.take<write_checkpoint>();
  REQUIRE(w);
  CHECK(w->final);
  CHECK(w->version == 10);
  // Once more, while it is written and evaluated.
  auto const e = m.ask(0);
  REQUIRE(e.kind == task_kind::evaluation);
  CHECK(m.join(2));
  m.enter(0, 2, copy(10, with_closed(5)));
  m.enter(2);
  REQUIRE(m.take<ask_version>());
  m.it.checkpoint_written(2, 10, {}, m.now);
  m.it.version_told(3, 10, m.now);
  auto const again = m.take<write_checkpoint>();
  REQUIRE(again);
  CHECK(again->generation == 3);
  m.it.checkpoint_written(3, 10, {}, m.now);
  CHECK_FALSE(m.it.over());
  for (auto t = m.ask(2); t.kind == task_kind::evaluation; t = m.ask(2)) CHECK(m.done(t, 2, {1}));
  CHECK(m.it.finished());
  CHECK(m.take<evaluation_done>());
  CHECK_FALSE(m.take<evaluation_done>());
  CHECK(m.take<finish_job>());
}

TEST_CASE("a loss in the closing phase that undoes work: it is done again before the end") {
  master m(checkpointed());
  m.start();
  CHECK(m.work() == 5);
  REQUIRE(m.take<ask_version>());
  m.lose(0);
  m.enter(1, 1, copy(9, with_closed(4)));
  REQUIRE(m.it.ready());
  CHECK_FALSE(m.take<ask_version>());
  auto const t = m.ask(1);
  CHECK(t.kind == task_kind::training);
  CHECK(t.key.index == 4);
  CHECK(m.done(t, 1));
  REQUIRE(m.take<ask_version>());
  m.it.version_told(2, 10, m.now);
  auto const w = m.take<write_checkpoint>();
  REQUIRE(w);
  m.it.checkpoint_written(2, 10, {}, m.now);
  CHECK(m.it.finished());
}

TEST_CASE("a final checkpoint that has been written is not written again for a loss after it") {
  auto o = evaluated(100);
  o.checkpoint = o.final_checkpoint = true;
  master m(o);
  m.start();
  m.work();
  REQUIRE(m.take<ask_version>());
  m.it.version_told(1, 10, m.now);
  REQUIRE(m.take<write_checkpoint>());
  m.it.checkpoint_written(1, 10, {}, m.now);
  CHECK_FALSE(m.it.over());  // it is being evaluated
  m.lose(1);
  m.enter(0, 1, copy(10, with_closed(5)));
  REQUIRE(m.take<ask_version>());
  m.it.version_told(2, 10, m.now);
  CHECK_FALSE(m.take<write_checkpoint>());
  auto const e = m.ask(0), f = m.ask(0);
  CHECK(e.kind == task_kind::evaluation);
  CHECK_FALSE(e.frozen);
  CHECK(m.done(e, 0, {1}));
  CHECK(m.done(f, 0, {1}));
  CHECK(m.it.finished());
}

TEST_CASE("when the job is over nobody enters and no world is formed") {
  master m;
  m.start();
  m.work();
  REQUIRE(m.it.finished());
  std::uint64_t const g = m.it.generation();
  m.enter(0, 1, copy(10));
  CHECK_FALSE(m.join(2));
  m.lose(1);
  m.pass(seconds(40));
  CHECK(m.it.generation() == g);
  CHECK(m.it.finished());
  CHECK(m.ask(0).kind == task_kind::finished);
}

TEST_CASE("a job fails when all workers have failed for good, in the middle of a world or of forming one") {
  for (bool forming : {false, true}) {
    auto o = replicated();
    o.worker_failures = 0;
    master m(o);
    m.start();
    if (forming) m.enter(0, 1, copy(1));
    m.it.exited(role::worker, 0, exit_kind::failed, "no memory", m.now);
    CHECK_FALSE(m.it.over());
    m.it.exited(role::worker, 1, exit_kind::failed, "no memory", m.now);
    CHECK(m.it.failed());
    CHECK(m.it.reason().find("all workers failed") == 0);
  }
}

TEST_CASE("stopped: what has been begun is finished, in whatever world") {
  master m;
  m.start();
  auto const t = m.ask(0);
  m.it.stop(m.now);
  m.lose(1);
  ledger l;
  l.set_open({0, 0}, 1);
  m.enter(0, 1, copy(1, l));
  CHECK_FALSE(m.done(t, 0));
  CHECK((m.it.finished() || m.ask(0).kind == task_kind::training));
}

TEST_CASE("lanes: each is leased its own tasks, and the next world deals the rest as the last would have") {
  auto o = replicated(job_type::training_with_evaluation);
  o.lanes = 2;
  o.evaluation_steps = 2;
  master m(o);
  for (std::uint32_t const id : {0u, 1u}) m.join(id), m.enter(id);
  auto const leased = [&](std::uint32_t worker, std::uint32_t lane) {
    auto const t = m.it.request_task(worker, 1, m.now, lane);
    return t.kind == task_kind::training ? std::optional(t.key.index) : std::nullopt;
  };
  // Five tasks: 0, 2 and 4 are the first lane's, whoever asks and however fast.
  CHECK(leased(0, 0) == 0);
  CHECK(leased(0, 0) == 2);
  CHECK(leased(1, 1) == 1);
  m.it.left(role::worker, 1, 1, m.now);
  m.enter(0, 1, copy(2, with_closed(2)));
  REQUIRE(m.of(0));
  CHECK(leased(0, 1) == 3);
  CHECK(leased(0, 0) == 2);
  CHECK(leased(0, 0) == 4);
  CHECK_FALSE(leased(0, 0));
  CHECK_FALSE(leased(0, 1));
  // Evaluations are anybody's.
  m.it.version_reached({m.it.generation(), 4, true, false}, m.now);
  CHECK(m.it.request_task(0, 1, m.now, 0).kind == task_kind::evaluation);
  CHECK(m.it.request_task(0, 1, m.now, 1).kind == task_kind::evaluation);
}

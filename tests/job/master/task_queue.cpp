// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/task_queue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "edl/core/error.hpp"

namespace task_queue_test {

using namespace edl::master;
using edl::ledger;
using edl::task_key;
using std::chrono::seconds;

namespace {

time_point const start{};

// Two files of ten records: eight tasks an epoch.
task_queue two_files(task_queue::options o = {}) {
  o.records_per_task = 3;
  o.minibatch_size = 1;
  return task_queue({{"f1", 10}, {"f2", 10}}, o);
}

std::vector<task_lease> lease_all(task_queue& q, std::uint32_t worker = 0) {
  std::vector<task_lease> out;
  while (auto l = q.lease(worker, 1, start)) out.push_back(*l);
  return out;
}

}  // namespace

TEST_CASE("a task that is done but for damaged records counts these as skipped") {
  auto q = two_files({.shuffle = false});
  auto const leases = lease_all(q);
  CHECK(q.complete(leases[0].id, start, 2));
  CHECK(q.done().records_done == 1);
  CHECK(q.done().records_skipped == 2);
  CHECK(q.complete(leases[3].id, start, 1000));  // of one record: what a report says is bounded
  CHECK(q.done().records_done == 1);
  CHECK(q.done().records_skipped == 3);
  CHECK(q.done().tasks_done == 2);
}

TEST_CASE("epochs without end") {
  auto q = two_files({.num_epochs = 0});
  for (std::uint32_t i = 0; i < 800; ++i) {
    auto const l = q.lease(0, 1, start);
    REQUIRE(l);
    CHECK(l->key.epoch == i / 8);
    CHECK(q.complete(l->id, start));
    CHECK(!q.finished());
  }
  CHECK(!q.total_tasks());
  CHECK(!q.total_records());
  q.stop_leasing();
  CHECK(q.finished());
}

TEST_CASE("a lost worker's tasks go to the front, in their order and without fault") {
  auto q = two_files({.shuffle = false, .max_retries = 1});
  auto const a = q.lease(1, 10, start), b = q.lease(2, 20, start), c = q.lease(1, 10, start);
  CHECK(q.recover(1) == 2);
  CHECK(q.recover(1) == 0);
  CHECK(!q.complete(a->id, start));  // the zombie's report
  CHECK(!q.holds(c->id, 1, 10));
  CHECK(q.holds(b->id, 2, 20));
  CHECK(!q.holds(b->id, 2, 21));
  CHECK(q.recovered_waiting());
  for (int round = 0; round < 20; ++round) {  // preemptions are never counted against a task
    auto const d = q.lease(3, 30, start), e = q.lease(3, 30, start);
    CHECK(d->key == a->key);
    CHECK(e->key == c->key);
    CHECK(d->resumed);
    CHECK(d->id > c->id);
    q.recover(3);
  }
  CHECK(q.history().recovered == 42);
  CHECK(q.history().repeated == 40);
}

TEST_CASE("errors count on the task, and the job learns why it cannot be completed") {
  auto q = two_files({.shuffle = false, .max_retries = 3});
  auto const first = q.lease(0, 1, start);
  CHECK(q.fail(first->id, 1, "torn") == task_fate::requeued);
  CHECK(q.reason() == "task 0 of epoch 0 ('f1', records [0, 3)) failed on worker 0, try 1 of 3: torn");
  CHECK(q.fail(first->id, 1, "torn") == task_fate::unknown);
  auto rest = lease_all(q);
  REQUIRE(rest.size() == 8);
  CHECK(rest.back().key == first->key);  // others first
  CHECK(rest.back().applied == 1);
  CHECK(q.fail(rest.back().id, 0, "torn") == task_fate::requeued);
  CHECK(q.reason() == "task 0 of epoch 0 failed again on worker 0, try 2 of 3: for the same reason");
  CHECK(q.fail(rest.front().id, 0, "torn") == task_fate::requeued);
  CHECK(q.reason() == "task 1 of epoch 0 failed on worker 0, try 1 of 3: for the same reason");
  auto const last = q.lease(1, 1, start);
  CHECK(last->applied == 1);
  CHECK(q.fail(last->id, 0, "torn at byte 7") == task_fate::exhausted);
  CHECK(q.reason() ==
        "task 0 of epoch 0 ('f1', records [0, 3)) failed 3 times, at last on worker 1: torn at byte 7");
  CHECK(!q.finished());  // never dropped
}

TEST_CASE("a record that is refused is tried by one other worker, and told once") {
  {
    auto q = two_files({.shuffle = false, .max_retries = 3});
    auto const alone = q.lease(0, 1, start);
    CHECK(q.fail(alone->id, 1, "no such class", false, false, true) == task_fate::exhausted);
    CHECK(q.reason() == "task 0 of epoch 0 ('f1', records [0, 3)) failed on worker 0: no such class");
  }
  for (std::string const why : {"no such class", "no date"}) {
    auto q = two_files({.shuffle = false, .max_retries = 3});
    auto const bad = q.lease(0, 1, start, 0, true);
    CHECK(q.fail(bad->id, 0, "no such class", false, true, true) == task_fate::requeued);
    CHECK(q.reason() ==
          "task 0 of epoch 0 failed on worker 0 for one of its records, and another worker tries it");
    CHECK_FALSE(q.lease(0, 1, start, 0, true));
    auto const again = q.lease(1, 1, start, 0, true);
    CHECK(again->key == bad->key);
    CHECK(q.failures_before(again->id).untold == "no such class");
    CHECK(q.fail(again->id, 0, why, false, true, true) == task_fate::exhausted);
    CHECK(q.reason() == "task 0 of epoch 0 ('f1', records [0, 3)) failed 2 times, at last on worker 1: " +
                            why + (why == "no date" ? "; before that: no such class" : ""));
  }
}

TEST_CASE("what is wrong on one worker is tried by another before anything else") {
  auto q = two_files({.num_epochs = 1, .shuffle = false, .max_retries = 1});
  auto const bad = q.lease(0, 1, start, 0, true);
  CHECK(q.fail(bad->id, 0, "nan", true, true) == task_fate::requeued);
  CHECK_FALSE(q.lease(0, 1, start, 0, true));        // until another has told whose fault it is
  auto const fresh = q.lease(0, 2, start, 0, true);  // another process of that id is another worker
  CHECK(fresh->key == bad->key);
  CHECK(q.give_back(fresh->id, 0));
  auto const again = q.lease(1, 1, start, 0, true);
  CHECK(again->key == bad->key);
  CHECK(q.failures_before(again->id).on == std::vector<failed_on>{{0, 1}});
  CHECK(q.failures_before(again->id).wrong);
  SUBCASE("it is that worker's fault") {
    CHECK(q.complete(again->id, start));
    CHECK(q.lease(0, 1, start, 0, true)->key.index == 1);
  }
  SUBCASE("it is the task's") {
    CHECK(q.fail(again->id, 0, "nan", true, true) == task_fate::exhausted);
    CHECK(q.reason().ends_with("; a lower learning rate may help"));
  }
  SUBCASE("the others are gone") {
    q.recover(1);
    CHECK(q.lease(0, 1, start)->key == bad->key);
  }
  SUBCASE("two workers try each other's") {
    CHECK(q.give_back(again->id, 0));
    auto const mine = q.lease(1, 1, start, 0, true);
    CHECK(mine->key == bad->key);
    auto const other = q.lease(1, 1, start, 0, true);
    CHECK(q.fail(other->id, 0, "nan", true, true) == task_fate::requeued);
    CHECK(q.lease(0, 1, start, 0, true)->key == other->key);
  }
}

TEST_CASE("a lane's task that fails on one worker alone asks for another one, also after a rollback") {
  task_queue q({{"f1", 3}}, {.records_per_task = 3, .minibatch_size = 1, .max_retries = 2, .lanes = 1});
  auto const fail = [&](std::uint32_t worker) {
    return q.fail(q.lease(worker, 1, start, 0, true)->id, 0, "nan", true, true);
  };
  CHECK(fail(0) == task_fate::requeued);
  CHECK(fail(0) == task_fate::misplaced);
  q.restore({});
  CHECK(fail(1) == task_fate::requeued);
  CHECK(fail(1) == task_fate::exhausted);
}

TEST_CASE("exactly what a ledger lacks is leased") {
  auto q = two_files({.num_epochs = 3});
  lease_all(q);  // void afterwards
  ledger l;
  l.set_closed(0, 0, 8);
  l.set_closed(1, 2, 5);
  l.set_closed(1, 7, 8);
  l.set_closed(2, 0, 1);
  l.set_open({1, 0}, 2);
  l.set_open({2, 6}, 1);
  q.restore(l);
  CHECK(!q.complete(1, start));
  CHECK(q.leased() == 0);
  CHECK(q.done().tasks_done == 13);
  CHECK(q.done_by_epoch().at(0).records_done == 20);
  auto const leases = lease_all(q);
  CHECK(leases.size() == 24 - 13);
  std::set<task_key> seen;
  std::uint32_t epoch = 0;
  for (auto const& t : leases) {
    CHECK(t.id > 24);
    CHECK(t.key.epoch >= epoch);  // epochs in order
    epoch = t.key.epoch;
    CHECK(!l.closed(t.key));
    CHECK(seen.insert(t.key).second);
    CHECK(t.applied == l.position(t.key));
    CHECK(t.resumed == (t.applied > 0));
    q.complete(t.id, start);
  }
  CHECK(q.finished());
  CHECK(q.done().records_done == 60);
  CHECK(q.done().minibatches_done == 60);
}

TEST_CASE("a complete ledger leaves nothing to do, and one of a longer job does not count double") {
  auto q = two_files();
  ledger l;
  l.set_closed(0, 0, 8);
  l.set_closed(1, 0, 4);
  q.restore(l);
  CHECK(q.finished());
  CHECK(!q.lease(0, 1, start));
  CHECK(q.done().records_done == 20);
}

TEST_CASE("what a rollback undoes is counted, and a restored ledger's two counts are compared") {
  auto q = two_files();
  CHECK(!q.restored_account());
  for (auto const& t : lease_all(q)) q.complete(t.id, start);
  std::uint64_t const all = q.done().records_done;
  ledger l;
  l.set_closed(0, 0, 8);
  l.set_tally(0, {.minibatches = 20, .records = 20});
  q.restore(l);
  CHECK(q.history().records_taken_back == all - 20);
  REQUIRE(q.restored_account());
  CHECK(q.restored_account()->lost == 0);
  CHECK(q.restored_account()->repeated == 0);
  l.set_tally(0, {.minibatches = 20, .records = 17});
  q.restore(l);
  CHECK(q.restored_account()->lost == 3);
  CHECK(q.restored_account()->repeated == 0);
  l.set_tally(0, {.minibatches = 20, .records = 25});
  q.restore(l);
  CHECK(q.restored_account()->lost == 0);
  CHECK(q.restored_account()->repeated == 5);
  CHECK(q.history().records_taken_back == all - 20);
  ledger uncounted;
  uncounted.set_closed(0, 0, 8);
  q.restore(uncounted);
  CHECK(!q.restored_account());
  q.restore({});
  REQUIRE(q.restored_account());
  CHECK(q.restored_account()->lost == 0);
  CHECK(q.history().records_taken_back == all);
}

TEST_CASE("a ledger of other data is refused") {
  auto q = two_files();
  auto const held = q.lease(0, 1, start);
  ledger closed, open, mark;
  closed.set_closed(0, 5, 9);
  open.set_open({0, 8}, 1);
  mark.set_open({0, 3}, 1);  // task 3 has one record: one minibatch, it would be closed
  for (ledger const& l : {closed, open, mark}) {
    CHECK_THROWS_AS(q.restore(l), edl::error);
    CHECK_THROWS_AS(q.account(l), edl::error);
  }
  CHECK(q.holds(held->id, 0, 1));  // nothing changed
}

TEST_CASE("with lanes a limit cuts the last task of the row, also after a restart") {
  for (std::uint64_t const most : {1u, 5u, 7u, 20u, 23u, 40u}) {
    CAPTURE(most);
    auto q = two_files({.num_epochs = 0, .seed = 3, .max_minibatches = most, .lanes = 3});
    std::uint64_t count = 0;
    bool any = true;
    while (std::exchange(any, false))
      for (std::uint32_t lane = 0; lane < 3; ++lane)
        if (auto const l = q.lease(lane, 1, start, lane)) {
          any = true;
          count += l->until;
          q.complete(l->id, start);
        }
    CHECK(count == most);
    CHECK(q.finished());
    CHECK(q.done().minibatches_done == most);
  }
}

TEST_CASE("what has failed counts as begun: max_minibatches is not exceeded by it") {
  auto q = two_files({.num_epochs = 0, .shuffle = false, .max_minibatches = 6});
  auto const a = q.lease(0, 1, start);
  CHECK(q.fail(a->id, 1, "x") == task_fate::requeued);
  auto const b = q.lease(0, 1, start), c = q.lease(0, 1, start);
  CHECK(b->key.index == 1);
  CHECK(c->key == a->key);
  CHECK(!q.lease(0, 1, start));
  q.complete(b->id, start);
  CHECK(!q.finished());
  q.complete(c->id, start);
  CHECK(q.finished());
  CHECK(q.done().minibatches_done == 6);
}

TEST_CASE("slow is longer than three times the longest completed, and never before the least timeout") {
  auto q = two_files({.shuffle = false, .min_timeout = seconds(300)});
  auto const a = q.lease(1, 1, start);
  auto const b = q.lease(2, 1, start);
  CHECK(q.expired(start + seconds(300)).empty());
  CHECK(q.expired(start + seconds(301)).size() == 2);

  q.progressed(2, start + seconds(250));  // nothing completed yet: progress is enough
  auto slow = q.expired(start + seconds(301));
  REQUIRE(slow.size() == 1);
  CHECK(slow[0].worker == 1);
  CHECK(slow[0].lease == a->id);

  CHECK(q.complete(b->id, start + seconds(400)));
  CHECK(q.expired(start + seconds(1200)).empty());  // 3 × 400
  CHECK(q.expired(start + seconds(1201)).size() == 1);
  auto const c = q.lease(2, 1, start + seconds(400));
  q.progressed(2, start + seconds(1500));
  slow = q.expired(start + seconds(1601));
  CHECK(slow.size() == 2);

  CHECK(q.recover_lease(c->id));
  CHECK(!q.recover_lease(c->id));
  CHECK(q.history().expired == 1);
  CHECK(q.lease(3, 1, start)->key == c->key);
}

TEST_CASE("the time of a task that was leased ahead begins when the one before it is done") {
  auto q = two_files({.shuffle = false, .min_timeout = seconds(10)});
  auto const a = q.lease(1, 1, start), b = q.lease(1, 1, start);
  q.complete(a->id, start + seconds(9));
  CHECK(q.expired(start + seconds(36)).empty());
  CHECK(q.expired(start + seconds(37)).size() == 1);
  q.complete(b->id, start + seconds(18));
  auto const c = q.lease(1, 1, start + seconds(18));
  CHECK(q.expired(start + seconds(18 + 27)).empty());  // 9, not 18, was the longest
  CHECK(q.expired(start + seconds(18 + 28)).size() == 1);
  CHECK(c->key.index == 2);
}

TEST_CASE("halted: nothing is leased any more, and what has been begun stays as it is") {
  for (std::uint32_t const lanes : {0u, 2u}) {
    auto q = two_files({.shuffle = false, .lanes = lanes});
    auto const a = q.lease(0, 1, start, 0), b = q.lease(1, 1, start, lanes ? 1 : 0);
    REQUIRE(b);
    CHECK(q.give_back(a->id, 1));
    q.halt();
    CHECK(!q.lease(2, 1, start, 0));
    CHECK(!q.finished());  // one is still in somebody's hands
    CHECK(q.give_back(b->id, 1));
    CHECK(q.finished());
    CHECK(q.done().tasks_done == 0);
    CHECK(q.done_by_epoch().at(0).minibatches_done == 2);
    edl::ledger l;
    l.set_open(a->key, 1);
    q.restore(l);
    auto const again = q.lease(2, 1, start, 0);
    REQUIRE(again);
    CHECK(again->key == a->key);
    CHECK(again->applied == 1);
  }
}

TEST_CASE("counters of epochs are added up") {
  auto const all = sum_of({{0, {1, 30, 4, 5}}, {7, {10, 300, 40, 50}}});
  CHECK(all.tasks_done == 11);
  CHECK(all.records_done == 330);
  CHECK(all.records_skipped == 44);
  CHECK(all.minibatches_done == 55);
  CHECK(sum_of({}).records_done == 0);
}

}  // namespace task_queue_test

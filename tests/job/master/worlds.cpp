// SPDX-License-Identifier: Apache-2.0
// The worlds of a job whose workers have a copy of the model each: the first, and those after a loss.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "job/master/replicated_master.hpp"

namespace worlds_test {

using namespace replicated_master;

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

}  // namespace worlds_test

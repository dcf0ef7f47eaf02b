// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/worker_worlds.hpp"

#include <doctest/doctest.h>

#include <string>

namespace worker_worlds_test {

using namespace edl::master;
using namespace std::chrono_literals;

namespace {

using enum worker_worlds::step::kind;

time_point const start{1h};

struct job {
  membership workers;
  worker_worlds it{10s};

  explicit job(std::uint32_t n) {
    it.expect(n);
    for (std::uint32_t i = 0; i < n; ++i) join(i);
  }
  void join(std::uint32_t id, time_point at = start) {
    workers.join(id, 100 + id, {"tcp:h:" + std::to_string(id + 1)}, at);
  }
  void enter(std::uint32_t id, std::optional<copy_position> copy = {}, time_point at = start) {
    it.enter(id, {.incarnation = 100 + id, .last = 0, .copy = std::move(copy), .suspect = {}}, at);
  }
  /// The first world, of all, at version 0.
  void begin() {
    for (auto const& [id, m] : workers.all()) enter(id);
    REQUIRE(it.next(workers, false, start).action == worker_worlds::step::kind::begin);
    it.begin(1, workers, 0, "");
  }
  auto next(bool restorable = true, time_point at = start) { return it.next(workers, restorable, at); }
};

copy_position copy(std::uint64_t version, std::uint64_t of = 1) { return {version, {}, of}; }

}  // namespace

TEST_CASE("the first world waits for all that are expected, but not for ever") {
  job j(2);
  j.workers.lose(1, 101);
  j.enter(0);
  CHECK(j.next(false).action == wait);
  CHECK(j.next(false, start + 9s).action == wait);
  CHECK(j.next(false, start + 10s).action == begin);
}

TEST_CASE("a world begins when all have entered, from the newest copy") {
  job j(2);
  j.begin();
  j.it.broke(start);
  j.enter(0, copy(5));
  CHECK(j.next().action == wait);
  j.enter(1, copy(6));
  auto const step = j.next();
  CHECK(step.action == go_on);
  CHECK(step.newest->version == 6);
}

TEST_CASE("without a copy a checkpoint is asked for, once") {
  job j(1);
  j.begin();
  j.it.broke(start);
  j.enter(0);
  CHECK(j.next().action == find);
  CHECK(j.it.asks());
  CHECK(j.next().action == wait);
  CHECK(j.it.found());
  CHECK_FALSE(j.it.found());  // an answer that nobody waits for
}

TEST_CASE("when somebody comes meanwhile, the checkpoint is decided on again") {
  job j(1);
  j.begin();
  j.it.broke(start);
  j.enter(0);
  CHECK(j.next().action == find);
  j.join(1);
  j.it.changed();
  CHECK_FALSE(j.it.found());
  CHECK(j.next().action == wait);
  j.enter(1, copy(3));
  CHECK(j.next().action == go_on);
}

TEST_CASE("where nothing can be restored the job begins as at the start") {
  job j(1);
  j.enter(0);
  CHECK(j.next(false).action == begin);
}

TEST_CASE("whoever does not come while others wait is absent; who has just joined has its time") {
  job j(2);
  j.begin();
  j.it.broke(start);
  CHECK(j.it.absent(j.workers, 5s, start + 6s).empty());  // nobody waits
  j.enter(0, copy(1));
  j.join(2, start + 4s);
  CHECK(j.it.absent(j.workers, 5s, start + 5s).empty());
  CHECK(j.it.absent(j.workers, 5s, start + 6s) == std::vector<std::uint32_t>{1});
  CHECK(j.it.absent(j.workers, 5s, start + 10s) == std::vector<std::uint32_t>{1, 2});
}

TEST_CASE("an absence of the master is held against nobody") {
  job j(2);
  j.begin();
  j.it.broke(start);
  j.enter(0, copy(1));
  j.it.excuse(20s, start + 20s);
  CHECK(j.it.absent(j.workers, 5s, start + 24s).empty());
  CHECK(j.it.absent(j.workers, 5s, start + 26s) == std::vector<std::uint32_t>{1});
}

TEST_CASE("a version is frozen by those whose copy goes on") {
  job j(2);
  j.begin();
  j.it.broke(start);
  j.enter(0, copy(4));
  j.enter(1);
  j.next();
  j.it.begin(2, j.workers, 4, "");
  CHECK(j.it.holders(4) == std::vector<std::uint32_t>{0});
  CHECK(j.it.holders(5) == std::vector<std::uint32_t>{0, 1});
  j.it.freeze(5);
  CHECK(j.it.is_frozen(5));
  // Both take another's state: nobody has it any more.
  j.it.broke(start);
  j.join(2);
  j.enter(0);
  j.enter(1);
  j.enter(2, copy(5, 2));
  j.next();
  j.it.begin(3, j.workers, 5, "");
  CHECK_FALSE(j.it.is_frozen(5));
}

TEST_CASE("what was not written when a world ended is released, but for what the next begins with") {
  job j(1);
  j.begin();
  j.it.not_written({4, 6});
  j.it.broke(start);
  j.enter(0, copy(6));
  j.next();
  CHECK(j.it.begin(2, j.workers, 6, "") == std::vector<std::uint64_t>{4});
  j.it.broke(start);
  j.enter(0, copy(7, 2));
  j.next();
  CHECK(j.it.begin(3, j.workers, 7, "").empty());  // told once
}

}  // namespace worker_worlds_test

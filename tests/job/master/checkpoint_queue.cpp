// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/checkpoint_queue.hpp"

#include <doctest/doctest.h>

namespace checkpoint_queue_test {

using edl::master::checkpoint_queue;
using edl::master::write_checkpoint;

namespace {

write_checkpoint of(std::uint64_t version, bool final = false) { return {1, version, final}; }

}  // namespace

TEST_CASE("a version is written once, though it is also the last") {
  checkpoint_queue q;
  q.add(of(10));
  SUBCASE("it is written when the job comes to its end") {
    q.ended(true);
    CHECK_FALSE(q.add(of(10, true)).start);
    CHECK(q.final_version() == 10);
    CHECK(q.add(of(10)).dropped == 10);
    CHECK_FALSE(q.current());
  }
  SUBCASE("it is being written") {
    CHECK_FALSE(q.add(of(10, true)).start);
    CHECK_FALSE(q.final_version());
    CHECK_FALSE(q.ended(true));
    CHECK(q.final_version() == 10);
  }
  SUBCASE("it could not be written before") {
    q.add(of(10, true));
    CHECK(q.ended(false)->final);
    CHECK(q.add(of(10)).dropped == 10);
    CHECK_FALSE(q.ended(true));
    CHECK(q.final_version() == 10);
  }
}

TEST_CASE("a final checkpoint that waits is not dropped for another") {
  checkpoint_queue q;
  q.add(of(10));
  q.add(of(20, true));
  CHECK(q.add(of(30)).dropped == 30);
  CHECK(q.ended(true)->final);
  CHECK_FALSE(q.final_version());
  q.ended(true);
  CHECK(q.final_version() == 20);
}

TEST_CASE("what could not be written does not count") {
  checkpoint_queue q;
  q.add(of(10, true));
  q.ended(false);
  CHECK_FALSE(q.newest());
  CHECK_FALSE(q.final_version());
}

TEST_CASE("when all is void, versions that are frozen are told") {
  checkpoint_queue q;
  q.add(of(10));
  q.add(of(20));
  CHECK(q.clear() == std::vector<std::uint64_t>{10, 20});
  CHECK_FALSE(q.current());
  q.add(of(30, true));
  CHECK(q.clear().empty());
  CHECK(q.add(of(40)).start);
}

TEST_CASE("after the job has gone back, what was written later is none of its past") {
  checkpoint_queue q;
  q.add(of(10, true));
  q.ended(true);
  q.go_back_to(10);
  CHECK(q.newest() == 10);
  CHECK(q.final_version() == 10);
  q.go_back_to(5);
  CHECK_FALSE(q.newest());
  CHECK_FALSE(q.final_version());
}

}  // namespace checkpoint_queue_test

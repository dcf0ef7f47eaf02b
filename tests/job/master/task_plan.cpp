// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/task_plan.hpp"

#include <doctest/doctest.h>

#include "edl/core/error.hpp"

namespace task_plan_test {

using edl::master::shard;
using edl::master::task_plan;
using edl::master::task_range;

TEST_CASE("two files of ten records in tasks of three") {
  task_plan const plan({{"f1", 10}, {"f2", 10}}, {.records_per_task = 3, .minibatch_size = 2});
  REQUIRE(plan.tasks() == 8);
  std::uint32_t index = 0;
  for (std::uint32_t file : {0, 1})
    for (auto [begin, end] : {std::pair{0, 3}, {3, 6}, {6, 9}, {9, 10}}) {
      CAPTURE(index);
      CHECK(plan.range(index++) == task_range{file, std::uint64_t(begin), std::uint64_t(end)});
    }
  CHECK(plan.minibatches(0) == 2);
  CHECK(plan.minibatches(3) == 1);
  CHECK(plan.records() == 20);
}

TEST_CASE("sums over runs of tasks are those of their ranges") {
  task_plan const plan({{"empty", 0}, {"a", 7}, {"empty", 0}, {"b", 1}, {"c", 12}, {"empty", 0}},
                       {.records_per_task = 4, .minibatch_size = 3});
  REQUIRE(plan.tasks() == 6);
  for (std::uint32_t begin = 0; begin <= plan.tasks(); ++begin)
    for (std::uint32_t end = begin; end <= plan.tasks(); ++end) {
      CAPTURE(begin);
      CAPTURE(end);
      std::uint64_t records = 0, minibatches = 0;
      for (auto i = begin; i < end; ++i) {
        records += plan.range(i).records();
        minibatches += plan.minibatches(i);
        CHECK(plan.shards()[plan.range(i).shard].records >= plan.range(i).end);
      }
      CHECK(plan.records(begin, end) == records);
      CHECK(plan.minibatches(begin, end) == minibatches);
    }
}

TEST_CASE("applied minibatches in records") {
  task_plan const plan({{"a", 7}}, {.records_per_task = 7, .minibatch_size = 3});
  CHECK(plan.records_of(0, 0) == 0);
  CHECK(plan.records_of(0, 2) == 6);
  CHECK(plan.records_of(0, 3) == 7);
  CHECK(plan.records_of(0, 99) == 7);
}

TEST_CASE("a data set without records has no tasks") {
  CHECK(task_plan({}, {}).tasks() == 0);
  CHECK(task_plan({}, {}).records() == 0);
  CHECK(task_plan({{"a", 0}}, {}).tasks() == 0);
}

TEST_CASE("sizes that cannot be are refused") {
  CHECK_THROWS_AS(task_plan({}, {.records_per_task = 0}), edl::usage_error);
  CHECK_THROWS_AS(task_plan({}, {.minibatch_size = 0}), edl::usage_error);
  std::uint64_t const many = std::uint64_t{1} << 40;
  CHECK_THROWS_AS(task_plan({{"a", many}}, {.records_per_task = 1, .minibatch_size = 1}), edl::usage_error);
  CHECK_THROWS_AS(task_plan({{"a", many}}, {.records_per_task = many, .minibatch_size = 1}),
                  edl::usage_error);
  std::uint64_t const most = ~std::uint64_t{0};
  CHECK_THROWS_AS(task_plan({{"a", most}, {"b", most}}, {.records_per_task = most, .minibatch_size = most}),
                  edl::usage_error);
  CHECK(task_plan({{"a", most}}, {.records_per_task = most, .minibatch_size = most}).tasks() == 1);
}

}  // namespace task_plan_test

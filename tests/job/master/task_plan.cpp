// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/task_plan.hpp"

#include <doctest/doctest.h>

#include "edl/core/error.hpp"

namespace task_plan_test {

using edl::master::task_plan;

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

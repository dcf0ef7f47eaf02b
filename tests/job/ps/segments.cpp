// SPDX-License-Identifier: Apache-2.0
#include "edl/job/ps/segments.hpp"

#include <doctest/doctest.h>

#include "edl/job/ps/snapshot.hpp"
#include "job/ps/small_store.hpp"

namespace segments_test {

using namespace small_store;

namespace {

using histories = std::vector<edl::checkpoint::segment>;

edl::ledger of_tasks(std::vector<std::uint32_t> const& tasks) {
  edl::ledger all;
  for (std::uint32_t const t : tasks) all.apply({batch(t), 8});
  return all;
}

/// Elements [0, 4) have made two steps, [4, 6) one of these.
segments two_histories() {
  segments s({0, 6});
  s.start({{{0, 4}, 2, of_tasks({0, 1})}, {{4, 6}, 1, of_tasks({0})}}, {});
  return s;
}

}  // namespace

TEST_CASE("histories that differ count each minibatch once, and become one") {
  auto s = two_histories();
  CHECK(s.steps() == 1);
  CHECK(s.size() == 2);
  CHECK(s.counted().closed() == of_tasks({0}).closed());
  CHECK_FALSE(s.position({0, 1}).closed);
  CHECK_FALSE(s.counts_next(batch(0)));
  CHECK(s.counts_next(batch(1)));
  CHECK_FALSE(s.not_yet_applied({batch(1), 8}));
  std::vector<float> values(6, 1);
  s.leave_out({batch(1), 8}, values);
  CHECK(values == std::vector<float>{0, 0, 0, 0, 1, 1});
  for (segment& one : s)
    if (one.counts_next(batch(1))) one.count({batch(1), 8}), ++one.steps;
  s.merge();
  REQUIRE(s.size() == 1);
  CHECK(s.begin()->elements == edl::element_range{0, 6});
  CHECK(s.steps() == 2);
  CHECK(s.position({0, 1}).closed);
}

TEST_CASE("what waits is counted and not applied, keeps histories apart, and can be dropped") {
  auto s = two_histories();
  for (segment& one : s)
    if (one.counts_next(batch(1))) one.counted.apply({batch(1), 8}), one.waiting.push_back({batch(1), 8});
  s.merge();
  CHECK(s.size() == 2);
  CHECK(s.counted().closed() == of_tasks({0, 1}).closed());
  edl::ps::full_snapshot all;
  s.snapshot_into(all);
  CHECK(all.segments == histories{{{0, 4}, 2, of_tasks({0, 1})}, {{4, 6}, 1, of_tasks({0})}});
  s.drop_waiting();
  CHECK(s.counted().closed() == of_tasks({0}).closed());
}

TEST_CASE("a minibatch has its forerunner, and a step counts none twice") {
  segments s({0, 6});
  s.start({{{0, 6}, 0, {}}}, {});
  CHECK(s.forerunner(batch(3, 1, 2)) == 0);
  CHECK(s.forerunner(batch(3, 0, 2)) == std::nullopt);
  using list = std::vector<edl::contribution>;
  s.check_step(list{batch(3, 0, 2), batch(3, 1, 2)});
  CHECK(contains(complaint([&] { s.check_step(list{batch(3, 1, 2)}); }), "which is not the next"));
  CHECK(contains(complaint([&] { s.check_step(list{batch(3), batch(3)}); }), "of task 3 in epoch 0 twice"));
}

TEST_CASE("segments cover a range when they lie side by side") {
  CHECK(segments::cover({{{0, 4}, 0, {}}, {{4, 6}, 0, {}}}, {0, 6}));
  CHECK(segments::cover({{{6, 6}, 0, {}}}, {6, 6}));
  CHECK_FALSE(segments::cover({}, {6, 6}));
  CHECK_FALSE(segments::cover({{{0, 4}, 0, {}}}, {0, 6}));
  CHECK_FALSE(segments::cover({{{0, 4}, 0, {}}, {{5, 6}, 0, {}}}, {0, 6}));
}

}  // namespace segments_test

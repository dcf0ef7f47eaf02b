// SPDX-License-Identifier: Apache-2.0
#include "edl/job/ps/freezer.hpp"

#include <doctest/doctest.h>

#include "job/ps/small_store.hpp"

namespace freezer_test {

using namespace small_store;

namespace {

/// At a version, with rows of some hash slots.
struct at_version final : freezer::source {
  explicit at_version(std::uint64_t v, edl::element_range s = {}) : version(v), slots(s) {}
  snapshot averaged() const override { return {version, buffer(1)}; }
  edl::ps::full_snapshot full_snapshot() const override {
    ++snapshots;
    return {.variables = {version, buffer(1)}, .hash_slots = slots};
  }
  std::uint64_t version;
  edl::element_range slots;
  mutable int snapshots = 0;
};

freezer make(bool rests = false) {
  static auto const layout = small_layout();
  return freezer({.layout = layout,
                  .rule = adding,
                  .when = at_once,
                  .evaluation_steps = 2,
                  .checkpoint_steps = 3,
                  .most_frozen = 2,
                  .rests_to_evaluate = rests});
}

}  // namespace

TEST_CASE("a version is frozen when it is due, and a store is asked for no other") {
  auto f = make();
  for (std::uint64_t v = 1; v <= 6; ++v) {
    at_version const now(v);
    auto const [evaluate, checkpoint] = f.advanced(v, now);
    CHECK(evaluate == (v % 2 == 0));
    CHECK(checkpoint == (v % 3 == 0));
    CHECK(now.snapshots == (v % 3 == 0));
  }
  CHECK(f.evaluation(4).version() == 4);
  CHECK(f.checkpoint(3).version() == 3);
  CHECK(contains(complaint([&] { f.evaluation(2); }), "version 2 is not frozen for an evaluation"));
  CHECK(contains(complaint([&] { f.checkpoint(5); }), "(at most 2 are kept)"));
  f.release_checkpoint(3);
  CHECK(contains(complaint([&] { f.checkpoint(3); }), "version 3 is not frozen for a checkpoint"));
  f.forget();
  CHECK_FALSE(f.has_evaluation(6));
}

TEST_CASE("a backup freezes nothing") {
  auto f = make();
  f.freeze(false);
  auto const [evaluate, checkpoint] = f.advanced(6, at_version(6));
  CHECK_FALSE(evaluate);
  CHECK_FALSE(checkpoint);
}

TEST_CASE("what has other rows now is frozen once more") {
  auto f = make();
  at_version const all(3, {0, 4096}), half(3, {0, 2048});
  f.advanced(3, half);
  f.with_rows(3, {0, 2048}, all);
  CHECK(all.snapshots == 0);
  f.with_rows(3, {0, 4096}, all);
  CHECK(f.checkpoint(3).hash_slots == edl::element_range{0, 4096});
  f.with_rows(4, {0, 4096}, all);  // never to be written
  CHECK(all.snapshots == 1);
}

TEST_CASE("with rests the version to evaluate is frozen when it is asked for, and no older one is kept") {
  auto f = make(true);
  CHECK(f.due(2, at_version(2)).evaluate);
  f.advanced(3, at_version(3));
  CHECK_FALSE(f.has_evaluation(2));
  CHECK_FALSE(make().due(2, at_version(2)).evaluate);
}

}  // namespace freezer_test

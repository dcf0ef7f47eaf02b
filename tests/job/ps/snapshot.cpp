// SPDX-License-Identifier: Apache-2.0
#include "edl/job/ps/snapshot.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "base/wire/scratch.hpp"
#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/layout_digest.hpp"

namespace snapshot_test {

using namespace edl::ps;

namespace {

buffer counting(std::size_t n, float from) {
  buffer b(n);
  std::iota(b.writable().begin(), b.writable().end(), from);
  return b;
}

}  // namespace

TEST_CASE("a snapshot is written on a thread of its own, and can be read") {
  scratch const dir;
  auto const layout = odd_layout();
  edl::ledger one, two;
  one.set_closed(0, 0, 5);
  two.set_closed(0, 3, 9);
  full_snapshot all{.variables = {50, counting(149, 1)},
                    .slots = counting(2 * 144, 1000),
                    .slot_stride = 144,
                    .slot_names = {"m", "v"},
                    .elements = {0, 149},
                    .parameters = 139,
                    .segments = {{{0, 64}, 50, one}, {{64, 149}, 51, two}}};
  CHECK(all.version() == 50);
  edl::ledger both;
  both.set_closed(0, 3, 5);
  CHECK(all.ledger() == both);
  CHECK(full_snapshot{}.ledger() == edl::ledger{});

  auto const path = edl::checkpoint::checkpoint_path(dir.path(), 50);
  edl::checkpoint::begin_checkpoint(path);
  edl::checkpoint::manifest contents{.version = 50, .layout = edl::checkpoint::layout_digest(layout)};
  std::thread([full = std::move(all), &contents, &path, &layout] {
    contents.files = write_snapshot(full, path, layout, {});
  }).join();
  CHECK(contents.files[0].ledger == both);
  CHECK(contents.files[0].version == 50);
  edl::checkpoint::commit_checkpoint(path, contents);
  CHECK(edl::checkpoint::newest_valid(dir.path()) == path);

  std::vector<float> variables(149), m(139), v(139);
  std::vector<std::span<float>> const slots{m, v};
  auto const segments =
      edl::checkpoint::read_range(path, layout, 0, variables, std::vector<std::string>{"m", "v"}, slots);
  CHECK(segments == std::vector<edl::checkpoint::segment>{{{0, 64}, 50, one}, {{64, 149}, 51, two}});
  CHECK(variables.back() == 149);
  CHECK(m.front() == 1000);
  CHECK(v.front() == 1144);
  CHECK(v.back() == 1144 + 138);
}

}  // namespace snapshot_test

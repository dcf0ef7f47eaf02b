// SPDX-License-Identifier: Apache-2.0
#include "edl/job/ps/table_rows.hpp"

#include <doctest/doctest.h>

#include "edl/compute/sparse/hash_slot.hpp"
#include "job/ps/small_store.hpp"

namespace table_rows_test {

using namespace small_store;

namespace {

edl::element_range const all{0, edl::sparse::hash_slots}, low{0, 2048}, high{2048, 4096};

table_rows make(bool watches = false) {
  static auto const layout = [] {
    auto l = small_layout();
    l.tables = {{"words", 1}};
    return l;
  }();
  return table_rows({.layout = layout,
                     .slots = all,
                     .tables = {{.width = 1, .initial = edl::nn::constant{0}, .watches_memory = watches}},
                     .rule = adding,
                     .when = at_once});
}

using ids = std::vector<std::uint64_t>;

/// The first id of these hash slots.
std::uint64_t id_in(edl::element_range slots) {
  for (std::uint64_t id = 0;; ++id)
    if (std::size_t const s = edl::sparse::id_hash(id).slot(); s >= slots.first && s < slots.last) return id;
}

float weight(table_rows const& of, std::uint64_t id) {
  float w = 0;
  of.pull(0, {&id, 1}, {&w, 1});
  return w;
}

ids const both{id_in(low), id_in(high)};
std::vector<float> const slopes{1, 2};  // of both

}  // namespace

TEST_CASE("a step of some hash slots changes their rows alone") {
  auto rows = make();
  edl::sparse::row_gradients const g{both, slopes};
  rows.step(all, {&g, 1}, 1, 0);
  rows.step(high, {&g, 1}, 0.5f, 1);
  CHECK(weight(rows, both[0]) == 1);
  CHECK(weight(rows, both[1]) == 3);
}

TEST_CASE("who holds some hash slots has their rows, and checks for all that are counted") {
  auto rows = make();
  rows.set(0, both, std::vector<float>{5, 6});
  CHECK(rows.table(0).size() == 2);
  auto const old = rows.hold(low, rows.of(low));
  CHECK(old.size() == 1);
  CHECK(rows.slots() == low);
  CHECK(rows.counted() == all);
  CHECK(rows.table(0).size() == 1);
  CHECK(rows.has_all(ids{both[0]}));
  CHECK_FALSE(rows.has_all(both));
  CHECK(weight(rows, both[0]) == 5);
  std::string why;
  auto const note = [&](std::string const& what) { why = what; };
  edl::sparse::row_gradients const g{both, slopes}, narrow{both, std::span(slopes).first(1)};
  rows.check({&g, 1}, note);
  CHECK(why.empty());
  rows.check({&narrow, 1}, note);
  CHECK(contains(why, "1 gradients for 2 rows of table 0"));
}

TEST_CASE("a snapshot keeps its rows, and taking other tables begins a new chain of what is written") {
  auto rows = make();
  std::uint64_t const id = id_in(low);
  rows.set(0, {&id, 1}, std::vector<float>{5});
  edl::ps::full_snapshot before, after;
  rows.snapshot_into(before);
  rows.take(rows.empty());
  rows.snapshot_into(after);
  CHECK(before.chain != after.chain);
  CHECK(before.tables.size() == 1);
  CHECK(rows.table(0).size() == 0);
  CHECK(rows.describe() == "table 'words': 0 rows");
}

}  // namespace table_rows_test

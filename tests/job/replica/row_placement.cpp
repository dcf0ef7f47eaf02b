// SPDX-License-Identifier: Apache-2.0
#include "edl/job/replica/row_placement.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace row_placement_test {

using edl::replica::row_placement, edl::replica::slot_set, edl::replica::slots_in;

namespace {

/// What every placement is.
void check(row_placement const& p, int members, int copies) {
  CHECK(p.groups() == (copies == 0 || members < 2 * copies ? 1 : members / copies));
  std::vector<int> size(std::size_t(p.groups()), 0);
  for (int r = 0; r < members; ++r) ++size[std::size_t(p.group_of(r))];
  auto const [least, most] = std::ranges::minmax(size);
  CHECK(most - least <= 1);
  if (p.groups() > 1) CHECK(least >= copies);
  std::vector<bool> first(std::size_t(p.groups()));
  for (int r = 0; r < p.groups(); ++r) first[std::size_t(p.group_of(r))] = true;
  CHECK(std::ranges::count(first, true) == p.groups());
  std::size_t at = 0;
  for (int g = 0; g < p.groups(); ++g) {
    for (int r = 0; r < members; ++r) CHECK(p.group_of(p.source(g, r)) == g);
    CHECK(p.slots_of(g).first == at);
    at = p.slots_of(g).last;
  }
  CHECK(at == edl::sparse::hash_slots);
}

std::vector<slot_set> shares(row_placement const& p, int members) {
  std::vector<slot_set> all;
  for (int r = 0; r < members; ++r) all.push_back(slots_in(p.slots_of(p.group_of(r))));
  return all;
}

}  // namespace

TEST_CASE("every member has the rows of one group, and every group enough members") {
  for (int members = 1; members <= 24; ++members)
    for (int copies = 0; copies <= 5; ++copies) {
      CAPTURE(members);
      CAPTURE(copies);
      row_placement const fresh(std::vector<slot_set>(std::size_t(members)), copies);
      check(fresh, members, copies);
      for (int r = 0; r < members; ++r) CHECK(fresh.group_of(r) == r % fresh.groups());
      check({std::vector<slot_set>(std::size_t(members), slot_set().set()), copies}, members, copies);
    }
}

TEST_CASE("members keep their rows, whatever rank they have now, and who comes takes a lost one's place") {
  row_placement const before(std::vector<slot_set>(8), 2);
  for (std::size_t lost = 0; lost < 8; ++lost) {
    CAPTURE(lost);
    auto has = shares(before, 8);
    has.erase(has.begin() + std::ptrdiff_t(lost));
    has.emplace_back();
    row_placement const after(has, 2);
    check(after, 8, 2);
    int moved = 0;
    for (int r = 0; r < 7; ++r) moved += after.group_of(r) != before.group_of(r < int(lost) ? r : r + 1);
    // The first four have to have all rows.
    CHECK(moved == (lost > 0 && lost < 4 ? 1 : 0));
    if (lost >= 4) CHECK(after.group_of(7) == before.group_of(int(lost)));
  }
}

TEST_CASE("whatever members have, and however many come and go, all groups are served") {
  row_placement const before(std::vector<slot_set>(12), 3);
  for (int left = 1; left <= 12; ++left)
    for (int come = 0; come <= 6; ++come) {
      auto has = shares(before, 12);
      has.resize(std::size_t(left));
      // The first members have all rows.
      if (left >= before.groups()) {
        slot_set all;
        for (slot_set const& h : has) all |= h;
        CHECK(all.all());
      }
      has.resize(std::size_t(left + come));
      for (int copies = 0; copies <= 4; ++copies) check({has, copies}, left + come, copies);
    }
}

}  // namespace row_placement_test

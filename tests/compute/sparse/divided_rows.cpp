// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/sparse/divided_rows.hpp"

#include <doctest/doctest.h>

#include "edl/compute/sparse/hash.hpp"
#include "edl/core/partition.hpp"

namespace divided_rows_test {

TEST_CASE("ids go to the part that keeps their hash slot, and their values come back to their places") {
  std::vector<edl::table_shape> const shapes{{"a", 2}, {"b", 1}};
  for (std::uint32_t parts : {1u, 3u}) {
    edl::sparse::divided_rows rows(shapes, parts);
    std::vector<std::uint64_t> ids;
    for (std::uint64_t i = 0; i < 1000; ++i) ids.push_back(i * i);
    std::vector<float> values(2000), back(2000);
    for (std::size_t i = 0; i < 2000; ++i) values[i] = float(i);
    for (int again = 0; again < 2; ++again) {
      rows.divide(0, ids);
      rows.divide(1, {});
      rows.scatter(0, values);
      std::size_t all = 0;
      for (std::uint32_t p = 0; p < parts; ++p) {
        auto const slots = edl::partition(edl::sparse::hash_slots, parts, p);
        for (std::uint64_t id : rows.ids(p, 0)) {
          std::size_t const slot = edl::sparse::id_hash(id).slot();
          CHECK(slot >= slots.first);
          CHECK(slot < slots.last);
        }
        CHECK(rows.values(p, 0).size() == 2 * rows.ids(p, 0).size());
        CHECK(rows.ids(p, 1).empty());
        all += rows.ids(p, 0).size();
      }
      CHECK(all == ids.size());
      rows.gather(0, back);
      CHECK(back == values);
    }
  }
}

}  // namespace divided_rows_test

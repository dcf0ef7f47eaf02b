// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/features/id_ranges.hpp"

#include <doctest/doctest.h>

#include "edl/compute/features/numbers.hpp"
#include "edl/compute/features/string_lookup.hpp"
#include "edl/core/error.hpp"

namespace id_ranges_test {

using namespace edl::features;

TEST_CASE("columns follow each other in one vocabulary, as ElasticDL's tutorial shows") {
  constexpr string_lookup education{{"Master", "Doctor", "Bachelor"}, 0};
  constexpr string_lookup marital{{"Divorced", "Never"}, 0};
  constexpr id_ranges ids{education, marital};
  static_assert(ids.size() == 5);
  CHECK(ids(0, education("Doctor")) == 1);
  CHECK(ids(1, marital("Divorced")) == 3);
  CHECK(ids(1, marital("Never")) == 4);
  CHECK(ids(1, marital("unknown")) == -1);
}

TEST_CASE("columns may be alike") {
  constexpr id_ranges<3> ids{round_identity{.most = 4}};
  static_assert(ids.size() == 15);
  CHECK(ids(2, 0) == 10);
}

TEST_CASE("an id that is none of its column's is refused") {
  constexpr id_ranges ids{round_identity{.most = 2}, round_identity{.most = 2}};
  CHECK(ids(1, 2) == 5);
  CHECK_THROWS_WITH_AS(ids(0, 3), "column 0 of the id ranges has ids from 0 to 2, and 3 is none of them",
                       edl::data_error);
  CHECK_THROWS_AS(ids(1, -2), edl::data_error);
}

}  // namespace id_ranges_test

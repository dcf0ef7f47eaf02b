// SPDX-License-Identifier: Apache-2.0
#include "edl/job/replica/identities.hpp"

#include <doctest/doctest.h>

#include <array>
#include <limits>

namespace identities_test {

using namespace edl::replica::detail;

TEST_CASE("an identity is what it was after a sum with zeros, however large its numbers") {
  constexpr auto most = std::numeric_limits<std::uint32_t>::max();
  for (edl::contribution const c : {edl::contribution{{{0, 0}, 0, 1}, 0, 0},
                                    edl::contribution{{{3, 70'000}, 65'535, 65'536}, 64, 1, 0.3f},
                                    edl::contribution{{{most, most - 1}, most, most}, most, most - 2}}) {
    std::array<float, floats_per_contribution> numbers{}, others{};
    write_identity(c, numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += others[i];
    auto const back = read_identity(numbers);
    REQUIRE(back);
    CHECK(back->key.task.epoch == c.key.task.epoch);
    CHECK(back->key.task.index == c.key.task.index);
    CHECK(back->key.index == c.key.index);
    CHECK(back->key.count == c.key.count);
    CHECK(back->records == c.records);
    CHECK(back->skipped == c.skipped);
    CHECK(back->rate == c.rate);
  }
}

TEST_CASE("who has written nothing has none") {
  std::array<float, floats_per_contribution> const nothing{};
  CHECK_FALSE(read_identity(nothing));
}

}  // namespace identities_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/kept_places.hpp"

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

namespace kept_places_test {

namespace {

using numbers_of_ints = std::vector<std::int32_t>;

numbers_of_ints list(std::span<std::int32_t const> of) { return {of.begin(), of.end()}; }

}  // namespace

TEST_CASE("places that count are listed in their order, and samples of more places come first") {
  std::string_view const rows[] = {"x.x..", ".....", "xxxxx", "...xx"};
  std::vector<std::int32_t> memory(edl::numbers_of_places(4, 5), -1);
  auto const found = edl::find_places(
      memory, 4, 5, [&](std::size_t sample, std::size_t place) { return rows[sample][place] == 'x'; });
  CHECK_FALSE(found.all());
  CHECK(found.places == 5);
  CHECK(list(found.counts) == numbers_of_ints{2, 0, 5, 2});
  CHECK(list(found.longest) == numbers_of_ints{2, 0, 3, 1});
  CHECK(list(found.of(0)) == numbers_of_ints{0, 2});
  CHECK(found.of(1).empty());
  CHECK(list(found.of(2)) == numbers_of_ints{0, 1, 2, 3, 4});
  CHECK(list(found.of(3)) == numbers_of_ints{3, 4});
  std::vector<std::size_t> padded;
  for (std::size_t sample = 0; sample < 4; ++sample)
    found.each_padded(sample, [&](std::size_t place) { padded.push_back(10 * sample + place); });
  CHECK(padded == std::vector<std::size_t>{1, 3, 4, 10, 11, 12, 13, 14, 30, 31, 32});

  auto const again = edl::places_in(memory, 4, 5);
  CHECK(list(again.counts) == list(found.counts));
  CHECK(list(again.of(3)) == list(found.of(3)));
}

TEST_CASE("without lists all places count") {
  CHECK(edl::kept_places{}.all());
  CHECK(edl::attention_mask{}.none());
  CHECK_FALSE(edl::attention_mask{.dropout = 0.1f}.none());
}

}  // namespace kept_places_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/job/replica/row_exchange.hpp"

#include <map>
#include <vector>

#include "edl/core/random.hpp"
#include "job/collective/members.hpp"

namespace row_exchange_test {

using edl::replica::row_exchange;
using members::connected, members::side_by_side;

namespace {

std::vector<edl::table_shape> const tables{{"words", 3}, {"users", 1}};

/// The rows of place `p`: more of them the higher it is; ids of all 64 bits.
struct rows_of_place {
  explicit rows_of_place(std::size_t p) : ids(2), gradients(2) {
    for (std::size_t t = 0; t < 2; ++t)
      for (std::size_t i = 0; i < p * 7 + t; ++i) {
        ids[t].push_back(i == 0 ? ~std::uint64_t{0} : edl::mix(p, i));
        for (int k = 0; k < tables[t].width; ++k) gradients[t].push_back(0.1f * float(i + 1) - float(k));
      }
  }

  std::vector<edl::sparse::row_gradients> views() const {
    return {{ids[0], gradients[0]}, {ids[1], gradients[1]}};
  }

  std::vector<std::vector<std::uint64_t>> ids;
  std::vector<std::vector<float>> gradients;
};

/// Exchanges twice among members; place i has rows where `present` says so.
template <class Present>
void check(int size, std::size_t fixed_places, Present present) {
  auto groups = connected(size, {});
  std::size_t const places = fixed_places > 0 ? fixed_places : std::size_t(size);
  side_by_side(size, [&](int r) {
    row_exchange rows(tables, fixed_places);
    rows.enter(size, r);
    auto const own = edl::collective::share_of(places, size, r);
    for (int turn = 0; turn < 2; ++turn) {
      for (std::size_t i = 0; i < own.count; ++i)
        if (present(own.first + i)) rows.bring(i, rows_of_place(own.first + i).views(), 2);
      auto const got = rows.exchange(*groups[std::size_t(r)]);
      std::size_t at = 0;
      for (std::size_t p = 0; p < places; ++p) {
        if (!present(p)) continue;
        rows_of_place const wanted(p);
        REQUIRE(at < got.size());
        for (std::size_t t = 0; t < 2; ++t) {
          CHECK(std::ranges::equal(got[at][t].ids, wanted.ids[t]));
          REQUIRE(got[at][t].gradients.size() == wanted.gradients[t].size());
          for (std::size_t i = 0; i < wanted.gradients[t].size(); ++i)
            CHECK(got[at][t].gradients[i] == 2 * wanted.gradients[t][i]);
        }
        ++at;
      }
      CHECK(at == got.size());
    }
  });
}

}  // namespace

TEST_CASE("every member has the rows of all places, in their order") {
  for (int const size : {1, 2, 3, 5}) check(size, 0, [](std::size_t) { return true; });
}

TEST_CASE("places are those of the step, whoever has them; some may be empty") {
  for (int const size : {1, 2, 3}) {
    check(size, 4, [](std::size_t) { return true; });
    check(size, 4, [](std::size_t p) { return p % 2 == 1; });
    check(size, 2, [](std::size_t) { return false; });
  }
}

}  // namespace row_exchange_test

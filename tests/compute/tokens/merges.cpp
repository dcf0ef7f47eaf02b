// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/tokens/merges.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "edl/core/random.hpp"

namespace merges_test {

using namespace edl::tokens;
using ids = std::vector<token_id>;

ids applied(merges const& m, ids const& word) {
  merges::workspace space;
  ids to{99};
  m.apply(word, space, to);
  return to;
}

TEST_CASE("the pair of the lowest rank goes first, of equal ones the first") {
  merges m(3);
  m.add(1, 1, {0, 10});
  m.add(10, 1, {2, 11});
  m.add(1, 2, {1, 12});
  CHECK(applied(m, {}) == ids{99});
  CHECK(applied(m, {1}) == ids{99, 1});
  CHECK(applied(m, {1, 1, 1}) == ids{99, 11});
  CHECK(applied(m, {1, 1, 1, 1}) == ids{99, 10, 10});
  CHECK(applied(m, {1, 1, 2}) == ids{99, 10, 2});
  CHECK(applied(m, {2, 1, 2, 1}) == ids{99, 2, 12, 1});
  m.add(1, 1, {3, 13});
  CHECK(applied(m, {1, 1, 2}) == ids{99, 1, 12});
}

TEST_CASE("words become what plain search gives, long ones, too") {
  std::map<std::pair<token_id, token_id>, merges::result> all;
  merges m(40);
  constexpr edl::random_stream random{7};
  for (std::uint32_t i = 0; i < 40; ++i) {
    auto const left = token_id(random.below(4 + i, 2 * i)), right = token_id(random.below(4 + i, 2 * i + 1));
    if (all.count({left, right})) continue;
    all[{left, right}] = {i, 4 + i};
    m.add(left, right, {i, 4 + i});
  }
  for (std::uint32_t n = 0; n < 300; ++n) {
    ids word;
    for (std::uint32_t k = 0; k < n % 60; ++k) word.push_back(token_id(random.below(4, 1000 + 60 * n + k)));
    ids plain = word;
    for (;;) {
      std::size_t best = plain.size();
      std::uint32_t rank = 1000;
      for (std::size_t k = 0; k + 1 < plain.size(); ++k)
        if (auto const it = all.find({plain[k], plain[k + 1]}); it != all.end() && it->second.rank < rank)
          rank = it->second.rank, best = k;
      if (best == plain.size()) break;
      plain[best] = all[{plain[best], plain[best + 1]}].id;
      plain.erase(plain.begin() + std::ptrdiff_t(best) + 1);
    }
    plain.insert(plain.begin(), 99);
    CHECK(applied(m, word) == plain);
  }
  merges pairs(1);
  pairs.add(1, 1, {0, 2});
  CHECK(applied(pairs, ids(200'001, 1)).size() == 100'002);
}

}  // namespace merges_test

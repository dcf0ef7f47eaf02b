// SPDX-License-Identifier: Apache-2.0
#include "edl/job/collective/group.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include "edl/core/bfloat16.hpp"
#include "edl/core/random.hpp"
#include "edl/job/collective/topology.hpp"
#include "job/collective/members.hpp"

namespace group_test {

namespace {

using edl::collective::broken;
using edl::collective::group;
using edl::collective::group_options;
using members::connected, members::linked, members::side_by_side;

/// What sums go over: the sockets, or memory.
constexpr group_options over_sockets{.shared_memory = false}, in_memory{};

struct way {
  group_options options;
  int size;
};

std::vector<way> every(std::initializer_list<int> sizes) {
  std::vector<way> all;
  for (int const size : sizes)
    for (auto const& o : {over_sockets, in_memory}) all.push_back({o, size});
  return all;
}

std::vector<float> draw(std::size_t n, int rank) {
  edl::random_stream const random(std::uint64_t(rank) + 1, n);
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = float(int(random.below(2001, i)) - 1000) / 64;
  return v;
}

}  // namespace

TEST_CASE("partners agree, and are few") {
  using edl::collective::partners;
  for (int size = 1; size < 70; ++size)
    for (int r = 0; r < size; ++r) {
      auto const mine = partners(r, size);
      CHECK(mine.size() <= 9);
      for (int other : mine) {
        CHECK(other != r);
        auto const theirs = partners(other, size);
        CHECK(std::find(theirs.begin(), theirs.end(), r) != theirs.end());
      }
    }
}

TEST_CASE("sums are those of all members, with the same bits everywhere, for any size and number") {
  for (auto const& [o, size] : every({1, 2, 3, 4, 5, 7, 8})) {
    auto const groups = connected(size, o);
    CAPTURE(o.shared_memory);
    for (std::size_t const n :
         {std::size_t(0), std::size_t(1), std::size_t(3), std::size_t(15), std::size_t(100),
          std::size_t(4096), std::size_t(4097), std::size_t(70'001), std::size_t(500'000)}) {
      CAPTURE(size);
      CAPTURE(n);
      std::vector<std::vector<float>> mine;
      std::vector<double> sums(n);
      for (int r = 0; r < size; ++r) {
        mine.push_back(draw(n, r));
        for (std::size_t i = 0; i < n; ++i) sums[i] += double(mine.back()[i]);
      }
      side_by_side(size, [&](int r) { groups[std::size_t(r)]->all_reduce(mine[std::size_t(r)]); });
      // Multiples of 1/64: every order of the sum is exact.
      bool exact = true;
      for (int r = 0; r < size; ++r)
        for (std::size_t i = 0; i < n; ++i) exact = exact && double(mine[std::size_t(r)][i]) == sums[i];
      CHECK(exact);
    }
    side_by_side(size, [&](int r) { groups[std::size_t(r)]->barrier(); });
  }
}

TEST_CASE("sums of bfloat16 are near, and the same bits everywhere") {
  for (auto const& [o, size] : every({2, 3, 4})) {
    auto const groups = connected(size, o);
    CAPTURE(o.shared_memory);
    for (std::size_t const n : {std::size_t(2), std::size_t(1000), std::size_t(300'001)}) {
      std::vector<std::vector<float>> mine;
      std::vector<double> sums(n), sizes(n);
      for (int r = 0; r < size; ++r) {
        mine.push_back(draw(n, r));
        for (std::size_t i = 0; i < n; ++i) {
          sums[i] += double(mine.back()[i]);
          sizes[i] += std::abs(double(mine.back()[i]));
        }
      }
      side_by_side(size, [&](int r) { groups[std::size_t(r)]->all_reduce_bfloat16(mine[std::size_t(r)]); });
      bool near = true;
      for (std::size_t i = 0; i < n; ++i)
        near = near && std::abs(double(mine[0][i]) - sums[i]) <= sizes[i] / 128 * size + 1e-6;
      CHECK(near);
      for (int r = 1; r < size; ++r)
        CHECK(std::memcmp(mine[0].data(), mine[std::size_t(r)].data(), n * sizeof(float)) == 0);
      bool whole = true;  // nothing is left that does not travel
      for (float const x : mine[0]) whole = whole && edl::from_bfloat16(edl::to_bfloat16(x)) == x;
      CHECK(whole);
    }
  }
}

namespace {

/// Numbers whose sum depends on its order.
std::vector<float> uneven(std::size_t n, std::size_t term) {
  edl::random_stream const random(term + 1, n);
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = (float(int(random.below(2'000'001, i)) - 1'000'000) / 999'983) *
           float(std::uint64_t(1) << random.below(12, n + i));
  return v;
}

}  // namespace

TEST_CASE("a sum in order has the same bits, however its terms are spread and over what it goes") {
  for (std::size_t const n :
       {std::size_t(0), std::size_t(1), std::size_t(77), std::size_t(5'000), std::size_t(150'000)})
    for (std::size_t const all : {1u, 2u, 3u, 4u, 7u})
      for (bool const bfloat16 : {false, true}) {
        std::vector<std::vector<float>> terms;
        for (std::size_t t = 0; t < all; ++t) terms.push_back(uneven(n, t));
        auto const rounded = [&](float x) { return bfloat16 ? edl::from_bfloat16(edl::to_bfloat16(x)) : x; };
        std::vector<float> expected(n), backwards(n);
        for (std::size_t i = 0; i < n; ++i) {
          expected[i] = rounded(terms[0][i]);
          for (std::size_t t = 1; t < all; ++t) expected[i] = rounded(expected[i] + rounded(terms[t][i]));
          backwards[i] = rounded(terms[all - 1][i]);
          for (std::size_t t = all - 1; t-- > 0;) backwards[i] = rounded(backwards[i] + rounded(terms[t][i]));
        }
        if (n > 100 && all > 2) CHECK(expected != backwards);
        for (auto const& [o, size] : every({1, 2, 3, 4, 5})) {
          CAPTURE(n);
          CAPTURE(all);
          CAPTURE(bfloat16);
          CAPTURE(size);
          CAPTURE(o.shared_memory);
          auto const groups = connected(size, o);
          std::vector<int> right(std::size_t(size), 0);
          // Twice, the second time with the sum in the first term's place.
          side_by_side(size, [&](int r) {
            auto const [first, count] = edl::collective::share_of(all, size, r);
            std::vector<std::vector<float>> own(terms.begin() + std::ptrdiff_t(first),
                                                terms.begin() + std::ptrdiff_t(first + count));
            std::vector<edl::view<float>> const views(own.begin(), own.end());
            std::vector<float> apart(n, -1);
            std::span<float> const within = own.empty() ? std::span(apart) : std::span(own[0]);
            groups[std::size_t(r)]->all_reduce_in_order(views, all, apart, bfloat16);
            right[std::size_t(r)] += apart == expected;
            groups[std::size_t(r)]->all_reduce_in_order(views, all, within, bfloat16);
            right[std::size_t(r)] += std::ranges::equal(within, expected);
          });
          CHECK(right == std::vector<int>(std::size_t(size), 2));
        }
      }
}

TEST_CASE("a share of a row: all of it, cut evenly, the first first") {
  using edl::collective::share_of;
  for (int size = 1; size < 9; ++size)
    for (std::size_t all = 0; all < 20; ++all) {
      std::size_t next = 0;
      for (int r = 0; r < size; ++r) {
        auto const s = share_of(all, size, r);
        CHECK(s.first == next);
        CHECK(s.count >= all / std::size_t(size));
        CHECK(s.count <= share_of(all, size, 0).count);
        CHECK(s.count + 1 >= share_of(all, size, 0).count);
        next += s.count;
      }
      CHECK(next == all);
    }
}

TEST_CASE("more terms than shared memory has room for go over the sockets") {
  auto const groups = connected(3);
  constexpr std::size_t all = 6'000, n = 300;
  std::vector<std::vector<float>> sums(3, std::vector<float>(n));
  side_by_side(3, [&](int r) {
    std::vector<float> const one(n, 1.0f);
    std::vector<edl::view<float>> const terms(edl::collective::share_of(all, 3, r).count, one);
    groups[std::size_t(r)]->all_reduce_in_order(terms, all, sums[std::size_t(r)]);
    groups[std::size_t(r)]->all_reduce(sums[std::size_t(r)]);  // and back again
  });
  for (auto const& s : sums) CHECK(std::ranges::count(s, 3 * float(all)) == std::ptrdiff_t(n));
}

TEST_CASE("a member that is lost, or an abort, at any byte, ends the operation of all") {
  for (auto const& [n, in_order] : {std::pair(std::size_t(8), false), std::pair(std::size_t(200'000), false),
                                    std::pair(std::size_t(8), true), std::pair(std::size_t(200'000), true)})
    for (auto const& [o, size] : every({2, 3, 5})) {
      CAPTURE(n);
      CAPTURE(in_order);
      auto const sum = [members = std::size_t(size), ordered = in_order](group& g,
                                                                         std::vector<float>& values) {
        edl::view<float> const own = values;
        ordered ? g.all_reduce_in_order({&own, 1}, members, values) : g.all_reduce(values);
      };
      CAPTURE(size);
      CAPTURE(o.shared_memory);
      auto groups = connected(size, o);
      std::vector<int> ended(std::size_t(size), 0);
      side_by_side(size, [&](int r) {
        auto values = draw(n, r);
        try {
          if (r == 1) {
            // Begins, and is gone.
            std::thread gone([&] { groups[1]->abort(); });
            try {
              for (;;) sum(*groups[1], values);
            } catch (broken const& e) {
              ended[1] = e.rank() == -1;
            }
            gone.join();
            groups[1].reset();
            return;
          }
          for (;;) sum(*groups[std::size_t(r)], values);
        } catch (broken const&) {
          ended[std::size_t(r)] = 1;
          groups[std::size_t(r)]->abort();  // as everybody does, so that those who do not see it hear of it
        }
      });
      for (int const e : ended) CHECK(e == 1);
    }
}

TEST_CASE("members that do different things are told so, and a silent one is found") {
  for (bool const shared : {false, true}) {
    group_options const o{.silence = std::chrono::milliseconds(50), .shared_memory = shared};
    CAPTURE(shared);
    auto const groups = connected(2, o);
    std::vector<std::string> why(2);
    side_by_side(2, [&](int r) {
      std::vector<float> values(r ? 100'000 : 99'999);
      try {
        groups[std::size_t(r)]->all_reduce(values);
      } catch (broken const& e) {
        why[std::size_t(r)] = e.what();
      }
    });
    CHECK((why[0] + why[1]).find("sums another number of values") != std::string::npos);

    auto const others = connected(3, o);
    std::vector<float> values(10);
    CHECK_THROWS_WITH_AS(others[0]->all_reduce(values), "member 1 of 3 gives no sign of life", broken);

    // In the middle: everybody hears who it was from who finds out first.
    auto const later = connected(3, o);
    side_by_side(3, [&](int r) {
      std::vector<float> mine(10);
      later[std::size_t(r)]->barrier();
      if (r == 2) return;
      try {
        later[std::size_t(r)]->all_reduce(mine);
      } catch (broken const& e) {
        why[std::size_t(r)] = e.what();
      }
    });
    if (shared)
      for (auto const& text : why) CHECK(text.find("member 2 of 3") == 0);
    for (auto const& text : why) CHECK(text != "");
  }
}

TEST_CASE("who has nothing to do hears that others have begun, whoever begins") {
  for (auto const& [o, size] : every({2, 3, 5, 6}))
    for (std::size_t const n : {std::size_t(4), std::size_t(50'000)})
      for (int first = 0; first < size; ++first) {
        CAPTURE(o.shared_memory);
        CAPTURE(size);
        CAPTURE(n);
        CAPTURE(first);
        auto const groups = connected(size, o);
        CHECK_FALSE(groups[1]->begun(std::chrono::milliseconds(1)));
        for (int again = 0; again < 3; ++again)
          side_by_side(size, [&](int r) {
            std::vector<float> values(n, 1.0f);
            group& g = *groups[std::size_t(r)];
            if (r != first)
              while (!g.begun(std::chrono::milliseconds(1000))) continue;
            edl::view<float> const own = values;
            if (again == 2)
              g.all_reduce_in_order({&own, 1}, std::size_t(size), values);
            else
              g.all_reduce(values);
            CHECK(values[n - 1] == float(size));
          });
      }
}

TEST_CASE("who has done its part may leave while others still work") {
  for (auto const& [o, size] : every({2, 3, 6}))
    for (std::size_t const n : {std::size_t(0), std::size_t(1000), std::size_t(300'000)}) {
      CAPTURE(o.shared_memory);
      CAPTURE(size);
      CAPTURE(n);
      std::vector<int> well(std::size_t(size), 0);
      for (int again = 0; again < 5; ++again) {
        auto groups = connected(size, o);
        side_by_side(size, [&](int r) {
          std::vector<float> values(n, 1.0f);
          groups[std::size_t(r)]->all_reduce(values);
          groups[std::size_t(r)].reset();
          well[std::size_t(r)] += std::count(values.begin(), values.end(), float(size)) == std::ptrdiff_t(n);
        });
      }
      for (int const w : well) CHECK(w == 5);
    }
}

TEST_CASE("an abort wakes who sleeps, and is heard of by who does not work") {
  for (auto const& [o, size] : every({2, 5}))
    for (bool const formed : {false, true}) {
      CAPTURE(o.shared_memory);
      CAPTURE(formed);
      auto const groups = connected(size, o);
      if (formed) side_by_side(size, [&](int r) { groups[std::size_t(r)]->barrier(); });
      std::thread later([&] {
        CHECK(groups[1]->begun(std::chrono::minutes(1)));  // the first one is at its barrier
        groups[0]->abort();
      });
      // Of five, the first one turns to the second, which sees that, when it has heard of the last.
      std::thread last([&] {
        if (size > 2) CHECK_THROWS_AS(groups.back()->barrier(), broken);
      });
      CHECK_THROWS_WITH_AS(groups[0]->barrier(), "the collective was aborted", broken);
      later.join();
      last.join();
      CHECK(groups[1]->begun(std::chrono::minutes(1)));
      try {
        groups[1]->barrier();
        CHECK(false);
      } catch (broken const& e) {
        CHECK(e.rank() == 0);
      }
    }
}

TEST_CASE("a member that is killed in the middle of a sum is found and named by all others") {
  for (int const size : {2, 4, 5}) {
    int const victim = 3 % size;
    auto all = linked(size);
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    std::vector<pid_t> members;
    for (int r = 0; r < size; ++r) {
      pid_t const id = ::fork();
      REQUIRE(id >= 0);
      members.push_back(id);
      if (id > 0) continue;
      // Without the others' ends: those must close with their members.
      auto mine = std::move(all[std::size_t(r)]);
      all.clear();
      group g(r, std::move(mine), {.silence = std::chrono::minutes(10)});
      std::vector<float> values(1'000'000);
      try {
        g.all_reduce(values);
        if (r == victim && ::write(ready[1], "", 1) != 1) ::_exit(2);
        for (;;) g.all_reduce(values);
      } catch (broken const& e) {
        ::_exit(e.rank() == victim ? 0 : 1);
      }
    }
    all.clear();
    char byte = 0;
    CHECK(::read(ready[0], &byte, 1) == 1);
    ::close(ready[0]);
    ::close(ready[1]);
    ::kill(members[std::size_t(victim)], SIGKILL);
    for (int r = 0; r < size; ++r) {
      int status = 0;
      CHECK(::waitpid(members[std::size_t(r)], &status, 0) == members[std::size_t(r)]);
      CAPTURE(size);
      CAPTURE(r);
      if (r == victim)
        CHECK(WIFSIGNALED(status));
      else
        CHECK(status == 0);
    }
  }
}

TEST_CASE("however many members, and whoever of them begins: the others hear of it and take part") {
  for (int size : {2, 3, 4, 5, 6, 7})
    for (std::size_t count : {0u, 100u, 20'000u})
      for (int first = 0; first < size; ++first) {
        CAPTURE(size);
        CAPTURE(count);
        CAPTURE(first);
        auto const groups = connected(size);
        std::atomic<int> right{0};
        side_by_side(size, [&](int r) {
          group& g = *groups[std::size_t(r)];
          std::vector<float> values(count, r == first ? 3.0f : 0.0f);
          if (r != first)
            while (!g.begun(std::chrono::milliseconds(1000))) continue;
          g.all_reduce(values);
          right += std::all_of(values.begin(), values.end(), [](float x) { return x == 3; });
        });
        CHECK(right == size);
      }
}

TEST_CASE("who watches hears of a loss without an operation, also behind what was sent before it") {
  for (auto const& how : {over_sockets, in_memory}) {
    CAPTURE(how.shared_memory);
    auto groups = connected(2, how);
    for (auto& g : groups) CHECK_NOTHROW(g->watch());
    side_by_side(2, [&](int r) { groups[std::size_t(r)]->barrier(); });
    for (auto& g : groups) CHECK_NOTHROW(g->watch());
    groups[1]->abort();
    CHECK_THROWS_AS(groups[1]->watch(), broken);
    CHECK_THROWS_AS(groups[0]->watch(), broken);
  }
  auto sockets = linked(2);
  int const other = sockets[1][0].get();
  group waits(0, std::move(sockets[0]), over_sockets);
  CHECK(::send(other, "early", 5, 0) == 5);
  CHECK_NOTHROW(waits.watch());
  sockets[1][0] = {};
  CHECK_THROWS_AS(waits.watch(), broken);
}

}  // namespace group_test

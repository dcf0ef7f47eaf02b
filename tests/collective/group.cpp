#include "edl/collective/group.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include "edl/collective/topology.hpp"
#include "edl/core/bfloat16.hpp"
#include "edl/core/random.hpp"

namespace {

using edl::collective::broken;
using edl::collective::group;
using edl::collective::group_options;

/// Groups of `size` members in this process, joined by socket pairs.
std::vector<std::unique_ptr<group>> connected(int size, group_options o = {}) {
  std::vector<std::vector<edl::net::descriptor>> links;
  for (int r = 0; r < size; ++r) links.emplace_back(std::size_t(size));
  for (int a = 0; a < size; ++a)
    for (int b : edl::collective::partners(a, size)) {
      if (b < a) continue;
      int pair[2];
      REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
      links[std::size_t(a)][std::size_t(b)] = edl::net::descriptor(pair[0]);
      links[std::size_t(b)][std::size_t(a)] = edl::net::descriptor(pair[1]);
    }
  std::vector<std::unique_ptr<group>> all;
  for (int r = 0; r < size; ++r)
    all.push_back(std::make_unique<group>(r, std::move(links[std::size_t(r)]), o));
  return all;
}

void side_by_side(int size, std::function<void(int)> const& work) {
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) threads.emplace_back([&, r] { work(r); });
  for (auto& t : threads) t.join();
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
  for (int const size : {1, 2, 3, 4, 5, 7, 8}) {
    auto const groups = connected(size);
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

TEST_CASE("halved sums are near, and the same bits everywhere") {
  for (int const size : {2, 3, 4}) {
    auto const groups = connected(size);
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
      side_by_side(size, [&](int r) { groups[std::size_t(r)]->all_reduce_halved(mine[std::size_t(r)]); });
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

TEST_CASE("a member that is lost, or an abort, at any byte, ends the operation of all") {
  for (std::size_t const n : {std::size_t(8), std::size_t(200'000)})
    for (int const size : {2, 3, 5}) {
      CAPTURE(n);
      CAPTURE(size);
      auto groups = connected(size);
      std::vector<int> ended(std::size_t(size), 0);
      side_by_side(size, [&](int r) {
        auto values = draw(n, r);
        try {
          if (r == 1) {
            // Begins, and is gone.
            std::thread gone([&] { groups[1]->abort(); });
            try {
              for (;;) groups[1]->all_reduce(values);
            } catch (broken const& e) {
              ended[1] = e.rank() == -1;
            }
            gone.join();
            groups[1].reset();
            return;
          }
          for (;;) groups[std::size_t(r)]->all_reduce(values);
        } catch (broken const&) {
          ended[std::size_t(r)] = 1;
          groups[std::size_t(r)]->abort();  // as everybody does, so that those who do not see it hear of it
        }
      });
      for (int const e : ended) CHECK(e == 1);
    }
}

TEST_CASE("members that do different things are told so, and a silent one is found") {
  auto const groups = connected(2, {.silence = std::chrono::milliseconds(50)});
  std::vector<std::string> why(2);
  side_by_side(2, [&](int r) {
    std::vector<float> values(r ? 100'000 : 99'999);
    try {
      groups[std::size_t(r)]->all_reduce(values);
    } catch (broken const& e) {
      why[std::size_t(r)] = e.what();
    }
  });
  CHECK(why[0] + why[1] != "");
  CHECK((why[0] + why[1]).find("sums another number of numbers") != std::string::npos);

  auto const others = connected(3, {.silence = std::chrono::milliseconds(50)});
  std::vector<float> values(10);
  CHECK_THROWS_WITH_AS(others[0]->all_reduce(values), "member 2 of 3 gives no sign of life", broken);
}

TEST_CASE("who has nothing to do hears that others have begun") {
  auto const groups = connected(3);
  CHECK_FALSE(groups[1]->begun(std::chrono::milliseconds(1)));
  side_by_side(3, [&](int r) {
    std::vector<float> values(50'000, 1.0f);
    group& g = *groups[std::size_t(r)];
    if (r != 0)
      while (!g.begun(std::chrono::milliseconds(1000))) continue;
    g.all_reduce(values);
    CHECK(values[49'999] == 3);
  });
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

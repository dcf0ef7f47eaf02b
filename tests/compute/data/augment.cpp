// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/augment.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace augment_test {

namespace {

/// Element (i, j, k) is 100·i + 10·j + k + 1: none is 0.
std::vector<float> picture(edl::shape s) {
  std::vector<float> all;
  for (int i = 0; i < s.height; ++i)
    for (int j = 0; j < s.width; ++j)
      for (int k = 0; k < s.channels; ++k) all.push_back(float(100 * i + 10 * j + k + 1));
  return all;
}

}  // namespace

TEST_CASE("a crop moves the picture by every offset, and zeros come in") {
  for (edl::shape const s : {edl::shape{4, 5, 2}, edl::shape{2, 2, 1}, edl::shape{1, 1, 3}}) {
    auto const before = picture(s);
    std::set<std::pair<int, int>> seen;
    for (std::uint64_t n = 0; n < 400; ++n) {
      auto after = before;
      edl::random_crop{.padding = 2}(s, after, edl::random_stream{7, n});
      // Some offset explains the whole.
      int explained = 0;
      for (int down = -2; down <= 2; ++down)
        for (int right = -2; right <= 2; ++right) {
          std::vector<float> expected;
          for (int i = 0; i < s.height; ++i)
            for (int j = 0; j < s.width; ++j)
              for (int k = 0; k < s.channels; ++k) {
                int const a = i - down, b = j - right;
                bool const inside = a >= 0 && b >= 0 && a < s.height && b < s.width;
                expected.push_back(inside ? before[std::size_t((a * s.width + b) * s.channels + k)] : 0);
              }
          if (expected == after) ++explained, seen.insert({down, right});
        }
      CHECK(explained >= 1);
    }
    CHECK(seen.size() == 25);
  }
}

TEST_CASE("every other picture is turned left to right") {
  edl::shape const s{2, 5, 3};
  auto const before = picture(s);
  int turned = 0;
  for (std::uint64_t n = 0; n < 1000; ++n) {
    auto after = before;
    edl::random_flip{}(s, after, edl::random_stream{1, n});
    if (after == before) continue;
    ++turned;
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 5; ++j)
        for (std::size_t k = 0; k < 3; ++k)
          CHECK(after[(i * 5 + j) * 3 + k] == before[(i * 5 + 4 - j) * 3 + k]);
  }
  CHECK(turned > 430);
  CHECK(turned < 570);
}

TEST_CASE("a square is cut out wherever its centre falls") {
  edl::shape const s{6, 7, 2};
  auto const before = picture(s);
  std::set<std::size_t> sizes;
  for (std::uint64_t n = 0; n < 500; ++n) {
    auto after = before;
    edl::cutout{.size = 4}(s, after, edl::random_stream{3, n});
    int top = 6, left = 7, bottom = 0, right = 0;
    std::size_t zeros = 0;
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j < 7; ++j) {
        auto const at = std::size_t((i * 7 + j) * 2);
        CHECK((after[at] == 0) == (after[at + 1] == 0));
        if (after[at] != 0) {
          CHECK(after[at] == before[at]);
          continue;
        }
        ++zeros;
        top = std::min(top, i), bottom = std::max(bottom, i + 1);
        left = std::min(left, j), right = std::max(right, j + 1);
      }
    CHECK(zeros == std::size_t((bottom - top) * (right - left)));
    CHECK(bottom - top <= 4);
    CHECK(right - left <= 4);
    sizes.insert(zeros);
  }
  CHECK(*sizes.begin() == 4);    // in a corner
  CHECK(*sizes.rbegin() == 16);  // in the middle
}

TEST_CASE("a crop whose border reflects shows the picture mirrored at its edges, which are not repeated") {
  // 1 2 3 / 4 5 6 / 7 8 9 with a border of two places, as numpy.pad(a, 2, mode="reflect") makes it.
  std::vector<float> const nine{1, 2, 3, 4, 5, 6, 7, 8, 9},
      padded{9, 8, 7, 8, 9, 8, 7, 6, 5, 4, 5, 6, 5, 4, 3, 2, 1, 2, 3, 2, 1, 6, 5, 4, 5,
             6, 5, 4, 9, 8, 7, 8, 9, 8, 7, 6, 5, 4, 5, 6, 5, 4, 3, 2, 1, 2, 3, 2, 1};
  std::set<std::pair<int, int>> seen;
  for (std::uint64_t n = 0; n < 400; ++n) {
    auto after = nine;
    edl::random_crop{.padding = 2, .border = edl::border::reflect}({3, 3, 1}, after,
                                                                   edl::random_stream{7, n});
    for (int top = 0; top < 5; ++top)
      for (int left = 0; left < 5; ++left) {
        std::vector<float> cut;
        for (int i = 0; i < 3; ++i)
          for (int j = 0; j < 3; ++j) cut.push_back(padded[std::size_t((top + i) * 7 + left + j)]);
        if (cut == after) seen.insert({top, left});
      }
  }
  CHECK(seen.size() == 25);
}

TEST_CASE("alternating flips show a picture from one side and then from the other") {
  edl::shape const s{1, 2, 1};
  int turned = 0;
  for (std::uint64_t record = 0; record < 1000; ++record) {
    edl::random_stream const own{5, record};
    bool before = false;
    for (std::uint32_t epoch = 0; epoch < 4; ++epoch) {
      std::vector<float> two{1, 2};
      edl::random_flip{.alternating = true}(s, two, {edl::random_stream{epoch, record}, own, epoch});
      bool const now = two[0] == 2;
      if (epoch > 0) CHECK(now != before);
      before = now;
      if (epoch == 0) turned += now;
    }
  }
  CHECK(turned > 430);
  CHECK(turned < 570);
}

TEST_CASE("an augmentation of one's own may take a plain stream") {
  auto const shift = [](edl::shape, std::span<float> picture, edl::random_stream const& random) {
    for (float& x : picture) x += float(random.below(3, 0));
  };
  static_assert(edl::augmentation<decltype(shift)>);
  auto const chain = edl::augment(edl::random_flip{}, shift);
  static_assert(!edl::placing_augmentation<decltype(chain)>);
  std::vector<float> one{1};
  edl::random_stream const random{3, 4};
  chain({1, 1, 1}, one, random);
  CHECK(one[0] == float(1 + random.child(1).below(3, 0)));
}

TEST_CASE("what a chain does to a picture is one placement, if its links come in that order") {
  using edl::border, edl::cutout, edl::random_crop, edl::random_flip, edl::random_jitter;
  static_assert(!edl::placing_augmentation<decltype(edl::augment(random_flip{}, random_crop{}))>);
  static_assert(!edl::placing_augmentation<decltype(edl::augment(random_crop{}, random_crop{}))>);
  static_assert(!edl::placing_augmentation<decltype(edl::augment(cutout{}, random_jitter{}))>);
  auto const agrees = [](edl::shape s, auto const& chain) {
    static_assert(edl::placing_augmentation<std::remove_cvref_t<decltype(chain)>>);
    auto const before = picture(s);
    for (std::uint64_t n = 0; n < 200; ++n) {
      edl::record_stream const random{edl::random_stream{1, n}, edl::random_stream{2, n},
                                      std::uint32_t(n % 3)};
      auto done = before, placed = before;
      chain(s, done, random);
      edl::placement how;
      chain.place(s, random, how);
      edl::place(s, before, how, placed);
      CHECK(done == placed);
    }
  };
  for (edl::shape const s :
       {edl::shape{4, 5, 2}, edl::shape{2, 2, 1}, edl::shape{1, 3, 3}, edl::shape{9, 1, 1}})
    for (border at : {border::zeros, border::reflect}) {
      agrees(s, edl::augment(random_crop{.padding = 3, .border = at}, random_flip{}, cutout{.size = 3}));
      agrees(s, edl::augment(random_crop{.padding = 1, .border = at}, random_flip{.alternating = true}));
      agrees(s, edl::augment(random_flip{}, cutout{.size = 2}));
      agrees(s, edl::augment(random_crop{.padding = 3, .border = at},
                             random_jitter{.brightness = 0.3f, .contrast = 0.2f}, cutout{.size = 2}));
    }
}

TEST_CASE("a jitter is one line for all of a picture, within its bounds") {
  constexpr edl::random_jitter jitter{.brightness = 0.5f, .contrast = 0.25f};
  float least = 9, most = 0;
  for (std::uint64_t n = 0; n < 200; ++n) {
    std::array<float, 3> now{0, 1, 2};
    jitter({1, 3, 1}, now, edl::random_stream{4, n});
    float const contrast = now[1] - now[0];
    CHECK(now[2] - now[1] == doctest::Approx(contrast));
    CHECK(std::abs(now[0]) <= 0.5f);
    CHECK(std::abs(contrast - 1) <= 0.2501f);
    least = std::min(least, contrast), most = std::max(most, contrast);
  }
  CHECK(least < 0.8f);
  CHECK(most > 1.2f);
}

TEST_CASE("a chain is a function of its stream, and its parts are not of one number") {
  constexpr auto chain =
      edl::augment(edl::random_crop{.padding = 4}, edl::random_flip{}, edl::cutout{.size = 8});
  edl::shape const s{32, 32, 3};
  auto a = picture(s), b = a, c = a;
  using edl::random_stream;
  chain(s, a, random_stream{5, 1}), chain(s, b, random_stream{5, 1}), chain(s, c, random_stream{5, 2});
  CHECK(a == b);
  CHECK(a != c);
}

}  // namespace augment_test

// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "cuda/kernels/board.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace embedding_test {

namespace {

struct table {
  int vocabulary, width;
  std::size_t n;
};

/// Ids of a vocabulary: every other is the same, few are others; and some that are none.
std::vector<float> ids_of(table const& t) {
  auto ids = numbers<float>(t.n, 4);
  auto const chance = numbers<float>(t.n, 5);
  float const most = float(t.vocabulary - 1);
  for (std::size_t i = 0; i < t.n; ++i) {
    float const share = std::abs(ids[i]) / 2;
    ids[i] = chance[i] < 0 ? std::floor(most / 2) : std::min(most, std::floor(share * float(t.vocabulary)));
  }
  if (t.n > 20) {
    ids[3] = -1;
    ids[t.n - 1] = float(t.vocabulary);
    ids[t.n / 2] = 0.5f;
    ids[t.n / 3] = std::numeric_limits<float>::quiet_NaN();
    ids[t.n / 4] = std::numeric_limits<float>::infinity();
    ids[5] = most;
    ids[6] = 0;
  }
  return ids;
}

}  // namespace

TEST_CASE("rows that ids name, and the sums of their gradients, the same bits each time") {
  in_all_ways([](bool half) {
    edl::basic_cpu<double> cpu;
    for (table const t : {table{1, 1, 1}, table{7, 4, 100}, table{300, 3, 33}, table{255, 64, 300},
                          table{256, 8, 64}, table{65536, 1, 200}, table{5, 12, 1100}}) {
      CAPTURE(t.vocabulary);
      CAPTURE(t.width);
      CAPTURE(t.n);
      gpu g(half);
      edl::embedding_geometry const e{t.vocabulary, t.width, 1};
      auto const width = std::size_t(t.width);
      std::size_t const size = std::size_t(t.vocabulary) * width, all = t.n * width;
      auto const ids = ids_of(t);
      auto const rows = g.draw<float>(size, 1);
      auto const dy = g.draw<double>(all, 2);
      std::vector<double> sums(size);
      cpu.embedding_backward(e, int(t.n), std::vector<double>(ids.begin(), ids.end()), dy, {}, sums);
      for (std::size_t const before : {0, 1}) {  // aligned or not
        float const *const id = g.put(ids, before), *const from = g.put(rows, before);
        void* const y = g.activations(all, before);
        kernels::embedding_forward(g.q, e, t.n, id, from, y);
        auto const shown = g.get_activations(y, all);
        bool right = true;
        for (std::size_t i = 0; i < all; ++i) {
          float const of = ids[i / width];
          right = right &&
                  (e.has(of) ? shown[i] == rows[std::size_t(of) * width + i % width] : std::isnan(shown[i]));
        }
        CHECK(right);

        void *const slope = g.put_activations(dy, before), *const dx = g.activations(t.n, before);
        std::vector<float> first;
        for (int const times : {1, 2}) {
          float* const to = g.room<float>(size, before);
          float* const scratch = g.room<float>(kernels::embedding_scratch(e, t.n));
          kernels::embedding_backward(g.q, e, t.n, id, slope, times == 1 ? dx : nullptr, to, scratch);
          auto const got = g.get(to, size);
          if (times == 1) CHECK(close(got, sums, false));
          if (times == 2) CHECK(got == first);
          first = got;
        }
        CHECK(g.get_activations(dx, t.n) == std::vector<float>(t.n));
      }
    }
  });
}

TEST_CASE("sums do not depend on how threads follow each other, and one id that stands everywhere is a sum") {
  std::size_t const n = 1500, width = 5;
  std::vector<std::vector<float>> got;
  for (bool const backwards : {false, true}) {
    edl::cuda_double::reverse(backwards);
    gpu g;
    edl::embedding_geometry const e{300, int(width), 1};
    auto const dy = g.draw<float>(n * width, 1);
    float* const to = g.room<float>(300 * width);
    kernels::embedding_backward(g.q, e, n, g.put(std::vector<float>(n, 299)), g.put(dy), nullptr, to,
                                g.room<float>(kernels::embedding_scratch(e, n)));
    got.push_back(g.get(to, 300 * width));
    std::vector<double> sums(width);
    for (std::size_t i = 0; i < dy.size(); ++i) sums[i % width] += double(dy[i]);
    CHECK(close(std::vector<float>(got.back().end() - std::ptrdiff_t(width), got.back().end()), sums, false,
                1e-5, 1));
    CHECK(std::all_of(got.back().begin(), got.back().end() - std::ptrdiff_t(width),
                      [](float x) { return x == 0; }));
  }
  edl::cuda_double::reverse(false);
  CHECK(got[0] == got[1]);
}

TEST_CASE("sums of rows by lists: of none, of one, of many") {
  in_all_ways([](bool half) {
    for (std::size_t const width : {1, 5, 32, 130})
      for (bool const exact : {false, true})
        for (int const processors : {1, 132}) {
          CAPTURE(width);
          CAPTURE(exact);
          gpu g(half, processors);
          constexpr std::size_t results = 700;
          auto const x = exact ? numbers<float>(90 * width, 1) : g.draw<float>(90 * width, 1);
          std::vector<unsigned> at, first, from;
          std::vector<float> weights;
          std::vector<double> wanted(results * (width + 1), -1);
          for (std::size_t i = 0; i < results; ++i) {
            at.push_back(unsigned((results - 1 - i) * (width + 1)));
            first.push_back(unsigned(from.size()));
            std::fill_n(wanted.begin() + at.back(), width, 0.0);
            for (std::size_t n = i == 7 ? 200 : i % 4; n > 0; --n) {
              from.push_back(unsigned((n * 31 + i) % 90 * width));
              weights.push_back(float(int(n) - 2));
              for (std::size_t k = 0; k < width; ++k)
                wanted[at.back() + k] += double(weights.back()) * double(x[from.back() + k]);
            }
          }
          first.push_back(unsigned(from.size()));
          float* const to = g.put(std::vector<float>(wanted.size(), -1));
          auto q = g.q;
          if (exact) q.half = false;
          kernels::add_rows(
              q, {results, from.size(), width, g.put(at), g.put(first), g.put(from), g.put(weights)},
              exact ? g.put(x) : g.put_activations(x), to);
          CHECK(close(g.get(to, wanted.size()), wanted, false));
        }
  });
}

}  // namespace embedding_test

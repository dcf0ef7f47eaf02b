// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/decoding.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
#include "edl/core/error.hpp"

namespace decoding_test {

namespace nn = edl::nn;
using fault = nn::decoding_fault;
using wide_cpu = edl::basic_cpu<double>;

namespace {

constexpr int length = 24, vocabulary = 11, width = 12;

constexpr auto start = nn::ids{.count = length};
constexpr auto words = nn::embedding{.vocabulary = vocabulary, .width = width};
constexpr auto each(int units) { return nn::dense{.units = units, .each_place = true}; }
constexpr auto network_with(auto positions, bool rotary, auto norm) {
  return nn::sequential(
      start, words, positions,
      nn::repeat<2>(nn::sequential(
          nn::residual(nn::sequential(norm, nn::attention{.heads = 6,
                                                          .key_value_heads = rotary ? 2 : 0,
                                                          .causal = true,
                                                          .rotary = rotary,
                                                          .interleaved = rotary,
                                                          .window = rotary ? 7 : 0,
                                                          .softcap = rotary ? 3.0f : 0,
                                                          .qk_norm = rotary})),
          nn::residual(nn::sequential(norm, each(20), nn::silu{}, each(width), nn::dropout{.rate = 0.3f})))),
      norm, each(vocabulary));
}
constexpr auto learned = network_with(nn::positions{.most = length}, false, nn::layer_norm{});
constexpr auto waves = network_with(nn::sinusoidal_positions{}, false, nn::rms_norm{});
constexpr auto turned = network_with(nn::identity{}, true, nn::rms_norm{});

/// Feeds two sequences to a decoder a few places at a time, in turns, and compares with whole passes.
template <auto const& Net>
void check_against_whole() {
  using whole = edl::model<Net, wide_cpu>;
  whole m({.max_batch = 2, .seed = 5});
  std::vector<double> x(2 * length);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = double(i * i * 7 % 31 % vocabulary);
  auto const y = m.forward(x, 2, edl::mode::prediction);
  std::vector<double> const expected(y.begin(), y.end());
  nn::decoding_model<Net, wide_cpu> d({}, {.rows = 7, .sequences = 3}, {}, m.variables());
  int read[2]{};
  int const as[2]{2, 0};
  double worst = 0;
  for (int pass = 0; read[0] < length || read[1] < length; ++pass) {
    std::vector<std::int32_t> ids;
    std::vector<edl::sequence_place> rows;
    for (int s = 0; s < 2; ++s)
      for (int n = (pass + 2 * s) % 4; n > 0 && read[s] < length; --n, ++read[s]) {
        ids.push_back(std::int32_t(x[std::size_t(s * length + read[s])]));
        rows.push_back({as[s], read[s]});
      }
    if (rows.empty()) continue;
    auto const out = d(ids, rows);
    REQUIRE(out.size() == rows.size() * vocabulary);
    for (std::size_t row = 0; row < rows.size(); ++row)
      for (std::size_t v = 0; v < vocabulary; ++v) {
        std::size_t const s = rows[row].sequence == as[0] ? 0 : 1;
        std::size_t const at = (s * length + std::size_t(rows[row].place)) * vocabulary + v;
        worst = std::max(worst, std::abs(out[row * vocabulary + v] - expected[at]));
      }
  }
  CHECK(worst < 1e-12);
}

constexpr auto graph = nn::graph(start, [](auto x) {
  auto const h = x | nn::embedding{.vocabulary = vocabulary, .width = width};
  auto const seen = h | nn::attention{.heads = 3, .causal = true};
  return (h + seen) | each(vocabulary);
});

}  // namespace

TEST_CASE("a place and its cache give what the whole sequence gives") {
  check_against_whole<learned>();
  check_against_whole<waves>();
  check_against_whole<turned>();
  check_against_whole<graph>();
}

TEST_CASE("networks that cannot decode say why") {
  static_assert(nn::fault_of_decoding(learned).what == fault::none);
  static constexpr auto numbers = nn::sequential(nn::features{.count = 3}, nn::dense{.units = 2});
  static_assert(nn::fault_of_decoding(numbers).what == fault::not_of_ids);
  static constexpr auto one_class =
      nn::sequential(start, words, nn::global_average_pool{}, nn::dense{.units = 2});
  static_assert(nn::fault_of_decoding(one_class).what == fault::looks_elsewhere);
  static constexpr auto other_ids = nn::sequential(start, words, each(vocabulary + 1));
  static_assert(nn::fault_of_decoding(other_ids).what == fault::not_next_ids);
  static constexpr auto both_ways = nn::sequential(start, words, nn::attention{.heads = 3}, each(vocabulary));
  static_assert(nn::fault_of_decoding(both_ways).layer == "attention");
  static constexpr auto recurrent = nn::sequential(start, words, nn::lstm{.units = 4}, each(vocabulary));
  static_assert(nn::fault_of_decoding(recurrent).layer == "lstm");
  static constexpr auto short_rows = nn::sequential(start, words, nn::positions{}, each(vocabulary));
  static_assert(nn::fault_of_decoding(short_rows).what == fault::sizes_of_variables);
}

TEST_CASE("rows out of range are refused, and change nothing") {
  edl::model<learned, wide_cpu> m({.max_batch = 1, .seed = 5});
  nn::decoding_model<learned, wide_cpu> d({}, {.rows = 2, .sequences = 1}, {}, m.variables());
  std::vector<std::int32_t> const ids{1};
  auto const first = [&] {
    auto const y = d(ids, std::vector<edl::sequence_place>{{0, 0}});
    return std::vector<double>(y.begin(), y.end());
  };
  auto const before = first();
  for (edl::sequence_place const wrong : {edl::sequence_place{0, length}, {0, -1}, {1, 0}, {-1, 0}})
    CHECK_THROWS_AS(d(ids, std::vector{wrong}), edl::error);
  for (std::int32_t const id : {-1, vocabulary})
    CHECK_THROWS_AS(d(std::vector{id}, std::vector<edl::sequence_place>{{0, 0}}), edl::error);
  CHECK_THROWS_AS(d({}, {}), edl::error);
  CHECK_THROWS_AS(
      d(std::vector<std::int32_t>{1, 2, 3}, std::vector<edl::sequence_place>{{0, 0}, {0, 1}, {0, 2}}),
      edl::error);
  CHECK(first() == before);
}

}  // namespace decoding_test

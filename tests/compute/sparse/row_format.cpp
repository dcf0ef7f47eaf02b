// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/sparse/row_format.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace row_format_test {

using edl::nn::row_values;
using edl::sparse::row;
using edl::sparse::row_format;
using edl::sparse::row_header;

namespace {

/// A row of its own.
struct one_row {
  explicit one_row(row_format const& f) : memory(4 + f.memory()) {
    header() = {.id = 3, .last_use = 0, .uses = 1};
  }
  row_header& header() { return *reinterpret_cast<row_header*>(memory.data()); }
  row at() { return {&header()}; }

  std::vector<float> memory;
};

}  // namespace

TEST_CASE("values come back as they were: float32 to the bit, bfloat16 to the nearest") {
  for (auto const kind : {row_values::float32, row_values::bfloat16})
    for (std::size_t const width : {std::size_t{1}, std::size_t{3}, std::size_t{16}}) {
      row_format const f(width, 2, kind);
      CHECK(f.values() == 3 * width);
      CHECK(f.memory() == (kind == row_values::float32 ? 3 * width : (width + 1) / 2 + 2 * width));
      one_row r(f);
      std::vector<float> values(f.values()), back(f.values()), weights(width);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * float(i + 1);
      f.write(r.at(), values);
      f.read(r.at(), back);
      f.read_weights(r.at(), weights.data());
      for (std::size_t i = 0; i < values.size(); ++i) {
        bool const rounded = i < width && kind == row_values::bfloat16;
        CHECK(back[i] == (rounded ? edl::from_bfloat16(edl::to_bfloat16(values[i])) : values[i]));
        if (i < width) CHECK(weights[i] == back[i]);
      }
    }
}

TEST_CASE("small steps are not lost in bfloat16: rounded by chance, the mean is right") {
  row_format const f(4, 0, row_values::bfloat16);
  one_row r(f);
  std::vector<float> const wanted(4, 1.001f);  // neighbours: 1 and 1.0078125
  std::vector<float> got(4);
  double sum = 0;
  for (int i = 0; i < 4000; ++i) {
    r.header().uses = std::uint32_t(i);
    f.write_weights_by_chance(r.at(), wanted.data(), 9);
    f.read_weights(r.at(), got.data());
    for (float x : got) {
      CHECK((x == 1 || x == 1.0078125f));
      sum += x;
    }
  }
  CHECK(sum / 16000 == doctest::Approx(1.001).epsilon(0.0002));
  f.write_weights_by_chance(r.at(), wanted.data(), 9);
  std::vector<float> again(4);
  f.read_weights(r.at(), again.data());
  CHECK(again == got);
}

TEST_CASE("infinities and what is no number stay so, and an exact value is not moved") {
  row_format const f(4, 0, row_values::bfloat16);
  one_row r(f);
  float const infinite = std::numeric_limits<float>::infinity();
  std::vector<float> const wanted{infinite, -infinite, std::nanf(""), -2.5f};
  std::vector<float> got(4);
  for (std::uint32_t uses = 0; uses < 100; ++uses) {
    r.header().uses = uses;
    f.write_weights_by_chance(r.at(), wanted.data(), 1);
    f.read_weights(r.at(), got.data());
    CHECK(got[0] == infinite);
    CHECK(got[1] == -infinite);
    CHECK(std::isnan(got[2]));
    CHECK(got[3] == -2.5f);
  }
}

}  // namespace row_format_test

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "compute/device/draw.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace recurrent_test {

namespace {

template <class T>
struct course {
  std::vector<T> gates, states, y, drecurrent;

  course(edl::basic_cpu<T>& cpu, edl::recurrent_geometry const& g, int batch,
         edl::kept_places const& places = {}) {
    std::size_t const rows = std::size_t(batch) * std::size_t(g.steps), units = std::size_t(g.units);
    auto const kernel = numbers<T>(units * g.gate_columns(), 1), bias = numbers<T>(g.gate_columns(), 2),
               dy = numbers<T>(rows * units, 3);
    gates = numbers<T>(rows * g.gate_columns(), 4);
    states.resize(rows * units);
    y.resize(rows * units);
    if (g.kind == edl::recurrence::gru) drecurrent.resize(gates.size());
    cpu.masked_recurrent_forward(g, batch, places, kernel, bias, gates, states, y);
    cpu.masked_recurrent_backward(g, batch, places, kernel, states, y, dy, gates, drecurrent);
  }
};

}  // namespace

TEST_CASE("recurrence gives the same bits again, and threads change rounding at most") {
  for (edl::recurrence const kind : {edl::recurrence::lstm, edl::recurrence::gru})
    for (bool const reverse : {false, true}) {
      edl::recurrent_geometry const g{.kind = kind, .steps = 6, .units = 70, .reverse = reverse};
      edl::cpu one({.threads = 1}), three({.threads = 3});
      edl::basic_cpu<double> twice;
      course<float> const a(one, g, 8), b(three, g, 8), again(three, g, 8);
      course<double> const exact(twice, g, 8);
      CHECK(again.y == b.y);
      CHECK(again.gates == b.gates);
      CHECK(again.drecurrent == b.drecurrent);
      CHECK(greatest_difference(a.y, b.y) < 1e-5);
      CHECK(greatest_difference(a.y, exact.y) < 1e-5);
      CHECK(greatest_difference(a.gates, exact.gates) < 1e-4);
      CHECK(greatest_difference(b.gates, exact.gates) < 1e-4);
      CHECK(greatest_difference(b.drecurrent, exact.drecurrent) < 1e-4);
    }
}

TEST_CASE("samples of different lengths: a library's products give what our own give") {
  int const batch = 40;
  edl::recurrent_geometry const g{.kind = edl::recurrence::gru, .steps = 7, .units = 48};
  std::vector<std::int32_t> memory(edl::numbers_of_places(batch, 7));
  auto const places = edl::find_places(memory, batch, 7, [](std::size_t sample, std::size_t place) {
    return place < sample % 8;  // none at all, too
  });
  edl::basic_cpu<double> twice;
  edl::cpu own({.kernels = edl::kernels::own, .precision = edl::precision::bfloat16});
  course<double> const exact(twice, g, batch, places);
  course<float> const rounded(own, g, batch, places);
  CHECK(greatest_difference(rounded.y, exact.y) < 0.03);
  for (int const threads : {1, 2}) {
    edl::cpu cpu({.threads = threads});
    course<float> const of(cpu, g, batch, places);
    CHECK(greatest_difference(of.y, exact.y) < 1e-5);
    CHECK(greatest_difference(of.gates, exact.gates) < 1e-4);
    CHECK(greatest_difference(of.drecurrent, exact.drecurrent) < 1e-4);
    if (!edl::multiplies(edl::precision::bfloat16)) continue;
    edl::cpu rounding({.threads = threads, .precision = edl::precision::bfloat16});
    course<float> const narrow(rounding, g, batch, places);
    CHECK(greatest_difference(narrow.y, rounded.y) < 1e-3);
    CHECK(greatest_difference(narrow.gates, rounded.gates) < 0.01);
    CHECK(greatest_difference(narrow.drecurrent, rounded.drecurrent) < 0.01);
  }
}

TEST_CASE("in bfloat16 the products of a recurrence are rounded, and a library's are as near as our own") {
  using enum edl::precision;
  edl::cpu exact, own({.threads = 2, .kernels = edl::kernels::own, .precision = bfloat16});
  bool const has_library = edl::multiplies(bfloat16);
  if (!has_library) MESSAGE("left out: this processor, or this build, has no products of bfloat16");
  for (edl::recurrence const kind : {edl::recurrence::lstm, edl::recurrence::gru}) {
    edl::recurrent_geometry const g{.kind = kind, .steps = 5, .units = 70};
    course<float> const wide(exact, g, 9), narrow(own, g, 9);
    CHECK(greatest_difference(narrow.y, wide.y) > 1e-4);
    CHECK(greatest_difference(narrow.y, wide.y) < 0.03);
    CHECK(greatest_difference(narrow.gates, wide.gates) < 0.1);
    for (int threads = 1; threads <= 2 && has_library; ++threads) {
      edl::cpu cpu({.threads = threads, .precision = bfloat16});
      course<float> const library(cpu, g, 9);
      CHECK(greatest_difference(library.y, narrow.y) < 1e-3);
      CHECK(greatest_difference(library.gates, narrow.gates) < 0.01);
      CHECK(greatest_difference(library.drecurrent, narrow.drecurrent) < 0.01);
    }
  }
}

}  // namespace recurrent_test

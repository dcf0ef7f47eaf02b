// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "device/draw.hpp"
#include "edl/device/cpu/basic_cpu.hpp"

namespace {

template <class T>
struct course {
  std::vector<T> gates, states, y, drecurrent;

  course(edl::basic_cpu<T>& cpu, edl::recurrent_geometry const& g, int batch) {
    std::size_t const rows = std::size_t(batch) * std::size_t(g.steps), units = std::size_t(g.units);
    auto const kernel = numbers<T>(units * g.gate_columns(), 1), bias = numbers<T>(g.gate_columns(), 2),
               dy = numbers<T>(rows * units, 3);
    gates = numbers<T>(rows * g.gate_columns(), 4);
    states.resize(rows * units);
    y.resize(rows * units);
    if (g.kind == edl::recurrence::gru) drecurrent.resize(gates.size());
    cpu.recurrent_forward(g, batch, kernel, bias, gates, states, y);
    cpu.recurrent_backward(g, batch, kernel, states, y, dy, gates, drecurrent);
  }
};

template <class A, class B>
double difference(A const& a, B const& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double(a[i]) - double(b[i])));
  return most;
}

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
      CHECK(difference(a.y, b.y) < 1e-5);
      CHECK(difference(a.y, exact.y) < 1e-5);
      CHECK(difference(a.gates, exact.gates) < 1e-4);
      CHECK(difference(b.gates, exact.gates) < 1e-4);
      CHECK(difference(b.drecurrent, exact.drecurrent) < 1e-4);
    }
}

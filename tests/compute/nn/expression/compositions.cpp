// SPDX-License-Identifier: Apache-2.0
// Expressions that are drawn from seeds. Of many, the derived nodes are computed one by one, and compared
// with differences, and in single precision with double. A few are compiled into loops as well: gradients
// against differences, single precision against double, and samples that know nothing of each other.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "compute/nn/expression/composition.hpp"
#include "compute/nn/harness.hpp"

namespace compositions_test {

namespace nn = edl::nn;
namespace expression = edl::nn::expression;

constexpr std::uint64_t first_seed = 1;
constexpr std::size_t compiled_seeds = 3, seeds = 300;

template <std::uint64_t Seed>
struct compiled {
  constexpr auto forward(auto x, auto& layer) const { return composition{Seed}.forward(x, layer); }
};

template <std::uint64_t Seed>
void check_composition() {
  CAPTURE(Seed);
  for (edl::shape const in : {edl::shape{2, 2, 11}, {1, 3, 1}, {1, 1, 8}}) {
    check_gradients(compiled<Seed>{}, in);
    lone_layer<compiled<Seed>> h{.l = {}, .in = in};
    h.forward();
    h.backward();
    check_single(h);
  }
}

TEST_CASE("compositions of operations") {
  []<std::uint64_t... I>(std::integer_sequence<std::uint64_t, I...>) {
    (check_composition<first_seed + I>(), ...);
  }(std::make_integer_sequence<std::uint64_t, compiled_seeds>{});
}

std::vector<float> narrow(std::vector<double> const& of) { return {of.begin(), of.end()}; }

/// How far single precision is from double in a derivative's outputs: in units of its precision, of the
/// greatest value that occurs. Each of the few operations rounds by half a unit of what it computes with, and
/// later ones multiply that by slopes that occur as values too.
double error_of_single(by_definition<double> const& with, expression::derivative const& d, int result,
                       std::vector<std::vector<double>> const& wide) {
  by_definition<float> const same{with.in, with.batch, narrow(with.x), narrow(with.dy),
                                  narrow(with.variables)};
  auto const single = same.values(d.nodes);
  double size = 1, most = 0;
  for (auto const& of : wide)
    for (double const v : of) size = std::max(size, std::abs(v));
  std::vector<int> outputs{result, d.inputs[0]};
  for (int const v : d.variables)
    if (v >= 0) outputs.push_back(v);
  for (int const k : outputs)
    for (std::size_t i = 0; i < with.size(); ++i) {
      double const off = std::abs(double(single[std::size_t(k)][i]) - wide[std::size_t(k)][i]);
      if (most == most && !(off <= most)) most = off;  // a NaN stays
    }
  return most / size / double(std::numeric_limits<float>::epsilon());
}

TEST_CASE("derivatives of many compositions") {
  for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    CAPTURE(seed);
    edl::shape const in{1, 2, 3};
    auto const form = expression::form_of(composition{seed}, in);
    REQUIRE(form.wrong.none());
    REQUIRE(form.nodes[form.result].over == expression::all_axes);
    auto const d = expression::deriver(form).result();
    // The loops of both passes can be made, too.
    auto const backward = expression::scheduler::backward(form, d);
    CHECK(expression::scheduler::forward(form, backward).block_count > 0);
    CHECK(backward.block_count > 0);

    auto const of_floats = [](std::size_t n, unsigned which) {  // which both precisions have
      auto const drawn = numbers<float>(n, which);
      return std::vector<double>(drawn.begin(), drawn.end());
    };
    std::size_t const size = 2 * in.size();
    by_definition<double> with{in, 2, of_floats(size, 1), of_floats(size, 2), of_floats(40, 3)};
    for (double& v : with.variables) v = double(float(1 + 0.3 * v));
    auto const derived = with.values(d.nodes);
    CHECK(error_of_single(with, d, form.result, derived) < 4);  // the greatest of these is 1.7
    auto const total = [&] {
      auto const y = with.values(form.nodes)[std::size_t(form.result)];
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * with.dy[i];
      return sum;
    };
    auto const check = [&](double& of, double gradient) {
      double const at = of;
      double least = 1e300;
      for (double const h : {1e-5, 1e-6, 1e-4}) {  // a kink may be nearer, and a third derivative large
        if (least < 1e-7) break;
        of = at + h;
        double const above = total();
        of = at - h;
        double const below = total();
        of = at;
        least = std::min(least, std::abs((above - below) / (2 * h) - gradient) / (1 + std::abs(gradient)));
      }
      CHECK(least < 1e-7);
    };
    for (std::size_t i = 0; i < with.size(); ++i) check(with.x[i], derived[std::size_t(d.inputs[0])][i]);
    for (int v = 0; v < form.variable_count; ++v) {
      nn::axes const over = form.variables[std::size_t(v)].over;
      std::vector<bool> seen(with.count(over));
      for (std::size_t i = 0; i < with.size(); ++i) {
        std::size_t const at = with.index(i, over);
        if (seen[at]) continue;
        seen[at] = true;
        check(with.variables[std::size_t(v) * 10 + at], derived[std::size_t(d.variables[std::size_t(v)])][i]);
      }
    }
  }
}

}  // namespace compositions_test

// SPDX-License-Identifier: Apache-2.0
// What exactly-once costs in a step: a store that names, checks, counts and can be frozen, beside the same
// optimiser on bare arrays. The two take turns; medians.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/core/layout.hpp"
#include "edl/job/ps/policy.hpp"
#include "edl/job/ps/store.hpp"

namespace {

using clock_type = std::chrono::steady_clock;

double median(std::vector<double>& of) {
  std::nth_element(of.begin(), of.begin() + std::ptrdiff_t(of.size() / 2), of.end());
  return of[of.size() / 2];
}

double microseconds(auto&& work) {
  auto const began = clock_type::now();
  work();
  return std::chrono::duration<double, std::micro>(clock_type::now() - began).count();
}

void compare(std::size_t parameters, std::size_t workers) {
  edl::parameter_layout const layout{{{"w", {int(parameters)}, 0}}, parameters, 0};
  edl::rule<edl::adam> const rule{edl::adam{}};
  edl::ps::asynchronous const when;
  edl::ps::store store({.layout = layout, .elements = {0, parameters}, .rule = rule, .when = when});
  std::vector<float> weights(parameters), m(parameters), v(parameters), gradients(parameters, 0.01f),
      sums(parameters);
  std::vector<std::span<float>> const slots{m, v};
  std::vector<double> bare, counted;
  constexpr std::uint32_t tasks = 1000, minibatches = 8;
  std::uint32_t step = 0;
  // Every worker is at a task of its own, one minibatch of it in each step.
  for (std::uint32_t round = 0; round < tasks / workers * minibatches && round < 1000; ++round) {
    std::vector<edl::contribution> mine;
    for (std::uint32_t w = 0; w < workers; ++w)
      mine.push_back(
          {{{0, round / minibatches * std::uint32_t(workers) + w}, round % minibatches, minibatches}, 64});
    sums = gradients;
    bare.push_back(microseconds([&] {
      float const scale = 1.0f / float(64 * workers);
      for (float& x : sums) x *= scale;
      rule.apply(weights, sums, slots, 0.001f, step);
    }));
    sums = gradients;
    counted.push_back(microseconds([&] { store.step(mine, sums); }));
    ++step;
  }
  double const a = median(bare), b = median(counted);
  fmt::print("{:>10} {:>8} {:>10.2f} {:>10.2f} {:>10.2f}\n", parameters, workers, a, b, b - a);
}

}  // namespace

int main() {
  fmt::print("{:>10} {:>8} {:>10} {:>10} {:>10}\n", "parameters", "workers", "bare µs", "store µs",
             "more µs");
  for (std::size_t const parameters : {1000, 111242, 1000000})
    for (std::size_t const workers : {1, 4, 32}) compare(parameters, workers);
}

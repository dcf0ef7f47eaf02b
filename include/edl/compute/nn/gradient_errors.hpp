// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/expression/layer.hpp"
#include "edl/compute/nn/layer.hpp"
#include "edl/compute/nn/plan.hpp"
#include "edl/core/mode.hpp"
#include "edl/core/random.hpp"
#include "edl/core/shape.hpp"

namespace edl::nn {

/// One layer by itself, in double, with exactly the memory that it requests and a minibatch of random
/// numbers. Memory that a pass must write is NaN before, so that omissions are detected. Thread safety:
/// distinct objects: safe.
template <class L>
  requires layer<L> || is_expression<L>
struct lone_layer {
  using vector = std::vector<double>;
  static constexpr double poison = std::numeric_limits<double>::quiet_NaN();

  L l;
  shape in;
  pass_size batch = 3;
  edl::mode mode = edl::mode::training;
  random_stream random{11, 5};

  decltype(as_layer(std::declval<L>())) whole = as_layer(l);
  shape out = whole.output(in);
  variable_counts counts = count(whole, in);
  vector x = numbers(std::size_t(batch) * in.size(), 1), y = vector(std::size_t(batch) * out.size()),
         dy = numbers(y.size(), 2), dx = vector(x.size()), parameters = numbers(counts.parameters, 3),
         frozen = numbers(counts.frozen, 4), gradients = vector(counts.parameters),
         state = vector(counts.state, 0.7), saved = vector(saved_by(whole, in, batch)),
         scratch = vector(scratch_of(whole, in, batch));
  basic_cpu<double> cpu{};

  /// In (-1, 1), the same in every run.
  static vector numbers(std::size_t n, std::uint64_t key) {
    vector all(n);
    random_stream const drawn{mix(key, 77), 0};
    for (std::size_t i = 0; i < n; ++i) all[i] = 2 * double(drawn.uniform(i)) - 1;
    return all;
  }

  void forward() {
    std::ranges::fill(y, poison);
    std::ranges::fill(saved, poison);
    std::ranges::fill(scratch, poison);
    pass<basic_cpu<double>> p{cpu, mode, random, scratch};
    whole.forward(p, {in, out, batch, x, parameters, state, y, saved, {}, frozen});
  }

  void backward(bool with_dx = true) {
    std::ranges::fill(dx, poison);
    std::ranges::fill(gradients, poison);
    std::ranges::fill(scratch, poison);
    pass<basic_cpu<double>> p{cpu, mode, random, scratch};
    auto spent = dy;  // a layer may overwrite it
    whole.backward(p, {in,
                       out,
                       batch,
                       x,
                       y,
                       spent,
                       parameters,
                       state,
                       with_dx ? std::span(dx) : std::span<double>(),
                       gradients,
                       saved,
                       {},
                       frozen});
  }

  /// Σ y · dy: its derivatives are what `backward` computes.
  double value() {
    auto const carried = state;
    forward();
    state = carried;
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
    return sum;
  }

  /// The greatest difference of `computed` from central differences over `variables` (`x` or `parameters`),
  /// each divided by 1 + |computed|. Of more than 200 variables it looks at every n-th.
  double error(vector& variables, vector const& computed) {
    double most = 0;
    std::size_t const stride = variables.size() / 200 + 1;
    for (std::size_t i = 0; i < variables.size(); i += stride) {
      double const at = variables[i], h = 1e-5;
      variables[i] = at + h;
      double const above = value();
      variables[i] = at - h;
      double const below = value();
      variables[i] = at;
      double const e = std::abs((above - below) / (2 * h) - computed[i]) / (1 + std::abs(computed[i]));
      if (!std::isnan(most) && !(e <= most)) most = e;  // a NaN stays
    }
    return most;
  }
};

/// The greatest errors of a layer's gradients against central differences, as in `lone_layer::error`. A
/// correct layer's are below 1e-7. NaN: a pass did not write an element that it must write.
struct derivative_errors {
  double inputs = 0;     ///< of `dx`, as `backward` writes it
  double variables = 0;  ///< of `gradients`, likewise
};

/// Compares the results of a layer's `backward` with central differences of its `forward`, on `batch` samples
/// of shape `in`, in double. `l.check(in)` must be `fits`. A layer with a kink, like a relu at 0, may have
/// larger errors if a random input is within 1e-5 of it.
template <class L>
  requires layer<L> || is_expression<L>
derivative_errors gradient_errors(L const& l, shape in, pass_size batch = 3, mode m = mode::training) {
  if constexpr (is_expression<L>) static_assert(derived<L>::right || true);  // it has said what is wrong
  lone_layer<L> alone{.l = l, .in = in, .batch = batch, .mode = m};
  alone.value();
  alone.backward();
  auto const dx = alone.dx, gradients = alone.gradients;
  return {alone.error(alone.x, dx), alone.error(alone.parameters, gradients)};
}

}  // namespace edl::nn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/nn/adaptable.hpp"
#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/initializer.hpp"
#include "edl/compute/nn/layer.hpp"
#include "edl/compute/nn/layer/frozen.hpp"
#include "edl/core/shape.hpp"

namespace edl::nn {

/// Low-rank adapters (Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021): a frozen matrix
/// W becomes W + alpha / rank · A · B, of which A (inputs, rank) and B (rank, outputs) are trained. A starts
/// as `he_uniform`, and B at 0, so that the first outputs are those of W alone.
struct low_rank {
  int rank = 8;
  float alpha = 16;
  /// Which matrices have one, separated by ','. `query`, `key`, `value` and `output` are those of attention.
  /// Other names are of layers (`attention`, `dense`) and of containers, as `nn::named`: all matrices within.
  std::string_view targets = "query,value";
};

/// A frozen layer with adapters of some of its matrices (`adaptables`). It adds x · A · B to x · W, so that a
/// pass forms no matrix as large as W. It runs on the processor.
template <layer L>
struct low_rank_layer : frozen_layer<L> {
  using base = frozen_layer<L>;
  static constexpr std::size_t most = std::tuple_size_v<decltype(std::declval<L>().adaptables(shape{}))>;

  low_rank adapters{};
  std::array<bool, most> adapts{};  ///< which of the matrices

  static constexpr bool is_low_rank = true, portable = false, activates = false;

  constexpr bfloat16_io narrows(shape) const { return {}; }
  constexpr fit check(shape in) const {
    bool const valid = adapters.rank > 0 && adapters.alpha > 0;
    return valid ? L::check(in) : fit::option_out_of_range;
  }
  template <class Visit>
  constexpr void variables(shape in, Visit&& visit) const {
    base::each_frozen(in, visit);
    for_each(in, [&](adaptable const& of) {
      visit(variable_spec{of.down, {of.inputs, adapters.rank}, he_uniform{}});
      visit(variable_spec{of.up, {adapters.rank, of.outputs}, constant{0}});
    });
  }
  constexpr std::size_t scratch(shape in, pass_size batch) const {
    auto const n = sizes(in, batch);
    return 2 * rounded(n.low) + rounded(n.high) + rounded(n.x) + base::scratch(in, batch);
  }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    memory<T> const m(p.scratch, sizes(a.in, a.batch));
    auto const add = [&](int product, std::size_t rows, view<T> x, std::span<T> y, int stride) {
      for_each(a.in, product, a.parameters, [&](adaptable const& of, part r, auto down, auto up) {
        p.device.dense_forward(rows, r.in, r.rank, activation::none, x, down, {}, m.low.first(rows * r.rank));
        p.device.dense_forward(rows, r.rank, r.out, activation::none, m.low.first(rows * r.rank), up, {},
                               m.high.first(rows * r.out));
        for (std::size_t row = 0; row < rows; ++row) {
          auto const to = y.subspan(row * std::size_t(stride) + std::size_t(of.first), r.out);
          for (std::size_t i = 0; i < r.out; ++i) to[i] += T(factor()) * m.high[row * r.out + i];
        }
      });
    };
    pass<D> own = p;
    own.scratch = m.rest;
    if constexpr (requires { base::forward(own, a, add); }) {
      base::forward(own, a, add);
    } else {
      base::forward(own, a);
      int const stride = this->adaptables(a.in)[0].stride;
      add(0, a.y.size() / std::size_t(stride), a.x, a.y, stride);
    }
  }

  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    using T = typename D::scalar;
    memory<T> const m(p.scratch, sizes(a.in, a.batch));
    auto const add = [&](int product, std::size_t rows, view<T> x, std::span<T> dy, int stride,
                         std::span<T> dx) {
      carver gradients(a.gradients);
      for_each(a.in, -1, a.parameters, [&](adaptable const& of, part r, auto down, auto up) {
        auto const ddown = gradients.next(down.size()), dup = gradients.next(up.size());
        if (of.product != product) return;
        auto const low = m.low.first(rows * r.rank), dlow = m.dlow.first(low.size()),
                   high = m.high.first(rows * r.out), more = m.dx.first(dx.size());
        for (std::size_t row = 0; row < rows; ++row) {
          auto const from = dy.subspan(row * std::size_t(stride) + std::size_t(of.first), r.out);
          for (std::size_t i = 0; i < r.out; ++i) high[row * r.out + i] = T(factor()) * from[i];
        }
        p.device.dense_forward(rows, r.in, r.rank, activation::none, x, down, {}, low);
        p.device.dense_backward(rows, r.rank, r.out, low, up, high, dlow, dup, {});
        p.device.dense_backward(rows, r.in, r.rank, x, down, dlow, more, ddown, {});
        if (!dx.empty()) p.device.add(activation::none, dx, more, dx);
      });
    };
    pass<D> own = p;
    own.scratch = m.rest;
    if constexpr (requires { base::backward(own, a, add); }) {
      base::backward(own, a, add);
    } else {
      base::backward(own, a);
      int const stride = this->adaptables(a.in)[0].stride;
      add(0, a.dy.size() / std::size_t(stride), a.x, a.dy, stride, a.dx);
    }
  }

  /// Adds the adapters to the frozen variables, each number rounded once.
  template <class T>
  void merge(shape in, view<T> parameters, std::span<T> frozen) const {
    for_each(in, -1, parameters, [&](adaptable const& of, part r, view<T> down, view<T> up) {
      for (std::size_t i = 0; i < r.in; ++i)
        for (std::size_t j = 0; j < r.out; ++j) {
          double sum = 0;
          for (std::size_t k = 0; k < r.rank; ++k)
            sum += double(down[i * r.rank + k]) * double(up[k * r.out + j]);
          T& w = frozen[of.offset + i * std::size_t(of.stride) + std::size_t(of.first) + j];
          w = T(double(w) + factor() * sum);
        }
    });
  }

 private:
  struct part {
    std::size_t in, rank, out;
  };
  /// Scalars of a pass, besides the layer's own.
  struct scratch_sizes {
    std::size_t low = 0, high = 0, x = 0;
  };
  template <class T>
  struct memory {
    std::span<T> low, dlow, high, dx, rest;

    memory(std::span<T> all, scratch_sizes n) {
      carver next(all);
      low = next.aligned(n.low), dlow = next.aligned(n.low);
      high = next.aligned(n.high), dx = next.aligned(n.x);
      rest = next.rest();
    }
  };

  constexpr double factor() const { return double(adapters.alpha) / adapters.rank; }
  template <class Visit>
  constexpr void for_each(shape in, Visit const& visit) const {
    auto const all = this->adaptables(in);
    for (std::size_t i = 0; i < most; ++i)
      if (adapts[i]) visit(all[i]);
  }
  /// Those of a product, or with -1 of all, with their variables.
  template <class T, class Visit>
  void for_each(shape in, int product, view<T> parameters, Visit const& visit) const {
    carver next(parameters);
    for_each(in, [&](adaptable const& of) {
      part const r{std::size_t(of.inputs), std::size_t(adapters.rank), std::size_t(of.outputs)};
      auto const down = next.next(r.in * r.rank), up = next.next(r.rank * r.out);
      if (product < 0 || of.product == product) visit(of, r, down, up);
    });
  }
  constexpr scratch_sizes sizes(shape in, pass_size batch) const {
    scratch_sizes n;
    for_each(in, [&](adaptable const& of) {
      std::size_t const rows = std::size_t(batch) * in.size() / std::size_t(this->adaptables(in)[0].inputs);
      n.low = std::max(n.low, rows * std::size_t(adapters.rank));
      n.high = std::max(n.high, rows * std::size_t(of.outputs));
      n.x = std::max(n.x, rows * std::size_t(of.inputs));
    });
    return n;
  }
};

}  // namespace edl::nn

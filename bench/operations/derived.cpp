// SPDX-License-Identifier: Apache-2.0
// Layers and losses whose gradient the compiler derives, beside the same ones by hand: kernels of the project
// where it has them, and otherwise the loops that one would write.
#include "derived.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/expression/loss.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/core/random.hpp"

namespace bench {
namespace {

namespace nn = edl::nn;
using edl::view;

struct gelu {
  constexpr auto forward(auto x, auto&) const { return x * nn::normal_cdf(x); }
};
struct silu {
  constexpr auto forward(auto x, auto&) const { return x * nn::sigmoid(x); }
};
struct swish {
  constexpr auto forward(auto x, auto& layer) const {
    return x * nn::sigmoid(layer.variable("slope", x.channels(), nn::constant{1}) * x);
  }
};
struct softmax {
  constexpr auto forward(auto x, auto&) const { return nn::softmax(x); }
};
struct cross_entropy {
  static constexpr bool class_labels = true;
  constexpr auto loss(auto output, auto label) const {
    return -nn::sum(nn::one_hot(label, output.channels()) * nn::log_softmax(output));
  }
};
struct focal {
  double gamma = 2;
  static constexpr bool class_labels = true;
  constexpr auto loss(auto output, auto label) const {
    auto const surprise = -nn::sum(nn::one_hot(label, output.channels()) * nn::log_softmax(output));
    return nn::pow(-nn::expm1(-surprise), gamma) * surprise;
  }
};
struct pinball {
  double quantile = 0.9;
  constexpr auto loss(auto output, auto label) const {
    auto const off = label - output;
    return nn::mean(nn::max(quantile * off, (quantile - 1) * off));
  }
};

/// By hand, as one loop over each row, with the row's mean and factor stored.
struct layer_norm_by_hand {
  float epsilon = 1e-3f;

  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }
  template <class Visit>
  constexpr void variables(edl::shape in, Visit&& visit) const {
    visit(nn::variable_spec{"gamma", {in.channels}, nn::constant{1}});
    visit(nn::variable_spec{"beta", {in.channels}, nn::constant{0}});
  }
  constexpr std::size_t saved(edl::shape in, nn::pass_size batch) const {
    return 2 * std::size_t(batch) * std::size_t(in.height * in.width);
  }
  template <class D>
  void forward(nn::pass<D>&, nn::forward_args<float> const& a) const {
    std::size_t const c = std::size_t(a.in.channels);
    for (std::size_t r = 0; r < a.x.size() / c; ++r) {
      float const* const x = a.x.data() + r * c;
      float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
      for (std::size_t i = 0; i < c; ++i) sum += x[i];
      float const mean = sum / float(c);
#pragma omp simd reduction(+ : squares)
      for (std::size_t i = 0; i < c; ++i) squares += (x[i] - mean) * (x[i] - mean);
      float const scale = 1 / std::sqrt(squares / float(c) + epsilon);
      for (std::size_t i = 0; i < c; ++i)
        a.y[r * c + i] = (x[i] - mean) * scale * a.parameters[i] + a.parameters[c + i];
      a.saved[2 * r] = mean, a.saved[2 * r + 1] = scale;
    }
  }
  template <class D>
  void backward(nn::pass<D>&, nn::backward_args<float> const& a) const {
    std::size_t const c = std::size_t(a.in.channels);
    float const *const gamma = a.parameters.data(), n = float(c);
    float *const dgamma = a.gradients.data(), *const dbeta = dgamma + c;
    std::fill(a.gradients.begin(), a.gradients.end(), 0.0f);
    for (std::size_t r = 0; r < a.x.size() / c; ++r) {
      float const *const x = a.x.data() + r * c, *const dy = a.dy.data() + r * c, mean = a.saved[2 * r],
                         scale = a.saved[2 * r + 1];
      float* const dx = a.dx.data() + r * c;
      float all = 0, along = 0;
#pragma omp simd reduction(+ : all, along)
      for (std::size_t i = 0; i < c; ++i) {
        float const normed = (x[i] - mean) * scale, d = dy[i] * gamma[i];
        all += d, along += d * normed;
        dgamma[i] += dy[i] * normed;
        dbeta[i] += dy[i];
      }
      for (std::size_t i = 0; i < c; ++i)
        dx[i] = scale * (dy[i] * gamma[i] - (all + (x[i] - mean) * scale * along) / n);
    }
  }
};

/// By hand, as the loops of attention over a row of scores.
struct softmax_by_hand {
  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }

  template <class D>
  void forward(nn::pass<D>&, nn::forward_args<float> const& a) const {
    std::size_t const c = std::size_t(a.in.channels);
    for (std::size_t r = 0; r < a.x.size(); r += c) {
      Eigen::Map<Eigen::ArrayXf const> const x(a.x.data() + r, Eigen::Index(c));
      Eigen::Map<Eigen::ArrayXf> y(a.y.data() + r, Eigen::Index(c));
      y = (x - x.maxCoeff()).exp();
      y *= 1 / y.sum();
    }
  }
  template <class D>
  void backward(nn::pass<D>&, nn::backward_args<float> const& a) const {
    std::size_t const c = std::size_t(a.in.channels);
    for (std::size_t r = 0; r < a.x.size(); r += c) {
      float const *const y = a.y.data() + r, *const dy = a.dy.data() + r;
      float* const dx = a.dx.data() + r;
      float along = 0;
#pragma omp simd reduction(+ : along)
      for (std::size_t i = 0; i < c; ++i) along += y[i] * dy[i];
      for (std::size_t i = 0; i < c; ++i) dx[i] = y[i] * (dy[i] - along);
    }
  }
};

std::vector<float> numbers(std::size_t n, std::uint64_t seed) {
  edl::random_stream const random(seed, 0);
  std::vector<float> all(n);
  for (std::size_t i = 0; i < n; ++i) all[i] = 4 * random.uniform(i) - 2;
  return all;
}

/// A layer with its memory.
template <class L>
struct one_layer {
  L l;
  edl::shape in;
  int batch;
  edl::cpu cpu{{.threads = 1}};
  nn::variable_counts counts = nn::count(l, in);
  std::vector<float> x = numbers(std::size_t(batch) * in.size(), 1), y = x, dy = numbers(x.size(), 2), dx = x,
                     parameters = numbers(counts.parameters, 3), gradients = parameters,
                     saved = std::vector<float>(nn::saved_by(l, in, batch));

  void forward() {
    nn::pass<edl::basic_backend<float>> p{cpu, edl::mode::training, {1, 0}, {}};
    l.forward(p, nn::forward_args<float>{in, in, batch, x, parameters, {}, y, saved});
  }
  void backward() {
    nn::pass<edl::basic_backend<float>> p{cpu, edl::mode::training, {1, 0}, {}};
    l.backward(p, nn::backward_args<float>{in, in, batch, x, y, dy, parameters, {}, dx, gradients, saved});
  }
};

template <class Derived, class ByHand>
void compare_layers(print_pair const& print, std::string const& name, Derived const& derived,
                    ByHand const& by_hand, edl::shape in, int batch) {
  one_layer<Derived> a{derived, in, batch};
  one_layer<ByHand> b{by_hand, in, batch};
  print(name + " | forward", [&] { a.forward(); }, [&] { b.forward(); });
  print(name + " | backward", [&] { a.backward(); }, [&] { b.backward(); });
}

template <class Derived, class ByHand>
void compare_losses(print_pair const& print, std::string const& name, Derived const& derived,
                    ByHand const& by_hand, edl::shape output, int batch) {
  auto const outputs = numbers(std::size_t(batch) * output.size(), 1);
  std::vector<float> gradients(outputs.size());
  using label = typename Derived::label;
  std::vector<label> labels(std::size_t(batch) * Derived::labels(output));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = label(i % output.size());
  print(
      name + " | both", [&] { derived(output, batch, view<float>(outputs), view<label>(labels), gradients); },
      [&] { by_hand(output, batch, view<float>(outputs), view<label>(labels), gradients); });
}

}  // namespace

std::function<void()> own_swish() {
  auto const own =
      std::make_shared<one_layer<nn::derived<swish>>>(nn::derived<swish>{}, edl::shape{1, 256, 384}, 12);
  return [own] { own->forward(), own->backward(); };
}

void compare_derived(print_pair const& print) {
  edl::shape const places{1, 256, 1536};
  compare_layers(print, "gelu, 1,024 x 1,536", nn::derived<gelu>{}, nn::gelu{}, places, 4);
  compare_layers(print, "silu, 1,024 x 1,536", nn::derived<silu>{}, nn::silu{}, places, 4);
  compare_layers(print, "layer_norm, 3,072 x 384", nn::derived<nn::layer_norm>{}, layer_norm_by_hand{},
                 {1, 256, 384}, 12);
  compare_layers(print, "softmax, 4,096 x 256", nn::derived<softmax>{}, softmax_by_hand{}, {1, 256, 256}, 16);
  for (auto const& [classes, batch] : {std::pair{10, 4096}, {1000, 256}}) {
    std::string const size = ", " + std::to_string(batch) + " x " + std::to_string(classes);
    edl::shape const output{1, 1, classes};
    compare_losses(print, "softmax cross entropy" + size, nn::derived_loss<cross_entropy>{},
                   nn::softmax_cross_entropy{}, output, batch);
    compare_losses(print, "focal" + size, nn::derived_loss<focal>{}, nn::softmax_focal{}, output, batch);
  }
  auto const by_hand = [](edl::shape, int, view<float> outputs, view<float> truth, std::span<float> to) {
    float const quantile = 0.9f, scale = 1 / float(outputs.size());
    float all = 0;
#pragma omp simd reduction(+ : all)
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      float const off = truth[i] - outputs[i], slope = off > 0 ? quantile : quantile - 1;
      all += slope * off;
      to[i] = -slope * scale;
    }
    return double(all * scale);
  };
  compare_losses(print, "pinball, 4,096 x 24", nn::derived_loss<pinball>{}, by_hand, {1, 1, 24}, 4096);
}

}  // namespace bench

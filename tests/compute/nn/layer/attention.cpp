// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/attention.hpp"

#include <cmath>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"

namespace attention_test {

namespace nn = edl::nn;

namespace {

using vector = std::vector<double>;

/// x (rows × inputs) · kernel + bias.
vector linear(vector const& x, std::size_t inputs, double const* kernel, double const* bias,
              std::size_t outputs) {
  std::size_t const rows = x.size() / inputs;
  vector y(rows * outputs);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t o = 0; o < outputs; ++o) {
      y[r * outputs + o] = bias ? bias[o] : 0;
      for (std::size_t i = 0; i < inputs; ++i)
        y[r * outputs + o] += x[r * inputs + i] * kernel[i * outputs + o];
    }
  return y;
}

/// The definition, by loops and with the whole matrix of scores.
vector attend(nn::attention const& l, std::size_t batch, std::size_t places, std::size_t c, vector const& x,
              vector const& parameters) {
  std::size_t const heads = std::size_t(l.heads), width = c / heads, half = width / 2,
                    shared = l.key_value_heads > 0 ? std::size_t(l.key_value_heads) : heads,
                    columns = c + 2 * shared * width;
  double const* at = parameters.data();
  double const* const kernel = at;
  at += columns * c;
  double const* const bias = l.use_bias ? at : nullptr;
  at += l.use_bias ? columns : 0;
  double const* const gains = at;
  at += l.qk_norm ? 2 * width : 0;
  double const* const out_kernel = at;
  double const* const out_bias = l.use_bias && l.output_bias ? at + c * c : nullptr;
  auto const own = linear(x, c, kernel, bias, columns);
  vector qkv(batch * places * 3 * c);
  for (std::size_t row = 0; row < batch * places; ++row)
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t k = 0; k < width; ++k) {
        std::size_t const with = h / (heads / shared) * width + k;  // of the keys, and of the values
        double* const to = qkv.data() + row * 3 * c + h * width + k;
        double const* const from = own.data() + row * columns;
        to[0] = from[h * width + k];
        to[c] = from[c + with];
        to[2 * c] = from[c + shared * width + with];
      }
  for (std::size_t at_head = 0; l.qk_norm && at_head < batch * places * 3 * heads; ++at_head) {
    std::size_t const part = at_head / heads % 3;
    if (part == 2) continue;
    double* const v = qkv.data() + at_head * width;
    double squares = 0;
    for (std::size_t k = 0; k < width; ++k) squares += v[k] * v[k];
    for (std::size_t k = 0; k < width; ++k)
      v[k] *= gains[part * width + k] / std::sqrt(squares / double(width) + double(l.norm_epsilon));
  }
  if (l.rotary)
    for (std::size_t row = 0; row < batch * places; ++row)
      for (std::size_t v = 0; v < 2 * heads; ++v)
        for (std::size_t i = 0; i < half; ++i) {
          double& a = qkv[row * 3 * c + v * width + (l.interleaved ? 2 * i : i)];
          double& b = qkv[row * 3 * c + v * width + (l.interleaved ? 2 * i + 1 : half + i)];
          double speed = 1 / std::pow(double(l.rotary_base), 2 * double(i) / double(width));
          // As in the published code of Llama 3.1.
          double const pi = std::acos(-1.0), length = 2 * pi / speed, original = l.scaling.original;
          if (l.scaling.factor != 1 && length > original / double(l.scaling.low)) {
            speed /= double(l.scaling.factor);
          } else if (l.scaling.factor != 1 && length > original / double(l.scaling.high)) {
            double const smooth = (original / length - double(l.scaling.low)) /
                                  (double(l.scaling.high) - double(l.scaling.low));
            speed = (1 - smooth) * speed / double(l.scaling.factor) + smooth * speed;
          }
          double const angle = double(row % places) * speed;
          double const before = a;
          a = before * std::cos(angle) - b * std::sin(angle);
          b = before * std::sin(angle) + b * std::cos(angle);
        }
  vector mixed(batch * places * c);
  for (std::size_t s = 0; s < batch; ++s)
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t i = 0; i < places; ++i) {
        auto const of = [&](std::size_t place, std::size_t part) {
          return qkv.data() + (s * places + place) * 3 * c + part * c + h * width;
        };
        std::size_t const end = l.causal ? i + 1 : places;
        std::size_t const begin = l.window > 0 ? end - std::min(end, std::size_t(l.window)) : 0;
        vector share(end);
        double sum = 0;
        for (std::size_t j = begin; j < end; ++j) {
          double score = 0;
          for (std::size_t k = 0; k < width; ++k) score += of(i, 0)[k] * of(j, 1)[k];
          score /= std::sqrt(double(width));
          if (l.softcap > 0) score = double(l.softcap) * std::tanh(score / double(l.softcap));
          sum += share[j] = std::exp(score);
        }
        for (std::size_t j = 0; j < end; ++j)
          for (std::size_t k = 0; k < width; ++k)
            mixed[(s * places + i) * c + h * width + k] += share[j] / sum * of(j, 2)[k];
      }
  return linear(mixed, c, out_kernel, out_bias, c);
}

}  // namespace

TEST_CASE("attention is what its definition says, in one block of keys and in several") {
  for (bool const causal : {false, true})
    for (bool const rotary : {false, true})
      for (int const places : {1, 5, 64, 70, 300}) {
        CAPTURE(causal);
        CAPTURE(rotary);
        CAPTURE(places);
        nn::attention const l{.heads = 4,
                              .key_value_heads = places == 5    ? 1
                                                 : places == 70 ? 2
                                                                : 0,
                              .causal = causal,
                              .rotary = rotary,
                              .rotary_base = 100,
                              .scaling = {.factor = places == 300 ? 4.0f : 1.0f, .original = 40},
                              .use_bias = places % 2 == 0,
                              .output_bias = places != 64};
        lone_layer<nn::attention> h{.l = l, .in = {1, places, 16}, .batch = 2};
        h.forward();
        CHECK(greatest_difference(h.y, attend(l, 2, std::size_t(places), 16, h.x, h.parameters)) < 1e-12);
        nn::attention more = l;
        more.window = causal ? std::max(1, places * 2 / 5) : 0;
        more.softcap = 1.5f;
        more.interleaved = more.qk_norm = true;
        lone_layer<nn::attention> with{.l = more, .in = {1, places, 16}, .batch = 2};
        with.forward();
        CHECK(greatest_difference(with.y, attend(more, 2, std::size_t(places), 16, with.x, with.parameters)) <
              1e-12);
      }
}

TEST_CASE("options that mean nothing are refused") {
  auto const why = [](nn::attention const& l) { return l.check({1, 3, 4}); };
  CHECK(why({.causal = true, .window = 2, .softcap = 2, .qk_norm = true}) == edl::fit::fits);
  CHECK(why({.window = 2}) == edl::fit::option_out_of_range);
  CHECK(why({.causal = true, .window = -1}) == edl::fit::option_out_of_range);
  CHECK(why({.softcap = -1}) == edl::fit::option_out_of_range);
  CHECK(why({.softcap = std::nanf("")}) == edl::fit::option_out_of_range);
  CHECK(why({.norm_epsilon = 0}) == edl::fit::option_out_of_range);
}

TEST_CASE("large scores neither overflow nor lose their order") {
  lone_layer<nn::attention> h{.l = {.use_bias = false}, .in = {1, 4, 2}, .batch = 1};
  for (double& x : h.x) x *= 1e3;
  h.forward();
  for (double const y : h.y) CHECK(std::isfinite(y));
  h.backward();
  for (double const d : h.dx) CHECK(std::isfinite(d));
}

TEST_CASE("with causal attention no place sees what comes later") {
  lone_layer<nn::attention> h{.l = {.heads = 2, .causal = true}, .in = {1, 80, 4}, .batch = 1};
  h.forward();
  auto const before = h.y;
  for (std::size_t i = 40 * 4; i < h.x.size(); ++i) h.x[i] += 1;
  h.forward();
  CHECK(std::equal(before.begin(), before.begin() + 40 * 4, h.y.begin()));
  CHECK(h.y[40 * 4] != before[40 * 4]);
}

TEST_CASE("layers of words and time run on the processor, a dense layer of each place anywhere") {
  CHECK_FALSE(nn::is_portable(nn::attention{}, {1, 3, 4}));
  CHECK_FALSE(nn::is_portable(nn::positions{}, {1, 3, 4}));
  CHECK_FALSE(nn::is_portable(nn::repeat<2>(nn::bidirectional(nn::lstm{.units = 2})), {1, 3, 4}));
  CHECK(nn::is_portable(nn::repeat<2>(nn::dense{.units = 4, .each_place = true}), {1, 3, 4}));
}

TEST_CASE("equal streams drop equal weights, others do not; only training drops") {
  lone_layer<nn::attention> h{.l = {.heads = 2, .dropout = 0.5f}, .in = {1, 20, 8}};
  h.forward();
  auto const first = h.y;
  h.forward();
  CHECK(h.y == first);
  h.random.step += 1;
  h.forward();
  CHECK(h.y != first);
  h.mode = edl::mode::evaluation;
  h.forward();
  lone_layer<nn::attention> whole{.l = {.heads = 2}, .in = {1, 20, 8}};
  whole.forward();
  CHECK(h.y == whole.y);
}

TEST_CASE("a share of the weights drops out, and the others make up for it") {
  // Values are ones and scores zeros: what comes out is what is left of the weights, whose sum was one.
  int const places = 300;
  lone_layer<nn::attention> h{.l = {.dropout = 0.25f, .use_bias = false}, .in = {1, places, 1}, .batch = 2};
  h.parameters = {0, 0, 1, 1};  // of queries, keys and values; of the output
  std::ranges::fill(h.x, 1.0);
  h.forward();
  double mean = 0;
  for (double const y : h.y) {
    double const kept = y * 0.75 * places;  // a whole number of weights
    CHECK(std::abs(kept - std::round(kept)) < 1e-6);
    mean += y / double(h.y.size());
  }
  CHECK(mean == doctest::Approx(1).epsilon(0.01));
  CHECK(std::ranges::count(h.y, h.y.front()) < std::ptrdiff_t(h.y.size()) / 2);
}

}  // namespace attention_test

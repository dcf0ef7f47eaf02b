// SPDX-License-Identifier: Apache-2.0
// The zoo's transformers with small sizes, compared with what their papers and published code define: loops
// in double.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "../../tools/zoo/template/imagenet/vit.hpp"
#include "../../tools/zoo/template/text/llama.hpp"
#include "edl/base/checkpoint/other_model.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/gradient_errors.hpp"
#include "edl/compute/nn/model.hpp"

namespace published_models_test {
namespace {

using vector = std::vector<double>;
using wide_cpu = edl::basic_cpu<double>;

template <bool Bias>
struct small {
  static constexpr int length = 20, width = 24, heads = 6, key_value_heads = 2, blocks = 2, hidden = 40,
                       tokens = 50;
  static constexpr float rotary_base = 10'000, epsilon = 1e-5f;
  static constexpr bool bias = Bias;
  static constexpr edl::rotary_scaling scaling{.factor = 4, .low = 1, .high = 4, .original = 16};
};

/// y (rows × outputs) = x (rows × inputs) · w (inputs × outputs) + b.
vector linear(vector const& x, vector const& w, vector const& b, std::size_t inputs) {
  std::size_t const outputs = w.size() / inputs, rows = x.size() / inputs;
  vector y(rows * outputs);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t o = 0; o < outputs; ++o) {
      y[r * outputs + o] = b.empty() ? 0 : b[o];
      for (std::size_t i = 0; i < inputs; ++i) y[r * outputs + o] += x[r * inputs + i] * w[i * outputs + o];
    }
  return y;
}

vector normalized(vector x, vector const& gamma, double epsilon) {
  for (std::size_t r = 0; r < x.size(); r += gamma.size()) {
    double sum = 0;
    for (std::size_t i = 0; i < gamma.size(); ++i) sum += x[r + i] * x[r + i];
    for (std::size_t i = 0; i < gamma.size(); ++i)
      x[r + i] *= gamma[i] / std::sqrt(sum / double(gamma.size()) + epsilon);
  }
  return x;
}

template <class Of>
struct reference {
  std::map<std::string, vector> variables;

  vector const& operator[](std::string const& name) const {
    static vector const none;
    auto const found = variables.find(name);
    return found == variables.end() ? none : found->second;
  }

  static double angle(std::size_t place, std::size_t i) {
    double const pi = std::acos(-1.0), d = Of::width / Of::heads, original = Of::scaling.original;
    double speed = std::pow(double(Of::rotary_base), -2 * double(i) / d);
    double const turns = original * speed / (2 * pi), low = Of::scaling.low, high = Of::scaling.high,
                 slow = speed / double(Of::scaling.factor);
    if (turns < low)
      speed = slow;
    else if (turns < high)
      speed = slow + (speed - slow) * (turns - low) / (high - low);
    return double(place) * speed;
  }

  vector attention(vector const& x, std::string const& name) const {
    constexpr std::size_t c = Of::width, d = Of::width / Of::heads, group = Of::heads / Of::key_value_heads,
                          columns = c + 2 * d * Of::key_value_heads;
    std::size_t const n = x.size() / c;
    vector all =
        linear(x, (*this)[name + "query_key_value_kernel"], (*this)[name + "query_key_value_bias"], c);
    for (std::size_t place = 0; place < n; ++place)
      for (std::size_t head = 0; head < Of::heads + Of::key_value_heads; ++head)
        for (std::size_t i = 0; i < d / 2; ++i) {
          double& a = all[place * columns + head * d + i];
          double& b = all[place * columns + head * d + d / 2 + i];
          double const t = angle(place, i), before = a;
          a = before * std::cos(t) - b * std::sin(t);
          b = before * std::sin(t) + b * std::cos(t);
        }
    vector heads(x.size());
    for (std::size_t head = 0; head < Of::heads; ++head)
      for (std::size_t i = 0; i < n; ++i) {
        std::size_t const key = c + head / group * d, value = key + d * Of::key_value_heads;
        vector share(i + 1);
        double sum = 0;
        for (std::size_t j = 0; j <= i; ++j) {
          double score = 0;
          for (std::size_t k = 0; k < d; ++k)
            score += all[i * columns + head * d + k] * all[j * columns + key + k];
          sum += share[j] = std::exp(score / std::sqrt(double(d)));
        }
        for (std::size_t j = 0; j <= i; ++j)
          for (std::size_t k = 0; k < d; ++k)
            heads[i * c + head * d + k] += share[j] / sum * all[j * columns + value + k];
      }
    return linear(heads, (*this)[name + "output_kernel"], {}, c);
  }

  vector logits(std::vector<int> const& ids) const {
    constexpr std::size_t c = Of::width;
    double const epsilon = Of::epsilon;
    vector const& table = (*this)["embedding/embeddings"];
    vector x;
    for (int const id : ids)
      x.insert(x.end(), table.begin() + id * int(c), table.begin() + (id + 1) * int(c));
    for (int b = 0; b < Of::blocks; ++b) {
      std::string const block =
          b == 0 ? "repeat/sequential/" : "repeat/sequential_" + std::to_string(b) + "/";
      std::string const first = block + "residual/body/", second = block + "residual_1/body/";
      auto const add = [&](vector const& more) {
        for (std::size_t i = 0; i < x.size(); ++i) x[i] += more[i];
      };
      add(attention(normalized(x, (*this)[first + "rms_normalization/gamma"], epsilon),
                    first + "attention/"));
      vector const y = normalized(x, (*this)[second + "rms_normalization/gamma"], epsilon);
      vector gate = linear(y, (*this)[second + "product/gate/dense/kernel"], {}, c);
      vector const up = linear(y, (*this)[second + "product/up/dense/kernel"], {}, c);
      for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
      add(linear(gate, (*this)[second + "dense/kernel"], {}, Of::hidden));
    }
    x = normalized(x, (*this)["rms_normalization/gamma"], epsilon);
    vector y(ids.size() * Of::tokens);
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (std::size_t v = 0; v < Of::tokens; ++v)
        for (std::size_t k = 0; k < c; ++k) y[i * Of::tokens + v] += x[i * c + k] * table[v * c + k];
    return y;
  }
};

template <bool Bias>
void check_llama() {
  using of = small<Bias>;
  using model = edl::model<llama<of>::network, wide_cpu>;
  model m({.max_batch = 2, .seed = 3});
  auto const layout = model::layout();
  reference<of> expected;
  for (auto const& v : layout.variables) {
    vector& values = expected.variables[v.name];
    for (std::size_t i = 0; i < v.dims.size(); ++i)
      values.push_back(m.variables()[v.offset + i] = std::sin(double(v.offset + i) * 1.7) * 0.8);
  }
  std::vector<int> ids(of::length);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = int(i * i * 7 % 31 % of::tokens);
  auto const y = m.forward(vector(ids.begin(), ids.end()), 1, edl::mode::prediction);
  auto const right = expected.logits(ids);
  REQUIRE(y.size() == right.size());
  double worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) worst = std::max(worst, std::abs(y[i] - right[i]));
  CHECK(worst < 1e-10);

  // Each variable has a published name, once.
  edl::checkpoint::check_weight_names(layout, llama<of>::weight_names);
  CHECK(layout.variables.size() == std::size_t(of::blocks) * (Bias ? 8 : 7) + 2);
}

struct small_vit {
  static constexpr int side = 8, patch = 4, width = 24, heads = 3, blocks = 2, hidden = 40, classes = 5;
};

/// Of each row (x − mean) / deviation · gamma + beta.
vector standardized(vector x, vector const& gamma, vector const& beta) {
  double const n = double(gamma.size());
  for (std::size_t r = 0; r < x.size(); r += gamma.size()) {
    double mean = 0, squares = 0;
    for (std::size_t i = 0; i < gamma.size(); ++i) mean += x[r + i] / n;
    for (std::size_t i = 0; i < gamma.size(); ++i) squares += (x[r + i] - mean) * (x[r + i] - mean) / n;
    for (std::size_t i = 0; i < gamma.size(); ++i)
      x[r + i] = (x[r + i] - mean) / std::sqrt(squares + 1e-12) * gamma[i] + beta[i];
  }
  return x;
}

vector vit_logits(reference<small_vit> const& v, vector const& picture) {
  using of = small_vit;
  constexpr std::size_t c = of::width, d = c / of::heads, rows = of::side / of::patch, n = rows * rows + 1,
                        line = of::patch * 3;
  vector patches;
  for (std::size_t p = 0; p < n - 1; ++p)
    for (std::size_t y = 0; y < of::patch; ++y)
      for (std::size_t i = 0; i < line; ++i)
        patches.push_back(picture[((p / rows * of::patch + y) * of::side + p % rows * of::patch) * 3 + i]);
  vector x = v["patch_tokens/token"];
  vector const embedded = linear(patches, v["conv2d/kernel"], v["conv2d/bias"], of::patch * line);
  x.insert(x.end(), embedded.begin(), embedded.end());
  auto const add = [&](vector const& more) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += more[i];
  };
  auto const norm = [&](std::string const& name) {
    return standardized(x, v[name + "layer_normalization/gamma"], v[name + "layer_normalization/beta"]);
  };
  auto const through = [&](vector const& from, std::string const& name, std::size_t inputs) {
    return linear(from, v[name + "kernel"], v[name + "bias"], inputs);
  };
  add(v["patch_tokens/rows"]);
  for (int b = 0; b < of::blocks; ++b) {
    std::string const block = b == 0 ? "repeat/sequential/" : "repeat/sequential_" + std::to_string(b) + "/";
    std::string const first = block + "residual/body/", second = block + "residual_1/body/";
    vector const all = through(norm(first), first + "attention/query_key_value_", c);
    vector heads(n * c);
    for (std::size_t h = 0; h < of::heads; ++h)
      for (std::size_t i = 0; i < n; ++i) {
        vector share(n);
        double sum = 0;
        for (std::size_t j = 0; j < n; ++j) {
          double score = 0;
          for (std::size_t k = h * d; k < (h + 1) * d; ++k)
            score += all[i * 3 * c + k] * all[j * 3 * c + c + k];
          sum += share[j] = std::exp(score / std::sqrt(double(d)));
        }
        for (std::size_t j = 0; j < n; ++j)
          for (std::size_t k = h * d; k < (h + 1) * d; ++k)
            heads[i * c + k] += share[j] / sum * all[j * 3 * c + 2 * c + k];
      }
    add(through(heads, first + "attention/output_", c));
    vector inner = through(norm(second), second + "dense/", c);
    for (double& y : inner) y *= (1 + std::erf(y / std::sqrt(2.0))) / 2;
    add(through(inner, second + "dense_1/", of::hidden));
  }
  vector token = norm("");
  token.resize(c);
  return through(token, "dense/", c);
}

void check_vit() {
  using model = edl::model<vit<small_vit>::network, wide_cpu>;
  model m({.max_batch = 2, .seed = 3});
  auto const layout = model::layout();
  reference<small_vit> expected;
  for (auto const& v : layout.variables)
    for (std::size_t i = 0; i < v.dims.size(); ++i)
      expected.variables[v.name].push_back(m.variables()[v.offset + i] =
                                               std::sin(double(v.offset + i) * 1.7) * 0.8);
  vector pictures(2 * 8 * 8 * 3);
  for (std::size_t i = 0; i < pictures.size(); ++i) pictures[i] = std::cos(double(i) * 0.9);
  auto const y = m.forward(pictures, 2, edl::mode::prediction);
  auto const half = pictures.begin() + 8 * 8 * 3;
  auto right = vit_logits(expected, {pictures.begin(), half});
  auto const second = vit_logits(expected, {half, pictures.end()});
  right.insert(right.end(), second.begin(), second.end());
  REQUIRE(y.size() == right.size());
  double worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) worst = std::max(worst, std::abs(y[i] - right[i]));
  CHECK(worst < 1e-9);
  edl::checkpoint::check_weight_names(layout, vit<small_vit>::weight_names);
  CHECK(layout.variables.size() == 12 * 2 + 8);

  auto const errors = nn::gradient_errors(patch_tokens{}, {2, 3, 4});
  CHECK(errors.inputs < 1e-7);
  CHECK(errors.variables < 1e-7);
}

}  // namespace

TEST_CASE("the zoo's vision transformer computes what its definition says") { check_vit(); }

TEST_CASE("the zoo's llama computes what its definition says, with and without biases") {
  check_llama<false>();
  check_llama<true>();
}

}  // namespace published_models_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/adapted.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "compute/nn/harness.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/decoding.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"

namespace adapted_test {

namespace nn = edl::nn;
using wide_cpu = edl::basic_cpu<double>;

namespace {

constexpr int length = 6, vocabulary = 11, width = 12;
constexpr edl::shape in{1, 1, length};

constexpr auto linear(int units) { return nn::dense{.units = units, .each_place = true, .use_bias = false}; }
/// As a published language model: grouped heads, gates, a tied embedding.
constexpr auto base = nn::sequential(
    nn::ids{.count = length},
    nn::tied(nn::embedding{.vocabulary = vocabulary, .width = width},
             nn::repeat<2>(nn::sequential(
                 nn::residual(nn::sequential(
                     nn::rms_norm{},
                     nn::attention{.heads = 6, .key_value_heads = 3, .causal = true, .rotary = true})),
                 nn::residual(nn::sequential(
                     nn::rms_norm{},
                     nn::product(nn::named<"gate">(linear(20), nn::silu{}), nn::named<"up">(linear(20))),
                     linear(width))))),
             nn::rms_norm{}));
constexpr auto tuned = nn::adapted(base, {.rank = 2, .alpha = 3});
constexpr auto all = nn::adapted(base, {.rank = 3, .alpha = 4, .targets = "attention,dense"});
constexpr auto gates = nn::adapted(base, {.rank = 1, .targets = "gate,output"});

/// One key head for each head, biases, other layers with variables, a relu that a layer could take along.
constexpr auto other =
    nn::sequential(nn::ids{.count = length}, nn::embedding{.vocabulary = vocabulary, .width = width},
                   nn::positions{.most = length}, nn::layer_norm{},
                   nn::residual(nn::attention{.heads = 3, .causal = true, .qk_norm = true}),
                   nn::dense{.units = 9, .each_place = true}, nn::relu{},
                   nn::dense{.units = vocabulary, .each_place = true});
constexpr auto other_tuned = nn::adapted(other, {.rank = 2, .targets = "query,key,value,output,dense"});

std::vector<double> ids(std::size_t samples) {
  std::vector<double> x(samples * length);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = double(i * i * 7 % 31 % vocabulary);
  return x;
}

std::vector<std::string> names_in(edl::parameter_layout const& of) {
  std::vector<std::string> names;
  for (auto const& v : of.variables) names.push_back(v.name);
  return names;
}

template <auto const& Net>
void check_gradients_of() {
  for (auto const keep : {nn::storage::recomputed, nn::storage::float32}) {
    lone_layer h{.l = Net.body, .in = in, .batch = {2, keep}};
    h.x = ids(2);
    h.value();
    h.backward(false);
    auto const gradients = h.gradients;
    CHECK(gradients.size() == h.counts.parameters);
    CHECK(h.error(h.parameters, gradients) < 1e-6);
    auto const frozen = h.frozen;
    h.value();
    h.backward(false);
    CHECK(h.gradients == gradients);
    CHECK(h.frozen == frozen);
  }
}

/// With adapters that are not 0: as the network that was adapted, with merged values.
template <auto const& Net, auto const& Base>
void check_merged() {
  edl::model<Net, wide_cpu> m({.max_batch = 2, .seed = 5});
  auto const parameters = lone_layer<nn::relu>::numbers(m.parameter_count, 9);
  std::ranges::copy(parameters, m.parameters().begin());
  edl::model<Base, wide_cpu> merged({.max_batch = 2, .seed = 1});
  REQUIRE(m.frozen_count == merged.parameter_count);
  m.initialise_frozen(5, merged.parameters());
  auto const x = ids(2);
  auto const of = [&](auto& which) {
    auto const y = which.forward(x, 2, edl::mode::training);
    return std::vector<double>(y.begin(), y.end());
  };
  auto const before = of(merged), now = of(m);
  nn::merge_adapters(Net.body, Net.input, edl::view<double>(m.parameters()), merged.parameters());
  auto const after = of(merged);
  double moved = 0, off = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    moved = std::max(moved, std::abs(now[i] - before[i]));
    off = std::max(off, std::abs(now[i] - after[i]));
  }
  CHECK(moved > 0.01);
  CHECK(off < 1e-8 * (1 + moved));
}

}  // namespace

TEST_CASE("adapters have the gradients of differences, and nothing else has any") {
  check_gradients_of<tuned>();
  check_gradients_of<all>();
  check_gradients_of<gates>();
  check_gradients_of<other_tuned>();
  check_gradients(nn::adapted(nn::sequential(nn::features{.count = 5}, nn::dense{.units = 3}),
                              {.rank = 2, .targets = "dense"})
                      .body,
                  {1, 1, 5});
}

TEST_CASE("a network with adapters starts as the one that was adapted, and can be merged into it") {
  edl::model<tuned, edl::cpu> m({.max_batch = 1, .seed = 3});
  edl::model<base, edl::cpu> plain({.max_batch = 1});
  m.initialise_frozen(3, plain.parameters());
  std::vector<float> const x(length, 4);
  auto const a = m.forward(x, 1, edl::mode::training), b = plain.forward(x, 1, edl::mode::training);
  CHECK(std::ranges::equal(a, b));
  check_merged<tuned, base>();
  check_merged<all, base>();
  check_merged<gates, base>();
  check_merged<other_tuned, other>();
}

TEST_CASE("the arena has the adapters alone, and frozen variables keep their names") {
  using model = edl::model<tuned, edl::cpu>;
  constexpr std::size_t blocks = 2, adapters = blocks * (2 * width * 2 + 2 * (width + width / 2));
  static_assert(model::parameter_count == adapters && model::state_count == 0);
  CHECK(names_in(model::frozen_layout()) == names_in(edl::model<base, edl::cpu>::layout()));
  CHECK(names_in(model::layout()) ==
        std::vector<std::string>{"repeat/sequential/residual/body/attention/query_lora_a",
                                 "repeat/sequential/residual/body/attention/query_lora_b",
                                 "repeat/sequential/residual/body/attention/value_lora_a",
                                 "repeat/sequential/residual/body/attention/value_lora_b",
                                 "repeat/sequential_1/residual/body/attention/query_lora_a",
                                 "repeat/sequential_1/residual/body/attention/query_lora_b",
                                 "repeat/sequential_1/residual/body/attention/value_lora_a",
                                 "repeat/sequential_1/residual/body/attention/value_lora_b"});
  CHECK(names_in(edl::model<gates, edl::cpu>::layout())[2] ==
        "repeat/sequential/residual_1/body/product/gate/dense/lora_a");
  model const m({.max_batch = 1});
  auto const memory = m.memory();
  CHECK(memory.variables == 4 * adapters);
  CHECK(memory.gradients == 4 * adapters);
  CHECK(memory.frozen == 4 * model::frozen_count);
  using plain = edl::model<base, edl::cpu>;
  for (auto const keep : {nn::storage::recomputed, nn::storage::compact})
    CHECK(model::memory({3, keep}).activations == plain::memory({3, keep}).activations);
  std::vector<float> values(model::frozen_count, 0.5f);
  model given({.max_batch = 1, .frozen = values});
  std::vector<float> const x(length, 4);
  auto const y = given.forward(x, 1, edl::mode::prediction);
  CHECK(std::abs(y[0] - 0.5f * 0.5f * width) < 1e-3f);  // equal numbers become 1 · gamma in the last layer
}

TEST_CASE("a decoder with adapters is the whole network's") {
  edl::model<all, wide_cpu> m({.max_batch = 1, .seed = 5});
  std::ranges::copy(lone_layer<nn::relu>::numbers(m.parameter_count, 9), m.parameters().begin());
  std::vector<double> frozen(m.frozen_count);
  m.initialise_frozen(5, frozen);
  auto const x = ids(1);
  auto const y = m.forward(x, 1, edl::mode::prediction);
  nn::decoding_model<all, wide_cpu> d({}, {.rows = 1, .sequences = 1}, {}, m.variables(), frozen);
  for (int place = 0; place < length; ++place) {
    std::int32_t const id[]{std::int32_t(x[std::size_t(place)])};
    edl::sequence_place const row[]{{0, place}};
    auto const one = d(id, row);
    for (std::size_t i = 0; i < vocabulary; ++i)
      REQUIRE(std::abs(one[i] - y[std::size_t(place) * vocabulary + i]) < 1e-12);
  }
}

TEST_CASE("adapters out of range fit nowhere, and names are of layers, containers and matrices") {
  constexpr auto no_rank = nn::adapted(base, {.rank = 0});
  CHECK(nn::find_misfit(no_rank.body, no_rank.input, true).why == edl::fit::option_out_of_range);
  using detail = nn::detail::adapting;
  for (auto const* const name : {"query", "attention", "dense", "gate", "repeat", "product", "sequential"})
    CHECK(detail::finds(base.body, base.input, name));
  for (auto const* const name : {"", "querry", "rms_normalization", "embedding"})
    CHECK_FALSE(detail::finds(base.body, base.input, name));
}

}  // namespace adapted_test

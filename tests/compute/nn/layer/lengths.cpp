// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/lengths.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"

namespace lengths_test {

namespace nn = edl::nn;
using enum nn::lengths_fault;

namespace {

constexpr nn::ids of_16{.count = 16, .lengths = {8, 4}};
constexpr nn::embedding rows{.vocabulary = 9, .width = 4};
constexpr nn::dense answer{.units = 3};

constexpr auto network =
    nn::sequential(of_16,
                   nn::masked(rows, nn::positions{.most = 16},
                              nn::residual(nn::sequential(nn::layer_norm{}, nn::attention{.heads = 2})),
                              nn::bidirectional(nn::gru{.units = 3}), nn::global_average_pool{}),
                   answer);

using model = edl::model<network, edl::basic_cpu<double>>;

}  // namespace

TEST_CASE("a minibatch is as long as the least length that holds its longest sample") {
  CHECK(nn::plans_lengths(of_16));
  CHECK_FALSE(nn::plans_lengths(nn::ids{.count = 16}));
  CHECK_FALSE(nn::plans_lengths(nn::features{.count = 16}));
  CHECK(nn::planned_length(of_16, 0) == 4);
  CHECK(nn::planned_length(of_16, 4) == 4);
  CHECK(nn::planned_length(of_16, 5) == 8);
  CHECK(nn::planned_length(of_16, 9) == 16);
  CHECK(nn::planned_length(of_16, 16) == 16);
  std::vector<float> const ids{3, 0, 0, 0, /* holes count */ 0, 0, 7, 0, 0, 0, 0, 0};
  CHECK(nn::longest_of(nn::padding_mask{}, edl::view<float>(ids), 4) == 3);
  CHECK(nn::longest_of(nn::padding_mask{.id = 3}, edl::view<float>(ids), 4) == 4);
}

TEST_CASE("what is wrong with lengths is found") {
  auto const fault = [](auto const& start, auto const&... layers) {
    return nn::fault_of_lengths(nn::sequential(start, layers...));
  };
  auto const good = nn::masked(rows, nn::lstm{.units = 2, .last = true});
  CHECK(nn::fault_of_lengths(network) == none);
  CHECK(fault(of_16, good, answer) == none);
  CHECK(fault(of_16, nn::masked(rows, nn::attention{}), nn::dense{.units = 2, .each_place = true}) == none);
  CHECK(fault(nn::ids{.count = 16}, rows, answer) == none);  // none are planned
  CHECK(fault(nn::ids{.count = 16, .lengths = {16}}, good, answer) == out_of_range);
  CHECK(fault(nn::ids{.count = 16, .lengths = {4, -1}}, good, answer) == out_of_range);
  CHECK(fault(of_16, rows, answer) == not_masked);
  CHECK(fault(of_16, nn::masked(rows), answer) == sees_padding);
  CHECK(fault(of_16, nn::masked(rows), nn::batch_norm{}, nn::global_max_pool{}, answer) == sees_padding);
  CHECK(fault(of_16, nn::masked(rows), nn::global_max_pool{}, answer) == sees_padding);  // behind the mask
  CHECK(fault(of_16, nn::masked(rows), nn::residual(nn::attention{}), nn::dense{.units = 2}) == sees_padding);
  CHECK(fault(of_16, nn::masked(rows, nn::positions{}, nn::attention{}, nn::global_max_pool{}), answer) ==
        other_variables);
}

TEST_CASE("a model of a planned length gives what the longest gives, in less memory") {
  model m({.max_batch = 3, .seed = 5});
  int const samples = 3;
  std::vector<double> longest(16 * samples), shortest(4 * samples);
  for (std::size_t s = 0; s < samples; ++s)
    for (std::size_t i = 0; i <= s; ++i)
      longest[s * 16 + i] = shortest[s * 4 + i] = double(1 + (3 * s + i) % 8);
  auto const course = [&](std::vector<double> const& x, edl::shape of) {
    auto const y = m.forward(x, samples, edl::mode::training, 1, of);
    std::vector<double> all(y.begin(), y.end());
    std::ranges::copy(numbers<double>(y.size(), 8), m.output_gradient().begin());
    m.backward(x, samples);
    all.insert(all.end(), m.gradients().begin(), m.gradients().end());
    return all;
  };
  auto const whole = course(longest, {1, 1, 16}), part = course(shortest, {1, 1, 4});
  CHECK(greatest_difference(whole, part) < 1e-13);
  CHECK(m.last_output() == model::output);
  auto const used = [](int length) { return network.body.workspace({1, 1, length}, samples); };
  CHECK(used(4) < used(8));
  CHECK(used(8) < used(16));
}

}  // namespace lengths_test

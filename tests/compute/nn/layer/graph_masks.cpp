// SPDX-License-Identifier: Apache-2.0
// Masks in the functions of networks: they are those of the network's input, whatever result they follow.
#include <algorithm>
#include <vector>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/input_place.hpp"
#include "edl/compute/nn/layer/lengths.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
#include "edl/compute/nn/plan.hpp"

namespace graph_masks_test {

namespace nn = edl::nn;

namespace {

constexpr auto rows() { return nn::embedding{.vocabulary = 9, .width = 4}; }
constexpr auto turned = nn::residual(nn::attention{.heads = 2});
constexpr auto last() { return nn::gru{.units = 3, .last = true}; }
constexpr auto answer() { return nn::dense{.units = 3}; }

constexpr auto in =
    nn::inputs(nn::input<"age">(nn::features{.count = 2}), nn::input<"words">(nn::ids{.count = 6}),
               nn::input<"length">(nn::length{.most = 6}));
constexpr auto by_length = in.mask<"length">();

constexpr auto container = nn::sequential(
    in,
    nn::concat(nn::masked(by_length, in.from<"words">(rows(), turned, last())), in.from<"age">(nn::tanh{})),
    answer());
/// The same with one mask, and with a mask for each part between names.
constexpr auto one_mask = nn::graph(in, [](auto age, auto words, auto) {
  auto const all = words | nn::masked(by_length, rows(), turned, last());
  return nn::concat(all, age | nn::tanh{}) | answer();
});
constexpr auto some_masks = nn::graph(in, [](auto age, auto words, auto) {
  auto const a = words | rows();
  auto const b = a | nn::masked(by_length, nn::attention{.heads = 2});
  auto const c = a + b;
  return nn::concat(c | nn::masked(by_length, last()), age | nn::tanh{}) | answer();
});

template <auto const& Net>
std::vector<double> course() {
  edl::model<Net, edl::basic_cpu<double>> m({.max_batch = 3, .seed = 5});
  std::vector<double> const x{0.5, -1, 3, 1, 4, 1, 5, 2, 6, /* */ 1, 2, 6, 5, 3, 5, 8, 1, 2, /* */
                              2,   2,  7, 7, 7, 7, 7, 7, 0};
  auto const y = m.forward(x, 3, edl::mode::training, 1);
  std::vector<double> all(y.begin(), y.end());
  std::ranges::copy(numbers<double>(y.size(), 8), m.output_gradient().begin());
  m.backward(x, 3);
  all.insert(all.end(), m.gradients().begin(), m.gradients().end());
  return all;
}

}  // namespace

TEST_CASE("a mask by a length is one in a function, too") {
  auto const expected = course<container>();
  CHECK(course<one_mask>() == expected);
  CHECK(greatest_difference(course<some_masks>(), expected) < 1e-13);
  CHECK(nn::reads_all_inputs(one_mask));
}

namespace {

constexpr nn::ids of_16{.count = 16, .lengths = {8, 4}};
constexpr auto network = nn::graph(of_16, [](auto x) {
  auto const a = x | nn::masked(rows(), nn::positions{.most = 16});
  auto const b = a | nn::masked(nn::bidirectional(nn::gru{.units = 2}));
  auto const c = a * b | nn::tanh{};
  return nn::concat(c | nn::masked(nn::global_average_pool{}),
                    c | nn::masked(nn::dense{.units = 2, .each_place = true}, nn::global_max_pool{})) |
         answer();
});

}  // namespace

TEST_CASE("a minibatch of a function of ids may be shorter") {
  using enum nn::lengths_fault;
  CHECK(nn::fault_of_lengths(network) == none);
  CHECK(nn::mask_of_lengths(network).id == 0);
  edl::model<network, edl::basic_cpu<double>> m({.max_batch = 3, .seed = 5});
  std::vector<double> longest(16 * 3), shortest(4 * 3);
  for (std::size_t s = 0; s < 3; ++s)
    for (std::size_t i = 0; i <= s; ++i)
      longest[s * 16 + i] = shortest[s * 4 + i] = double(1 + (3 * s + i) % 8);
  auto const results = [&](std::vector<double> const& x, edl::shape of) {
    auto const y = m.forward(x, 3, edl::mode::training, 1, of);
    std::vector<double> all(y.begin(), y.end());
    std::ranges::copy(numbers<double>(y.size(), 8), m.output_gradient().begin());
    m.backward(x, 3);
    all.insert(all.end(), m.gradients().begin(), m.gradients().end());
    return all;
  };
  auto const whole = results(longest, {1, 1, 16});
  CHECK(greatest_difference(whole, results(shortest, {1, 1, 4})) < 1e-13);
  CHECK(network.body.workspace({1, 1, 4}, 3) < network.body.workspace({1, 1, 16}, 3));
}

TEST_CASE("what is wrong with masks of functions is found") {
  using enum nn::lengths_fault;
  auto const fault = [](auto const& f) { return nn::fault_of_lengths(nn::graph(of_16, f)); };
  CHECK(fault([](auto x) { return x | rows() | nn::masked(last()) | answer(); }) == none);
  CHECK(fault([](auto x) { return x | rows() | last() | answer(); }) == not_masked);
  CHECK(fault([](auto x) {
          auto const a = x | nn::masked(rows());
          return nn::concat(a | nn::masked(last()), a | nn::masked(nn::padding_mask{.id = 1}, last())) |
                 answer();
        }) == not_masked);
  CHECK(fault([](auto x) {
          auto const a = x | nn::masked(rows());
          return (a + a) | nn::global_max_pool{} | answer();
        }) == sees_padding);
  CHECK(fault([](auto x) {
          auto const a = x | nn::masked(rows());
          return nn::matmul(a, a | nn::transpose{}) | nn::masked(last()) | answer();
        }) == sees_padding);

  auto const misfit = [](auto const& net) { return nn::find_misfit(net.body, net.input, net.of_ids); };
  CHECK(misfit(some_masks).none());
  auto const other = misfit(nn::graph(in, [](auto, auto words, auto) {
    auto const a = words | rows() | nn::slice{.count = 5, .along = nn::places};
    return a | nn::masked(by_length, last()) | answer();
  }));
  CHECK(other.wrong.what == nn::expression::mistake_kind::places_of_mask);
  CHECK(other.wrong.first == edl::shape{1, 6, 1});
  CHECK(other.wrong.second == edl::shape{1, 5, 4});
  CHECK(misfit(nn::graph(nn::image{.width = 4}, [](auto x) {
          return x | nn::masked(last()) | answer();
        })).why == edl::fit::takes_only_ids);
  CHECK(misfit(nn::graph(of_16, [](auto x) {
          return x | rows() | nn::residual(nn::masked(last())) | answer();
        })).why != edl::fit::fits);
}

}  // namespace graph_masks_test

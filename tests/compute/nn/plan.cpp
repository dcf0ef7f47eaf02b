// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/device/backend.hpp"
#include "edl/compute/nn/layers.hpp"

namespace plan_test {

namespace nn = edl::nn;

namespace {

constexpr auto net =
    nn::sequential(nn::conv2d{.filters = 2, .kernel = 3}, nn::batch_norm{},
                   nn::conv2d{.filters = 3, .kernel = 1, .use_bias = false},
                   nn::residual(nn::sequential(nn::conv2d{.filters = 4, .kernel = 1}, nn::batch_norm{}),
                                nn::conv2d{.filters = 4}),
                   nn::sequential(nn::dense{.units = 2}),
                   nn::concat(nn::dense{.units = 1}, nn::dense{.units = 2}), nn::dense{.units = 5});

struct forgetful {
  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }
  void forward(auto&, auto const&) const {}
};

std::vector<std::string> names(edl::parameter_layout const& l) {
  std::vector<std::string> all;
  for (auto const& v : l.variables) all.push_back(v.name);
  return all;
}

}  // namespace

TEST_CASE("variables are named by what keeps them, where it stands") {
  CHECK(names(nn::layout_of(net, {4, 4, 1})) ==
        std::vector<std::string>{"conv2d/kernel",
                                 "conv2d/bias",
                                 "batch_normalization/gamma",
                                 "batch_normalization/beta",
                                 "conv2d_1/kernel",
                                 "residual/body/conv2d/kernel",
                                 "residual/body/conv2d/bias",
                                 "residual/body/batch_normalization/gamma",
                                 "residual/body/batch_normalization/beta",
                                 "residual/projection/kernel",
                                 "residual/projection/bias",
                                 "sequential/dense/kernel",
                                 "sequential/dense/bias",
                                 "concat/dense/kernel",
                                 "concat/dense/bias",
                                 "concat/dense_1/kernel",
                                 "concat/dense_1/bias",
                                 "dense/kernel",
                                 "dense/bias",
                                 "batch_normalization/moving_mean",
                                 "batch_normalization/moving_variance",
                                 "residual/body/batch_normalization/moving_mean",
                                 "residual/body/batch_normalization/moving_variance"});
}

TEST_CASE("variables lie without gaps, parameters first") {
  auto const l = nn::layout_of(net, {4, 4, 1});
  auto const n = nn::count(net, {4, 4, 1});
  CHECK(l.parameters == n.parameters);
  CHECK(l.state == n.state);
  CHECK(n.state == 2 * 2 + 2 * 4);
  std::size_t at = 0;
  for (auto const& v : l.variables) {
    CHECK(v.offset == at);
    at += v.dims.size();
  }
  CHECK(at == l.size());
  CHECK(l.variables[0].dims == edl::extents{3, 3, 1, 2});
}

TEST_CASE("any range of the arena is drawn alone, bit by bit as in the whole") {
  edl::shape const in{4, 4, 1};
  edl::random_stream const random{5, 0};
  std::vector<float> whole(nn::layout_of(net, in).size());
  nn::draw(net, in, random, 0, std::span(whole));
  CHECK(std::set<float>(whole.begin(), whole.end()).size() > whole.size() / 2);
  for (std::size_t first = 0; first < whole.size(); first += 7)
    for (std::size_t n : {0, 1, 20}) {
      std::vector<float> part(std::min(n, whole.size() - first), 77);
      nn::draw(net, in, random, first, std::span(part));
      CHECK(std::ranges::equal(part, std::span(whole).subspan(first, part.size())));
    }
}

TEST_CASE("variables start as their initialisers say") {
  edl::shape const in{4, 4, 1};
  std::vector<float> v(nn::layout_of(net, in).size());
  nn::draw(net, in, edl::random_stream{5, 0}, 0, std::span(v));
  for (auto const& var : nn::layout_of(net, in).variables) {
    auto const part = std::span(v).subspan(var.offset, var.dims.size());
    auto const ends = [&](char const* s) { return var.name.ends_with(s); };
    if (ends("bias") || ends("beta") || ends("mean"))
      CHECK(std::ranges::count(part, 0.0f) == std::ssize(part));
    if (ends("gamma") || ends("variance")) CHECK(std::ranges::count(part, 1.0f) == std::ssize(part));
    if (ends("kernel")) CHECK(std::ranges::count(part, 0.0f) == 0);
  }
}

TEST_CASE("a layer that does not fit is found, however deep") {
  constexpr auto bad = nn::sequential(
      nn::relu{}, nn::residual(nn::sequential(nn::relu{}, nn::sequential(nn::max_pool{.window = 9}))),
      nn::relu{});
  constexpr auto found = nn::find_misfit(bad, {4, 4, 2});
  CHECK(found.why == edl::fit::window_exceeds_input);
  CHECK(found.input == edl::shape{4, 4, 2});
  REQUIRE(found.depth == 4);
  CHECK(std::ranges::equal(std::span(found.path).first(4), std::array{1, 0, 1, 0}));
  CHECK(nn::find_misfit(net, {4, 4, 1}).why == edl::fit::fits);
}

TEST_CASE("an option that a layer lacks is named") {
  constexpr auto missing_option = [](auto const& l) {
    return nn::find_misfit(nn::sequential(l), {4, 4, 2}).missing;
  };
  CHECK(missing_option(nn::dense{}) == nn::missing_part::units);
  CHECK(missing_option(nn::conv2d{.kernel = 3}) == nn::missing_part::filters);
  CHECK(missing_option(nn::dense{.units = -1}) == nn::missing_part::nothing);
  CHECK(missing_option(nn::dropout{.rate = 2}) == nn::missing_part::nothing);
  CHECK(nn::missing_option(nn::embedding{.width = 2}) == nn::missing_part::vocabulary);
  CHECK(nn::missing_option(nn::embedding{.vocabulary = 2}) == nn::missing_part::width);
  CHECK_FALSE(nn::find_misfit(nn::sequential(nn::dense{}), {4, 4, 2}).none());
}

TEST_CASE("a layer that lacks a part of its code is found, however deep") {
  constexpr auto bad = nn::sequential(nn::relu{}, nn::residual(nn::sequential(nn::relu{}, forgetful{})));
  constexpr auto found = nn::find_unfinished<edl::basic_backend<float>>(bad, {1, 1, 3});
  CHECK(found.missing == nn::missing_part::backward);
  REQUIRE(found.depth == 3);
  CHECK(std::ranges::equal(std::span(found.path).first(3), std::array{1, 0, 1}));
  CHECK(nn::find_unfinished<edl::basic_backend<float>>(net, {4, 4, 1}).none());
}

TEST_CASE("what containers disagree about is theirs") {
  constexpr auto bad = nn::sequential(nn::relu{}, nn::residual(nn::dense{.units = 1}));
  constexpr auto found = nn::find_misfit(bad, {4, 4, 2});
  CHECK(found.why == edl::fit::branches_differ_in_shape);
  REQUIRE(found.depth == 1);
  CHECK(found.path[0] == 1);
}

}  // namespace plan_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/graph.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/input_place.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
#include "edl/core/error.hpp"
#include "text.hpp"

namespace graph_layer_test {

namespace nn = edl::nn;
using edl::mode;

namespace {

constexpr auto same = nn::padding::same;

constexpr auto conv(int filters) { return nn::conv2d{.filters = filters, .kernel = 3, .padding = same}; }

/// A result that is used again at once, and one that waits for the end.
constexpr auto diamond = nn::graph([](auto x) {
  auto const a = x | nn::dense{.units = 4} | nn::tanh{};
  auto const b = a | nn::dense{.units = 4} | nn::relu{};
  auto const c = a | nn::sigmoid{};
  return ((b + c) * a) | nn::dense{.units = 3};
});

constexpr auto unet = nn::graph([](auto x) {
  auto const block = [](auto in, int filters) { return in | conv(filters) | nn::batch_norm{} | nn::relu{}; };
  auto const a = block(x, 4);
  auto const b = block(a | nn::max_pool{.window = 2}, 6);
  auto const c = block(b | nn::max_pool{.window = 2}, 8);
  auto const d = block(nn::concat(c | nn::upsample{}, b), 6);
  return nn::concat(d | nn::upsample{}, a) | conv(2);
});

/// Layers of one name at three places, of which two are given the input.
constexpr auto towers = nn::graph([](auto x) {
  auto const tower = nn::shared<"tower">(nn::dense{.units = 4, .each_place = true}, nn::tanh{});
  auto const one = nn::shared<"one">(nn::dense{.units = 3});
  auto const a = x | tower;
  auto const b = x | nn::tanh{} | tower;
  return nn::concat(a | one, b | one, x | tower | one) | nn::dense{.units = 2};
});

/// What is used twice by one joint, what goes to the result beside others, a joint of the input.
constexpr auto twice = nn::graph([](auto x) {
  auto const a = x + x;
  auto const b = a * a | nn::dense{.units = 3};
  return nn::concat(b, b, x * x * x | nn::dense{.units = 2}, x);
});

/// A head in the middle, and a graph within a container within a graph.
constexpr auto auxiliary = nn::graph([](auto x) {
  auto const early = x | nn::dense{.units = 5} | nn::tanh{};
  auto const late = early | nn::residual(nn::graph([](auto in) {
                      auto const half = in | nn::dense{.units = 5} | nn::sigmoid{};
                      return half * in | nn::dense{.units = 5};
                    }));
  return nn::concat(late | nn::dense{.units = 2}, early | nn::dense{.units = 1});
});

/// No joint reads a result in the backward pass here: results lie in scratch, and gradients beside them.
constexpr auto sums = nn::graph([](auto x) {
  auto a = x | nn::dense{.units = 4};
  auto b = x | nn::dense{.units = 4};
  auto c = x | nn::dense{.units = 4};
  return nn::concat(a + b, b + c, c + a) + nn::concat(b, c, a);
});

constexpr auto excite = nn::graph(nn::image{.height = 4, .width = 4, .channels = 6}, [](auto x) {
  auto const squeezed =
      x | nn::global_average_pool{} | nn::dense{.units = x.shape().channels / 2} | nn::tanh{};
  auto const gate = squeezed | nn::dense{.units = x.shape().channels} | nn::sigmoid{};
  return x * (gate | nn::upsample{.factor = 4}) | nn::global_average_pool{} | nn::dense{.units = 2};
});

constexpr auto inputs =
    nn::inputs(nn::input<"user">(nn::features{.count = 5}), nn::input<"item">(nn::features{.count = 5}),
               nn::input<"price">(nn::features{.count = 1}));
constexpr auto matching = nn::graph(inputs, [](auto user, auto item, auto price) {
  auto const tower = nn::shared<"tower">(nn::dense{.units = 4}, nn::tanh{}, nn::dense{.units = 3});
  auto const a = user | tower;
  auto const b = item | tower;
  return nn::concat(a * b, a, price | nn::dense{.units = 2} | nn::tanh{}, price) | nn::dense{.units = 1};
});

/// Kernels that are not trained, alone and shared, before and behind those that are.
constexpr auto frozen = nn::graph([](auto x) {
  auto const fixed = nn::shared<"fixed">(
      nn::conv2d{.filters = 2, .kernel = 3, .padding = same, .use_bias = false, .train_kernel = false});
  auto const a =
      x | fixed | nn::conv2d{.filters = 2, .kernel = 3, .padding = same, .train_kernel = false} | nn::tanh{};
  auto const b = a | fixed;
  auto const c = (b * a | nn::dense{.units = 2, .each_place = true}) + b + (x | fixed);
  return c | nn::dense{.units = 2, .each_place = true} | nn::tanh{};
});

/// Most results that a function may have, and joints of one operand and of many.
constexpr auto deep = nn::graph([](auto x) {
  auto const a = nn::sum(x) | nn::dense{.units = 3};
  auto b = a + x;
  for (int i = 0; i < 59; ++i) b = i % 2 ? b + a : b + x;
  return nn::sum(a, a, x, a, x, a, a, a, a, a, a, a, a, a, a, nn::product(b));
});

template <class Layer>
lone_layer<Layer> after_both_passes(Layer const& l, edl::shape in, nn::pass_size size) {
  lone_layer<Layer> h{.l = l, .in = in, .batch = size};
  h.forward();
  h.backward();
  return h;
}

struct wrong_length {
  constexpr auto forward(auto x, auto& layer) const {
    return x * layer.variable("a", nn::axis_length{nn::channels, 5}, nn::constant{1});
  }
};

}  // namespace

TEST_CASE("gradients of graphs") {
  check_gradients(diamond, {1, 1, 3});
  check_gradients(diamond, {1, 1, 3}, mode::training, 1);
  check_gradients(unet, {8, 4, 2});
  check_gradients(unet, {4, 4, 1}, mode::evaluation);
  check_gradients(towers, {1, 2, 4});
  check_gradients(twice, {1, 1, 3});
  check_gradients(auxiliary, {1, 1, 3});
  check_gradients(sums, {1, 1, 3});
  check_gradients(frozen, {3, 3, 2});
  CHECK(deep.size == deep.most);
  check_gradients(deep, {1, 1, 3}, mode::training, 2);
  check_gradients(excite.body, excite.input);
  check_gradients(matching.body, matching.input);
}

namespace {

// The same networks as containers and as functions, of which those below know the names and the order.
constexpr nn::image picture{.height = 8, .width = 8, .channels = 2};
constexpr auto chain = nn::sequential(picture, conv(4), nn::batch_norm{}, nn::relu{}, nn::max_pool{}, conv(3),
                                      nn::relu{}, nn::dense{.units = 5});
constexpr auto chain_of_results = nn::graph(picture, [](auto x) {
  auto const a = x | conv(4) | nn::batch_norm{} | nn::relu{} | nn::max_pool{};
  auto const b = a | conv(3) | nn::relu{};
  return b | nn::dense{.units = 5};
});
constexpr auto tree = nn::sequential(
    picture, conv(4), nn::relu{},
    nn::residual(nn::sequential(conv(4), nn::batch_norm{}, nn::relu{}, conv(4))),
    nn::concat(nn::global_max_pool{}, nn::sequential(nn::global_average_pool{}, nn::dense{.units = 3})),
    nn::dense{.units = 5});
constexpr auto tree_of_results = nn::graph(picture, [](auto x) {
  auto const a = x | conv(4) | nn::relu{};
  auto const b = a | nn::shared<"residual/body/conv2d">(conv(4)) |
                 nn::shared<"residual/body/batch_normalization">(nn::batch_norm{}) | nn::relu{} |
                 nn::shared<"residual/body/conv2d_1">(conv(4));
  auto const c = b + a;
  auto const pooled =
      c | nn::global_average_pool{} | nn::shared<"concat/sequential/dense">(nn::dense{.units = 3});
  return nn::concat(c | nn::global_max_pool{}, pooled) | nn::dense{.units = 5};
});

template <auto const& Container, auto const& Function>
void compare() {
  edl::model<Container, edl::cpu> a({.max_batch = 4});
  edl::model<Function, edl::cpu> b({.max_batch = 4});
  auto const left = a.layout(), right = b.layout();
  REQUIRE(left.variables.size() == right.variables.size());
  for (std::size_t i = 0; i < left.variables.size(); ++i) {
    CHECK(left.variables[i].name == right.variables[i].name);
    CHECK(left.variables[i].offset == right.variables[i].offset);
    CHECK(left.variables[i].dims == right.variables[i].dims);
  }
  CHECK(std::ranges::equal(a.variables(), b.variables()));
  for (int step = 0; step < 3; ++step) {
    auto const x = numbers<float>(4 * Container.input.size(), 1 + step), dy = numbers<float>(4 * 5, 9);
    auto const one = a.forward(x, 4, mode::training, std::uint64_t(step)),
               other = b.forward(x, 4, mode::training, std::uint64_t(step));
    CHECK(greatest_difference(one, other) < 1e-5);
    std::ranges::copy(dy, a.output_gradient().begin());
    std::ranges::copy(dy, b.output_gradient().begin());
    a.backward(x, 4);
    b.backward(x, 4);
    CHECK(greatest_difference(a.gradients(), b.gradients()) < 1e-4);
    for (std::size_t i = 0; i < a.gradients().size(); ++i) a.parameters()[i] -= 0.1f * a.gradients()[i];
    std::ranges::copy(a.variables(), b.variables().begin());
  }
}

}  // namespace

TEST_CASE("a function computes what containers do, with the same variables") {
  compare<chain, chain_of_results>();
  compare<tree, tree_of_results>();
}

TEST_CASE("variables are called as those of one chain are, and those that are shared by their name, once") {
  auto const names = [](auto const& layout) {
    std::string all;
    for (auto const& v : layout.variables) all += v.name + ' ';
    return all;
  };
  CHECK(names(edl::model<matching, edl::cpu>::layout()) ==
        "tower/dense/kernel tower/dense/bias tower/dense_1/kernel tower/dense_1/bias dense/kernel dense/bias "
        "dense_1/kernel dense_1/bias ");
  CHECK(names(nn::layout_of(towers, {1, 2, 4})) ==
        "tower/dense/kernel tower/dense/bias one/kernel one/bias dense/kernel dense/bias ");
  CHECK(names(nn::layout_of(nn::sequential(nn::dense{.units = 3}, auxiliary, nn::dense{.units = 3}),
                            {1, 1, 3})) ==
        "dense/kernel dense/bias graph/dense/kernel graph/dense/bias graph/residual/body/dense/kernel "
        "graph/residual/body/dense/bias graph/residual/body/dense_1/kernel graph/residual/body/dense_1/bias "
        "graph/dense_1/kernel graph/dense_1/bias graph/dense_2/kernel graph/dense_2/bias dense_1/kernel "
        "dense_1/bias ");
}

TEST_CASE("no two variables have one name") {
  auto const twins = nn::graph([](auto x) {
    return x | nn::dense{.units = 3} | nn::dense{.units = 3} | nn::shared<"dense_1">(nn::dense{.units = 3});
  });
  CHECK_THROWS_WITH_AS(nn::layout_of(twins, {1, 1, 3}),
                       "two variables of the network are called dense_1/bias: give a layer another name "
                       "(nn::named, nn::shared)",
                       edl::error);
}

TEST_CASE("what nodes keep may be computed again, and changes no bit") {
  for (auto keep : {nn::storage::float32, nn::storage::recomputed, nn::storage::compact}) {
    nn::pass_size size{3, keep};
    auto const whole = after_both_passes(unet, {8, 8, 2}, size);
    for (int const set :
         {1, 4, 4 + 16, 1 + 2 + 4, (1 << 10) - 1}) {  // of those that keep something, and others
      std::vector<std::uint16_t> again(std::size_t(unet.most));
      for (int k = 0; k < unet.size; ++k) again[std::size_t(k)] = set >> k & 1;
      size.again = again.data();
      auto const h = after_both_passes(unet, {8, 8, 2}, size);
      CHECK(h.saved.size() < whole.saved.size());
      CHECK(h.y == whole.y);
      CHECK(h.dx == whole.dx);
      CHECK(h.state == whole.state);
      CHECK(h.gradients == whole.gradients);
    }
  }
  // A state that results depend on, and a last node that keeps something.
  auto const whole = after_both_passes(frozen, {3, 3, 2}, 2);
  std::vector<std::uint16_t> const again(std::size_t(frozen.most), 1);
  nn::pass_size size = 2;
  size.again = again.data();
  auto const h = after_both_passes(frozen, {3, 3, 2}, size);
  CHECK(h.y == whole.y);
  CHECK(h.dx == whole.dx);
  CHECK(h.gradients == whole.gradients);
}

namespace {

constexpr auto noisy = nn::graph([](auto x) {
  auto const drop = nn::shared<"drop">(nn::dropout{.rate = 0.5f});
  auto const a = x | nn::dense{.units = 40, .use_bias = false} | nn::dropout{.rate = 0.5f};
  return nn::concat(a | drop, x | drop, x | nn::dropout{.rate = 0.5f}, x | nn::dropout{.rate = 0.5f});
});

}  // namespace

TEST_CASE("every use of a layer draws numbers of its own, the same again in the backward pass") {
  check_gradients(noisy, {1, 1, 40});
  nn::pass_size size = 1;
  auto const whole = after_both_passes(noisy, {1, 1, 40}, size);
  auto const zeros = [&](std::size_t part) {
    std::vector<bool> all;
    for (std::size_t i = 0; i < 40; ++i) all.push_back(whole.y[40 * part + i] == 0);
    return all;
  };
  CHECK(zeros(1) != zeros(2));
  CHECK(zeros(2) != zeros(3));
  std::vector<std::uint16_t> const again(std::size_t(noisy.most), 1);
  size.again = again.data();
  auto const h = after_both_passes(noisy, {1, 1, 40}, size);
  CHECK(h.y == whole.y);
  CHECK(h.dx == whole.dx);
  CHECK(h.gradients == whole.gradients);
}

TEST_CASE("passes of other sizes and modes between do not matter") {
  edl::model<tree_of_results, edl::cpu> a({.max_batch = 4}), b({.max_batch = 2});
  auto const x = numbers<float>(4 * picture.input().size(), 1);
  auto const some = std::span(x).first(2 * picture.input().size());
  a.forward(x, 4, mode::evaluation);
  for (auto const what : {mode::training, mode::evaluation}) {
    for (auto* const m : {&a.parameters()[0], &b.parameters()[0]}) *m += 1;
    auto const y = b.forward(some, 2, what, 7);
    CHECK(std::ranges::equal(a.forward(some, 2, what, 7), y));
    for (auto const to : {a.output_gradient(), b.output_gradient()})
      std::ranges::copy(numbers<float>(y.size(), 9), to.begin());
    a.backward(some, 2);
    b.backward(some, 2);
    CHECK(std::ranges::equal(a.gradients(), b.gradients()));
  }
  CHECK(std::ranges::equal(a.state(), b.state()));
}

namespace {

constexpr auto blocks = nn::graph(nn::image{.height = 16, .width = 16, .channels = 3}, [](auto x) {
  auto const block = [](auto in) {
    return in | conv(8) | nn::batch_norm{} | nn::relu{} | conv(8) | nn::batch_norm{};
  };
  auto const a = block(x);
  auto const b = block(a);
  auto const c = block(a + b);
  auto const d = block(b + c);
  return (a + d) | conv(2);
});

}  // namespace

TEST_CASE("a graph keeps to a bound of memory, and computes the same bits") {
  using network = edl::model<blocks, edl::cpu>;
  network::options o{.max_batch = 4, .device = {.threads = 2, .kernels = edl::kernels::own}};
  auto const x = numbers<float>(4 * blocks.input.size(), 1);
  auto const course = [&](network& m) {
    auto const y = m.forward(x, 4, mode::training);
    std::vector<float> all(y.begin(), y.end());
    std::ranges::copy(numbers<float>(y.size(), 9), m.output_gradient().begin());
    m.backward(x, 4);
    all.insert(all.end(), m.gradients().begin(), m.gradients().end());
    return all;
  };
  network whole(o);
  auto const expected = course(whole);
  for (double const share : {1.0, 0.95, 0.9}) {
    o.memory_budget = std::size_t(double(whole.memory().total()) * share);
    network bounded(o);
    CHECK(bounded.memory().total() <= o.memory_budget);
    CHECK((bounded.plan().steps > 0) == (share < 1));
    CHECK(course(bounded) == expected);
  }
  o.memory_budget = 100'000;
  CHECK_THROWS_AS(network{o}, edl::usage_error);
}

TEST_CASE("who listens to a backward pass is told of gradients that stay as they are") {
  edl::model<matching, edl::cpu> m({.max_batch = 2});
  auto const x = numbers<float>(2 * matching.input.size(), 1);
  m.forward(x, 2, mode::training);
  std::ranges::copy(numbers<float>(2, 9), m.output_gradient().begin());
  std::vector<std::size_t> told;
  std::vector<float> seen(m.gradients().size());
  m.backward(x, 2, [&](std::size_t first) {
    if (!told.empty()) {
      auto const before = std::span(seen).subspan(told.back());
      CHECK(std::ranges::equal(before, m.gradients().subspan(told.back())));
    }
    told.push_back(first);
    std::ranges::copy(m.gradients().subspan(first), seen.begin() + std::ptrdiff_t(first));
  });
  CHECK(std::ranges::is_sorted(told, std::greater{}));
  CHECK(told.size() > 2);
  CHECK(told.back() == 0);
  CHECK(std::ranges::equal(seen, m.gradients()));
}

TEST_CASE("mistakes of functions are found") {
  using enum edl::nn::expression::mistake_kind;
  auto const what = [](auto const& g, edl::shape in = {1, 1, 3}) { return g.wrong(in).what; };
  auto const first = [](auto const& g, edl::shape in = {1, 1, 3}) { return g.wrong(in).first; };
  CHECK(what(diamond) == none);
  auto const sum = nn::graph([](auto x) { return x + (x | nn::dense{.units = 4}); });
  CHECK(what(sum) == shapes_of_elements);
  CHECK(first(sum) == edl::shape{1, 1, 3});
  CHECK(sum.wrong({1, 1, 3}).second == edl::shape{1, 1, 4});
  CHECK(what(sum, {1, 1, 4}) == none);
  CHECK(what(nn::graph([](auto x) { return nn::concat(x, x | nn::max_pool{}); }), {2, 2, 1}) ==
        shapes_beside);
  CHECK(what(nn::graph([](auto x) {
          (void)(x | nn::dense{.units = 3});
          return x | nn::tanh{};
        })) == unused_result);
  CHECK(what(nn::graph([](auto x) {
          auto const a = x | nn::dense{.units = 3};
          (void)(a + x);
          return a | nn::tanh{};
        })) == unused_result);
  CHECK(what(nn::graph([](auto x) {
          auto const t = nn::shared<"t">(nn::dense{.units = 3});
          return (x | t) + (x | nn::dense{.units = 4} | t);
        })) == shapes_of_shared);
  CHECK(what(nn::graph([](auto x) {
          return (x | nn::shared<"t">(nn::dense{.units = 3})) + (x | nn::shared<"t">(nn::dense{.units = 3}));
        })) == name_of_shared);
  CHECK(what(nn::graph([](auto x) {
          auto a = x | nn::dense{.units = 3};
          auto b = std::move(a) | nn::tanh{};
          return a + b;
        })) == result_used_after_move);
  CHECK(what(nn::graph([](auto x) { return x; })) == no_layer_in_graph);
  CHECK(what(nn::graph([](auto x) {
          auto b = (x | nn::tanh{}) + x;
          for (int i = 0; i < 70; ++i) b = b + x;
          return b;
        })) == too_many_results);
  CHECK(what(nn::graph([](auto x) { return nn::concat(x, x | nn::max_pool{.window = {1, 2}}); }),
             {1, 2, 1}) == shapes_beside);
  // Of what is within something that is within.
  auto const found =
      nn::find_misfit(nn::graph([](auto x) {
                        auto const a = x | nn::tanh{};
                        return a + (a | nn::graph([](auto in) { return in + (in | nn::dense{.units = 4}); }));
                      }),
                      {1, 1, 3});
  CHECK(found.wrong.what == shapes_of_elements);
  CHECK(found.depth == 3);
  auto const own = nn::find_misfit(nn::graph([](auto x) { return x + (x | wrong_length{}); }), {1, 1, 3});
  CHECK(own.wrong.what == length_of_variable);
  CHECK(own.wrong.second == edl::shape{1, 1, 3});
  using enum edl::fit;
  CHECK(nn::graph([](auto x) { return x + (x | nn::dense{}); }).check({1, 1, 3}) == option_out_of_range);
  constexpr auto ids = nn::graph(nn::ids{.count = 3}, [](auto x) {
    return (x | nn::embedding{.vocabulary = 9, .width = 2} | nn::flatten{}) + (x | nn::dense{.units = 6});
  });
  CHECK(nn::find_misfit(ids.body, ids.input, true).why == takes_no_ids);
  constexpr auto added = nn::graph(nn::ids{.count = 3}, [](auto x) {
    return x + (x | nn::embedding{.vocabulary = 9, .width = 1} | nn::flatten{});
  });
  CHECK(nn::find_misfit(added.body, added.input, true).why == takes_no_ids);
  constexpr auto right = nn::graph(nn::ids{.count = 3}, [](auto x) {
    auto const a = x | nn::embedding{.vocabulary = 9, .width = 2} | nn::flatten{};
    return a + (a | nn::dense{.units = 6});
  });
  CHECK(nn::find_misfit(right.body, right.input, true).none());
}

namespace {

constexpr auto words =
    nn::inputs(nn::input<"read">(nn::ids{.count = 3}), nn::input<"page">(nn::ids{.count = 1}));
constexpr auto pages = nn::graph(words, [](auto read, auto page) {
  auto const titles = nn::shared<"titles">(nn::embedding{.vocabulary = 9, .width = 4});
  auto const user = read | titles | nn::global_average_pool{};
  auto const item = page | titles | nn::flatten{};
  return user * item | nn::dense{.units = 1};
});

}  // namespace

TEST_CASE("an embedding is shared, and all of its ids are known") {
  CHECK(nn::find_misfit(pages.body, pages.input, pages.of_ids).none());
  CHECK(nn::reads_all_inputs(pages));
  std::vector<int> seen;
  nn::for_each_ids(pages.body, pages.input, {}, [&](nn::id_range r, int vocabulary, bool) {
    seen.insert(seen.end(), {r.first, r.count, vocabulary});
  });
  CHECK(seen == std::vector{0, 3, 9, 3, 1, 9});
  edl::model<pages, edl::cpu> m;
  CHECK(m.layout().variables[0].name == "titles/embeddings");
  std::vector<float> const x{1, 2, 1, 2};
  auto const v = m.variables();
  float const a = v[4] * 2 + v[8], b = v[8];
  auto const y = m.forward(x, 1, mode::training);
  CHECK(std::isfinite(y[0]));
  CHECK(a != b);
}

}  // namespace graph_layer_test

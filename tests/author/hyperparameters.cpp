// SPDX-License-Identifier: Apache-2.0
#include "edl/author/hyperparameters.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "edl/author/model_learner.hpp"
#include "edl/author/model_traits.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/device/cpu.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/compute/nn/metrics.hpp"
#include "edl/compute/nn/model.hpp"
#include "edl/compute/optim/optimizers.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/core/error.hpp"

namespace hyperparameters_test {

namespace {

namespace nn = edl::nn;

struct wide {
  float a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
  int i = 9, j = 10, k = 11, l = 12;
  bool m = true, n = false;
  double o = 15;
  std::uint64_t p = 16;
};

struct model {
  struct hyperparameters {
    edl::hyperparameter<float> rate{0.1f, "learning rate at the start", 0, 1};
    edl::hyperparameter<std::uint64_t> halving{100, "steps until the rate is halved", 1};
    float smoothing = 0;
    float drop = 0.5f;
  };
  static constexpr auto network =
      nn::sequential(nn::features{.count = 4}, nn::dense{.units = 64},
                     nn::sequential(nn::dropout{.rate = edl::set_by<&hyperparameters::drop>}));
  static auto loss(hyperparameters const& h) {
    return nn::softmax_cross_entropy{.label_smoothing = h.smoothing};
  }
  static auto optimizer(hyperparameters const& h) {
    return edl::adam{.learning_rate = h.rate, .weight_decay = h.drop};
  }
  static auto schedule(hyperparameters const& h) {
    return edl::exponential_decay{.rate = h.rate, .factor = 0.5f, .steps = h.halving, .staircase = true};
  }
  static void feed(edl::example const&, edl::sample<model>&, edl::mode) {}
};

edl::train::hyperparameters changed(std::string const& text) {
  auto all = edl::author::describe(model::hyperparameters{});
  edl::train::set(all, edl::train::read_settings(text));
  return all;
}

// Everything that hyperparameters reach, as constants: a model of constants has these, or one of them
// changed.
struct usual {
  static constexpr float drop = 0.1f, weights = 0.1f, slope = 0.2f, alpha = 1, factor = 2, momentum = 0.9f,
                         smoothing = 0, of_class = 1, of_head = 1, rate = 0.02f, factor_of_rate = 1,
                         decay = 0;
  static constexpr int moved = 0;
};

struct all_hyperparameters {
  float drop = usual::drop, weights = usual::weights, slope = usual::slope, alpha = usual::alpha,
        factor = usual::factor, momentum = usual::momentum, smoothing = usual::smoothing,
        of_class = usual::of_class, of_head = usual::of_head, rate = usual::rate,
        factor_of_rate = usual::factor_of_rate, decay = usual::decay;
  int moved = usual::moved;
};

template <class Drop, class Settings>
constexpr auto network_of(Drop drop, Drop weights, Settings slope, Settings alpha, Settings factor,
                          Settings momentum) {
  return nn::sequential(nn::image{.height = 6, .width = 6}, nn::conv2d{.filters = 4, .kernel = 3},
                        nn::batch_norm{.momentum = momentum}, nn::leaky_relu{.slope = slope},
                        nn::attention{.heads = 2, .dropout = weights}, nn::elu{.alpha = alpha},
                        nn::scale{.factor = factor}, nn::dropout{.rate = drop}, nn::dense{.units = 4});
}

template <class Model>
void feed_one(edl::example const& record, edl::sample<Model>& into) {
  auto const x = record.float_values("x");
  std::ranges::copy(x, into.features.begin());
}

/// A loss of classes, or two heads.
template <class V>
struct constants {
  static constexpr auto network = network_of(V::drop, V::weights, V::slope, V::alpha, V::factor, V::momentum);
  static constexpr nn::softmax_cross_entropy loss{.label_smoothing = V::smoothing,
                                                  .class_weights = {V::of_class, 1, 1, 1}};
  static constexpr edl::adamw optimizer{.weight_decay = V::decay};
  static constexpr edl::exponential_decay schedule{.rate = V::rate, .factor = V::factor_of_rate, .steps = 2};
  static constexpr auto augmentation = edl::augment(edl::random_crop{.padding = V::moved});
  static void feed(edl::example const& record, edl::sample<constants>& into, edl::mode) {
    feed_one(record, into);
    into.label = record.integer("class");
  }
};

struct settings {
  using hyperparameters = all_hyperparameters;
  static constexpr auto network =
      network_of(edl::set_by<&hyperparameters::drop>, edl::set_by<&hyperparameters::weights>,
                 edl::set_by<&hyperparameters::slope>, edl::set_by<&hyperparameters::alpha>,
                 edl::set_by<&hyperparameters::factor>, edl::set_by<&hyperparameters::momentum>);
  static auto loss(hyperparameters const& set) {
    return nn::softmax_cross_entropy{.label_smoothing = set.smoothing,
                                     .class_weights = {set.of_class, 1, 1, 1}};
  }
  static auto optimizer(hyperparameters const& set) { return edl::adamw{.weight_decay = set.decay}; }
  static auto schedule(hyperparameters const& set) {
    return edl::exponential_decay{.rate = set.rate, .factor = set.factor_of_rate, .steps = 2};
  }
  static auto augmentation(hyperparameters const& set) {
    return edl::augment(edl::random_crop{.padding = set.moved});
  }
  static void feed(edl::example const& record, edl::sample<settings>& into, edl::mode) {
    feed_one(record, into);
    into.label = record.integer("class");
  }
};

template <class Model>
struct two_heads {
  static constexpr auto network = nn::sequential(nn::image{.height = 6, .width = 6}, nn::dense{.units = 4});
  static constexpr edl::adam optimizer{};
  static void feed(edl::example const& record, edl::sample<Model>& into, edl::mode) {
    feed_one(record, into);
    into.template head<"kind">() = float(record.integer("class") % 3);
    into.template head<"size">() = float(record.integer("class"));
  }
};
template <class V>
struct constant_heads : two_heads<constant_heads<V>> {
  static constexpr auto loss = nn::heads(nn::head<"kind", 3>(nn::softmax_cross_entropy{}),
                                         nn::head<"size", 1>(nn::mean_squared_error{}, V::of_head));
};
struct set_heads : two_heads<set_heads> {
  using hyperparameters = all_hyperparameters;
  static constexpr auto loss =
      nn::heads(nn::head<"kind", 3>(nn::softmax_cross_entropy{}),
                nn::head<"size", 1>(nn::mean_squared_error{}, edl::set_by<&hyperparameters::of_head>));
  using metrics = edl::metrics<edl::of_head<loss, "kind", edl::accuracy>>;
};

/// The losses of some steps of training, and one of an evaluation.
template <class Model>
std::vector<double> losses(edl::author::hyperparameters_of<Model> const& set = {}) {
  edl::check_model<Model>();
  constexpr int rows = 8;
  edl::author::model_learner<Model> learner(edl::cpu::open({}), {.max_batch = rows, .seed = 3}, set);
  auto const& facts = learner.facts();
  auto batch = edl::data::make_batch(rows, facts.input.size(), facts.class_labels ? 0 : facts.labels,
                                     facts.class_labels ? facts.labels : 0);
  batch.rows = rows;
  edl::random_stream const random{5, 0};
  for (int row = 0; row < rows; ++row) {
    edl::example record;
    edl::example_builder made(record);
    auto const x = made.floats("x", facts.input.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = random.child(std::uint64_t(row)).uniform(i);
    made.integer("class", row % 4);
    learner.feed(record, batch, row, edl::mode::training);
    learner.augment(batch.feature_row(row), random.child(std::uint64_t(100 + row)));
  }
  auto const rule = edl::model_traits<Model>::make_rule(set);
  std::vector<std::vector<float>> memory;
  for (std::size_t i = 0; i < rule.slots().size(); ++i)
    memory.emplace_back(facts.parameters, rule.initial(i));
  std::vector<std::span<float>> slots(memory.begin(), memory.end());
  std::vector<double> all;
  auto const loss = [&](edl::mode m, std::uint64_t step) {
    auto const y = learner.forward(batch.features, rows, m, step);
    all.push_back(learner.loss(rows, y, batch, learner.output_gradient()));
  };
  for (std::uint64_t step = 0; step < 4; ++step) {
    loss(edl::mode::training, step);
    learner.backward(batch.features, rows, {});
    rule.apply(learner.variables().first(facts.parameters), learner.gradients(), slots,
               rule.learning_rate(step), step);
  }
  loss(edl::mode::evaluation, 0);
  return all;
}

// Each is told by its name in `usual`.
struct drops : usual {
  static constexpr float drop = 0.5f;
};
struct drops_weights : usual {
  static constexpr float weights = 0.6f;
};
struct slopes : usual {
  static constexpr float slope = 0.7f;
};
struct bends : usual {
  static constexpr float alpha = 0.3f;
};
struct scales : usual {
  static constexpr float factor = 0.5f;
};
struct remembers : usual {
  static constexpr float momentum = 0.5f;
};
struct smoothes : usual {
  static constexpr float smoothing = 0.2f;
};
struct weighs_a_class : usual {
  static constexpr float of_class = 5;
};
struct weighs_a_head : usual {
  static constexpr float of_head = 0.25f;
};
struct hurries : usual {
  static constexpr float rate = 0.1f;
};
struct slows_down : usual {
  static constexpr float factor_of_rate = 0.25f;
};
struct decays : usual {
  static constexpr float decay = 0.5f;
};
struct moves : usual {
  static constexpr int moved = 2;
};

template <class V>
all_hyperparameters values_of() {
  return {V::drop,     V::weights, V::slope, V::alpha,          V::factor, V::momentum, V::smoothing,
          V::of_class, V::of_head, V::rate,  V::factor_of_rate, V::decay,  V::moved};
}

struct wrong {
  std::string text;
};
static_assert(!edl::author::hyperparameter_struct<wrong>);
static_assert(edl::author::hyperparameter_struct<edl::author::no_hyperparameters>);

}  // namespace

TEST_CASE("a default of a hyperparameter is within its own bounds") {
  struct fits {
    edl::hyperparameter<float> rate{1, "at a bound", 0, 1};
    edl::hyperparameter<int> layers{2};
    bool plain = true;
  };
  struct above {
    edl::hyperparameter<float> rate{2, "above", 0, 1};
  };
  struct no_number {
    edl::hyperparameter<double> rate{std::numeric_limits<double>::quiet_NaN()};
  };
  static_assert(edl::author::detail::defaults_fit<fits>());
  static_assert(!edl::author::detail::defaults_fit<above>());
  static_assert(!edl::author::detail::defaults_fit<no_number>());
  static_assert(edl::author::detail::defaults_fit<edl::author::no_hyperparameters>());
}

TEST_CASE("the members of a struct are found by name and in order") {
  auto const all = edl::author::describe(wide{});
  REQUIRE(all.size() == 16);
  for (std::size_t i = 0; i < 16; ++i) CHECK(all[i].name == std::string(1, char('a' + i)));
  CHECK(all[10].fallback == "11");
  CHECK(all[12].fallback == "true");
  CHECK(edl::author::describe(edl::author::no_hyperparameters{}).empty());
  CHECK(edl::author::member_names<model::hyperparameters>[1] == "halving");
}

TEST_CASE("values go to text and back") {
  auto const h = edl::author::with_values<model::hyperparameters>(changed("rate=0.25; halving=7, drop=0"));
  CHECK(h.rate == 0.25f);
  CHECK(h.rate.about == "learning rate at the start");
  CHECK(h.halving == 7);
  CHECK(h.smoothing == 0);
  CHECK(h.drop == 0);
}

TEST_CASE("optimiser, schedule and loss follow from the hyperparameters") {
  using traits = edl::model_traits<model>;
  edl::check_model<model>();
  CHECK(traits::make_rule().learning_rate(0) == 0.1f);
  auto const h =
      edl::author::with_values<model::hyperparameters>(changed("rate=0.4;halving=10;smoothing=0.1"));
  auto const rule = traits::make_rule(h);
  CHECK(rule.learning_rate(9) == 0.4f);
  CHECK(rule.learning_rate(10) == 0.2f);
  CHECK(edl::detail::loss_of<model>(h).label_smoothing == 0.1f);
}

TEST_CASE("a layer within another is set by the hyperparameters of its model") {
  auto const zeros = [](float drop) {
    model::hyperparameters h;
    h.drop = drop;
    edl::model<model::network, edl::cpu> net({.max_batch = 8, .set = edl::hyperparameter_view(h)});
    std::vector<float> const x(32, 1.0f);
    auto const y = net.forward(x, 8, edl::mode::training, 1);
    return std::ranges::count(y, 0.0f);
  };
  CHECK(zeros(0) == 0);
  CHECK(zeros(0.9f) > 400);
}

TEST_CASE_TEMPLATE("what a user sets trains as the same constant does, and otherwise than the default", V,
                   drops, drops_weights, slopes, bends, scales, remembers, smoothes, weighs_a_class, hurries,
                   slows_down, decays, moves) {
  CHECK(losses<settings>(values_of<V>()) == losses<constants<V>>());
  CHECK(losses<settings>(values_of<V>()) != losses<settings>());
}

TEST_CASE("the defaults train as the constants do") {
  CHECK(losses<settings>() == losses<constants<usual>>());
  CHECK(losses<set_heads>() == losses<constant_heads<usual>>());
}

TEST_CASE("the weight of a head is set by a user") {
  auto const set = losses<set_heads>(values_of<weighs_a_head>());
  CHECK(set == losses<constant_heads<weighs_a_head>>());
  CHECK(set != losses<set_heads>());
}

TEST_CASE("values out of range are refused by the name of the member, before anything is trained") {
  auto const refusal = []<class Model>(Model, auto const& change) -> std::string {
    all_hyperparameters h;
    change(h);
    try {
      edl::author::model_learner<Model> const learner(edl::cpu::open({}), {}, h);
    } catch (edl::usage_error const& e) {
      return e.what();
    }
    return "accepted";
  };
  CHECK(refusal(settings{}, [](auto& h) { h.decay = 1; }) == "accepted");
  CHECK(refusal(settings{}, [](auto& h) { h.smoothing = 2; }) ==
        "--set: with these values an option of the model's loss is out of range");
  CHECK(refusal(settings{}, [](auto& h) { h.decay = -1; }) ==
        "--set: with these values an option of the model's optimizer is out of range");
  CHECK(refusal(settings{}, [](auto& h) { h.rate = -1; }) ==
        "--set: with these values an option of the model's schedule is out of range");
  CHECK(refusal(settings{}, [](auto& h) { h.moved = -1; }) ==
        "--set: with these values an option of the model's augmentation is out of range");
  CHECK(refusal(set_heads{}, [](auto& h) { h.of_head = -1; }) ==
        "--set: the weight of a head is -1: expected at least 0");
}

}  // namespace hyperparameters_test

// SPDX-License-Identifier: Apache-2.0
// Covers also edl/author/members.hpp
#include "edl/author/hyperparameters.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "edl/author/model_traits.hpp"
#include "edl/device/cpu.hpp"
#include "edl/nn/layers.hpp"
#include "edl/nn/losses.hpp"
#include "edl/nn/model.hpp"
#include "edl/optim/adam.hpp"

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

struct wrong {
  std::string text;
};
static_assert(!edl::author::hyperparameter_struct<wrong>);
static_assert(edl::author::hyperparameter_struct<edl::author::no_hyperparameters>);

}  // namespace

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

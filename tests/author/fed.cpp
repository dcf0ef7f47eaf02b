// SPDX-License-Identifier: Apache-2.0
#include "edl/author/fed.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "edl/author/model_learner.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/core/error.hpp"
#include "edl/core/storage_error.hpp"

namespace fed_test {

namespace nn = edl::nn;

namespace {

/// Each kind of input, and a feed that can be told what to leave out.
struct partial {
  static constexpr nn::embedding rows{.vocabulary = 10, .width = 2};
  static constexpr auto in =
      nn::inputs(nn::input<"pair">(nn::features{.count = 2}), nn::input<"words">(nn::ids{.count = 3}),
                 nn::input<"tags">(nn::weighted_ids{.most = 3}),
                 nn::input<"pages">(nn::served_embedding{.count = 2, .width = 2}),
                 nn::input<"read">(nn::served_embedding_bag{.most = 4, .width = 2}));
  static constexpr auto network =
      nn::sequential(in,
                     nn::concat(in.from<"pair">(), in.from<"words">(nn::masked(rows, nn::global_max_pool{})),
                                in.from<"tags">(nn::embedding_bag{.vocabulary = 6, .width = 1}),
                                in.from<"pages">(nn::flatten{}), in.from<"read">(nn::flatten{})),
                     nn::dense{.units = 3});
  static constexpr auto loss = nn::heads(nn::head<"kind", 2>(nn::softmax_cross_entropy{}),
                                         nn::head<"age", 1>(nn::mean_squared_error{}));
  static inline std::string leave;  // a member's name
  static inline std::uint64_t id = 0;

  static void feed(edl::example const& record, edl::sample<partial>& into, edl::mode) {
    auto const fed = [](char const* name) { return leave != name; };
    auto const x = record.float_values("x");
    auto pair = into.input<"pair">();
    if (fed("pair")) pair(0) = x[0];
    if (fed("pair") && fed("half")) pair(1) = std::log(x[1]);
    if (fed("words")) into.input<"words">()(0) = 4;
    if (fed("tags")) into.input<"tags">().add(1);
    if (fed("pages")) into.input<"pages">()[1] = id;
    if (fed("pages") && fed("page")) into.input<"pages">()[0] = 12;
    if (fed("read")) into.input<"read">().add(5);
    if (fed("kind")) into.head<"kind">() = 1;
    if (fed("age")) into.head<"age">() = 30;
  }
};

/// Some of what it could ask for is nowhere in its feed.
template <int Asks>
struct forgetful {
  static constexpr auto in = nn::inputs(nn::input<"number">(nn::features{.count = 1}),
                                        nn::input<"tags">(nn::weighted_ids{.most = 3}),
                                        nn::input<"read">(nn::served_embedding_bag{.most = 4, .width = 2}),
                                        nn::input<"words">(nn::ids{.count = 3}));
  static constexpr auto network =
      nn::sequential(in,
                     nn::concat(in.template from<"number">(),
                                in.template from<"tags">(nn::embedding_bag{.vocabulary = 6, .width = 1}),
                                in.template from<"read">(nn::flatten{}),
                                in.template from<"words">(nn::masked(
                                    nn::embedding{.vocabulary = 9, .width = 1}, nn::global_max_pool{}))),
                     nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const&, edl::sample<forgetful>& into, edl::mode) {
    into.template input<"number">()(0) = 1;
    if constexpr (Asks > 0) into.template input<"tags">().size();
    if constexpr (Asks > 1) into.template input<"read">().size();
    if constexpr (Asks > 2) into.template input<"words">();
    into.label = 1;
  }
};

template <class Loss, class Label>
struct labelled {
  static constexpr auto network = nn::sequential(nn::features{.count = 2}, nn::dense{.units = Label::units});
  static constexpr Loss loss{};
  static void feed(edl::example const& record, edl::sample<labelled>& into, edl::mode) {
    into.features = record.floats("x", {2});
    if (record.contains("label")) Label::set(into.label);
  }
};
struct of_class {
  static constexpr int units = 2;
  static void set(auto& label) { label = 1; }
};
struct of_number {
  static constexpr int units = 1;
  static void set(auto& label) { label = 0.5f; }
};
struct of_two_of_three {
  static constexpr int units = 3;
  static void set(auto& label) { label(0) = label(2) = 0; }
};

struct places {
  static constexpr auto network = nn::sequential(nn::image{.height = 1, .width = 2, .channels = 1},
                                                 nn::conv2d{.filters = 4, .kernel = {1, 1}});
  static constexpr nn::sequence_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<places>& into, edl::mode) {
    into.features = record.floats("x", {1, 2, 1});
    if (record.contains("label")) into.label[1] = 3;
    if (record.contains("none")) into.label = std::vector<int>{};
  }
};

struct throwing {
  static constexpr auto network = nn::sequential(nn::features{.count = 2}, nn::dense{.units = 1});
  static constexpr nn::mean_squared_error loss{};
  static void feed(edl::example const& record, edl::sample<throwing>&, edl::mode) {
    float const how = record.float_values("x")[0];
    if (how == 0) throw std::invalid_argument("stof");
    if (how == 1) throw edl::error("no such street");
    if (how == 2) throw 7;
    throw edl::storage_error(EIO, "the disk is gone");
  }
};

edl::example of_x(float a, float b, std::string const& more = {}) {
  edl::example e;
  edl::example_builder build(e);
  build.floats("x", std::vector<float>{a, b});
  if (!more.empty()) build.integer(more, 1);
  return e;
}

template <class Model>
std::string refusal(edl::example const& record, edl::mode m = edl::mode::training) {
  auto const t = edl::author::make_trainer<Model>({.max_batch = 1, .seed = 1});
  edl::data::batch b = t->make_batch();
  try {
    t->feed(record, b, 0, m);
  } catch (edl::data_error const& e) {
    return std::string("data: ") + e.what();
  } catch (edl::error const& e) {
    return e.what();
  }
  return {};
}

std::string left_out(std::string const& what) {
  partial::leave = what;
  return refusal<partial>(of_x(1, 2));
}

}  // namespace

TEST_CASE("what the feed leaves unwritten is an error that names it, whatever it is") {
  CHECK(left_out("") == "");
  CHECK(left_out("pair") == "data: the model's `feed` does not write input 'pair'");
  CHECK(left_out("half") ==
        "data: the model's `feed` leaves 1 of the 2 values of input 'pair' unwritten, the first is 1");
  CHECK(left_out("pages") == "data: the model's `feed` does not write input 'pages'");
  CHECK(left_out("page") ==
        "data: the model's `feed` leaves 1 of the 2 values of input 'pages' unwritten, the first is 0");
  CHECK(left_out("kind") ==
        "data: the model's `feed` does not set `into.head<\"kind\">()`, which training and evaluation need");
  CHECK(left_out("age") ==
        "data: the model's `feed` does not set `into.head<\"age\">()`, which training and evaluation need");
  // A record may have no ids for those.
  for (char const* list : {"words", "tags", "read"}) CHECK(left_out(list) == "");
  partial::leave = "kind";
  CHECK(refusal<partial>(of_x(1, 2), edl::mode::prediction) == "");
}

TEST_CASE("whatever an author's feed throws is the record's own error") {
  CHECK(refusal<throwing>(of_x(0, 0)) == "data: the model's `feed` failed: stof");
  CHECK(refusal<throwing>(of_x(1, 0)) == "data: no such street");
  CHECK(refusal<throwing>(of_x(2, 0)) ==
        "data: the model's `feed` failed: it threw something other than a std::exception");
  CHECK(refusal<throwing>(of_x(3, 0)) == "the disk is gone");  // which is no fault of the record's
  CHECK(refusal<throwing>(of_x(3, 0), edl::mode::prediction) == "the disk is gone");
  CHECK(refusal<throwing>(of_x(0, 0), edl::mode::prediction) == "data: the model's `feed` failed: stof");
}

TEST_CASE("any number is an id, also the one that stands where none was written") {
  for (std::uint64_t const id : {edl::author::unfed_id, edl::author::unfed_id + 1, ~std::uint64_t{0}}) {
    partial::id = id;
    CHECK(left_out("") == "");
    CHECK(left_out("page") ==
          "data: the model's `feed` leaves 1 of the 2 values of input 'pages' unwritten, the first is 0");
  }
  partial::id = 0;
}

TEST_CASE("an input that may be empty is named somewhere in the feed") {
  auto const refused = [](auto model) {
    try {
      edl::author::make_trainer<decltype(model)>({.max_batch = 1, .seed = 1});
    } catch (edl::error const& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(refused(forgetful<0>{}) ==
        "the model's `feed` does not use input 'tags': it does not call `into.input<\"tags\">()`");
  CHECK(refused(forgetful<1>{}).find("'read'") != std::string::npos);
  CHECK(refused(forgetful<2>{}).find("'words'") != std::string::npos);
  CHECK(refused(forgetful<3>{}) == "");
}

TEST_CASE("a label of any kind that is not set is an error, but in prediction") {
  auto const check = [](auto model, char const* which) {
    using model_type = decltype(model);
    CHECK(refusal<model_type>(of_x(1, 2)) ==
          fmt::format("data: the model's `feed` does not set {}, which training and evaluation need", which));
    CHECK(refusal<model_type>(of_x(1, 2), edl::mode::prediction) == "");
  };
  check(labelled<nn::softmax_cross_entropy, of_class>{}, "`into.label`");
  check(labelled<nn::mean_squared_error, of_number>{}, "`into.label`");
  check(labelled<nn::triplet, of_class>{}, "`into.label`");
  check(labelled<nn::mean_squared_error, of_two_of_three>{}, "`into.label(0)`");
  // Of a list it is an error of the record, which may have no labels.
  CHECK(refusal<places>(of_x(1, 2)).find("data: the model's `feed` sets no place of `into.label`") == 0);
  CHECK(refusal<places>(of_x(1, 2), edl::mode::prediction) == "");
  auto const all = of_x(1, 2, "label");
  CHECK(refusal<labelled<nn::softmax_cross_entropy, of_class>>(all) == "");
  CHECK(refusal<labelled<nn::mean_squared_error, of_number>>(all) == "");
  CHECK(refusal<labelled<nn::mean_squared_error, of_two_of_three>>(all).find("`into.label(1)`") !=
        std::string::npos);
  CHECK(refusal<places>(all) == "");
  CHECK(refusal<places>(of_x(1, 2, "none")) == "");  // it says that no place counts
}

TEST_CASE("a number that is none is refused with feature and value, and so is one that the feed makes") {
  partial::leave = "";
  float const nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  CHECK(refusal<partial>(of_x(nan, 2)) ==
        "data: value 0 of 'x' is nan, and so value 0 of input 'pair' would be nan");
  CHECK(refusal<partial>(of_x(1, inf), edl::mode::prediction) ==
        "data: value 1 of 'x' is inf, and so value 1 of input 'pair' would be inf");
  CHECK(refusal<partial>(of_x(1, 0)) ==
        "data: value 1 of input 'pair' is -inf, which `feed` made of finite numbers");
  using one = labelled<nn::softmax_cross_entropy, of_class>;
  CHECK(refusal<one>(of_x(nan, nan, "label")).find("the network's input would be nan") != std::string::npos);
  CHECK(refusal<one>(of_x(std::numeric_limits<float>::max(), -0.0f, "label")) == "");
}

TEST_CASE("values of a record of another number are refused with feature and shape") {
  edl::example e;
  edl::example_builder(e).floats("x", 36);
  CHECK(refusal<labelled<nn::softmax_cross_entropy, of_class>>(e) ==
        "data: 'x' has 36 values, the network takes 2");
  CHECK(refusal<places>(e) == "data: 'x' has 36 values, the network takes 2 (1 × 2 × 1)");
}

}  // namespace fed_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/setup/feed_arithmetic.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <edl/edl.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "edl/core/error.hpp"
#include "text.hpp"

namespace feed_arithmetic_test {
namespace {

namespace nn = edl::nn;

/// What feeds have in common; each says what it does to three numbers.
template <class Feed>
struct of_three {
  static constexpr auto network = nn::sequential(nn::features{.count = 3}, nn::dense{.units = 1});
  static constexpr nn::mean_squared_error loss{};
  static void feed(edl::example const& record, edl::sample<of_three>& into, edl::mode) {
    Feed::to(record, into.features);
  }
};

struct turned {
  static void to(edl::example const& record, auto&& y) {
    auto const x = record.floats("x", {2, 2});
    y(0) = x(1, 1) / 255 - 0.5f;
    y(1) = 7;
    y(2) = float(record.integer("n")) * -3;
    static_cast<void>(record.contains("unused"));
  }
};
struct logarithm {
  static void to(edl::example const& record, auto&& y) {
    y = record.floats("x", {3});
    y(1) = std::log1p(std::max(0.0f, y(1)));
  }
};
struct product {
  static void to(edl::example const& record, auto&& y) {
    y = record.floats("x", {3});
    y(2) = y(0) * y(1);
  }
};
struct sum {
  static void to(edl::example const& record, auto&& y) {
    y = record.floats("x", {3});
    y(0) = y(0) + y(1);
  }
};
struct clipped {
  static void to(edl::example const& record, auto&& y) {
    for (std::size_t i = 0; i < 3; ++i) y(i) = std::min(record.floats("x", {3})(i), 1e4f);
  }
};
struct rounded {
  static void to(edl::example const& record, auto&& y) {
    for (std::size_t i = 0; i < 3; ++i) y(i) = std::floor(record.floats("x", {3})(i));
  }
};
struct by_text {
  static void to(edl::example const& record, auto&& y) {
    y = record.floats("x", {3}) * (record.bytes("unit") == "ab" ? 2.0f : 1.0f);
  }
};
struct texts {
  static void to(edl::example const& record, auto&& y) { y.fill(float(record.bytes("word").size())); }
};
struct constant {
  static void to(edl::example const& record, auto&& y) {
    static_cast<void>(record.floating("x"));
    y.fill(1);
  }
};
struct particular {
  static void to(edl::example const& record, auto&& y) {
    auto const x = record.floats("x", {3});
    if (x(0) < 0) throw edl::data_error("no area is below 0");
    y = x;
  }
};

struct ids_alone {
  static constexpr auto network =
      nn::sequential(nn::ids{.count = 1}, nn::embedding{.vocabulary = 3, .width = 2}, nn::dense{.units = 1});
  static constexpr nn::mean_squared_error loss{};
  static void feed(edl::example const& record, edl::sample<ids_alone>& into, edl::mode) {
    into.features(0) = float(record.integer("id"));
  }
};
/// An id of a number that is no id.
struct ids_beside {
  static constexpr auto in =
      nn::inputs(nn::input<"id">(nn::ids{.count = 1}), nn::input<"x">(nn::features{.count = 2}));
  static constexpr auto network = nn::sequential(
      in,
      nn::concat(in.from<"id">(nn::embedding{.vocabulary = 3, .width = 2}, nn::flatten{}), in.from<"x">()),
      nn::dense{.units = 1});
  static constexpr nn::mean_squared_error loss{};
  static void feed(edl::example const& record, edl::sample<ids_beside>& into, edl::mode) {
    auto x = into.input<"x">();
    x(0) = record.floating("age") / 10;
    x(1) = record.floating("weight");
    into.input<"id">()(0) = float(record.integer("id"));
  }
};

/// A date, which a feed refuses to be without, and which is nothing of the inputs, or is.
template <bool Used>
struct dated {
  static void to(edl::example const& record, auto&& y) {
    std::string const day(record.bytes("day"));
    if (day.size() != 10 || day[4] != '-') throw std::invalid_argument("no date");
    for (std::size_t i = 0; i < 3; ++i) y(i) = record.floats("x", {3})(i) / 10;
    if (Used) y(2) = std::stof(day.substr(8));
  }
};

template <class Model>
auto found(edl::record_facts const& known = {}) {
  return edl::train::arithmetic_of_feed(edl::author::make_program<Model>(), known);
}
template <class Model>
std::string refusal(edl::record_facts const& known = {}) {
  try {
    found<Model>(known);
  } catch (edl::usage_error const& e) {
    return e.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("factors, constants and places of numbers are found out, over several features") {
  auto const all = found<of_three<turned>>();
  REQUIRE(all.size() == 1);
  edl::onnx::preprocessing const& p = all.at("input");
  REQUIRE(p.from.size() == 2);
  CHECK(p.from[0].name == "x");
  CHECK(p.from[0].extents == std::vector<std::size_t>{2, 2});
  CHECK(p.from[1].name == "n");
  CHECK(p.from[1].extents.empty());
  CHECK(p.places == std::vector<std::int64_t>{3, 0, 4});
  CHECK(p.factors[0] == doctest::Approx(1 / 255.0).epsilon(1e-6));
  CHECK(p.factors[1] == 0);
  CHECK(p.factors[2] == -3);
  CHECK(p.offsets == std::vector<float>{-0.5f, 7, 0});
}

TEST_CASE("a text that a feed refuses to be without is one of the pattern that was seen in training") {
  edl::record_facts const known{
      .inputs = {{.name = "day", .kind = edl::example::kind::strings, .extents = {}, .text = "1111-11-11"},
                 {.name = "x", .kind = edl::example::kind::floats, .extents = {3}}},
      .classes = {}};
  CHECK(contains(refusal<of_three<dated<false>>>(), "no date"));
  auto const all = found<of_three<dated<false>>>(known);
  CHECK(all.at("input").factors[1] == doctest::Approx(0.1).epsilon(1e-6));
  CHECK(all.at("input").from.size() == 1);
  CHECK(contains(refusal<of_three<dated<true>>>(known), "value 2 of input 'input' by more than a factor"));
}

TEST_CASE("ids beside numbers are not looked at") {
  auto const all = found<ids_beside>();
  REQUIRE(all.size() == 1);
  CHECK(all.at("x").from.size() == 2);
  CHECK(all.at("x").from[0].name == "age");
  CHECK(all.at("x").factors[0] == doctest::Approx(0.1).epsilon(1e-6));
}

TEST_CASE("what is more than a factor and a constant is refused, with the number and the way out") {
  std::string const more =
      "by more than a factor and a constant from one number of the record; without the flag";
  CHECK(contains(refusal<of_three<logarithm>>(), "computes value 1 of input 'input' " + more));
  CHECK(contains(refusal<of_three<product>>(), "value 2 of input 'input'"));
  CHECK(contains(refusal<of_three<sum>>(), "value 0 of input 'input'"));
  CHECK(contains(refusal<of_three<clipped>>(), "value 0 of input 'input'"));
  CHECK(contains(refusal<of_three<rounded>>(), "of input 'input'"));
  CHECK(contains(refusal<of_three<by_text>>(), "value 0 of input 'input'"));
  CHECK(contains(refusal<of_three<texts>>(), "reads only strings or bytes"));
  CHECK(contains(refusal<of_three<constant>>(), "does not depend on any number of a record"));
  CHECK(contains(refusal<of_three<particular>>(), "it rejects one: no area is below 0"));
  CHECK(contains(refusal<ids_alone>(), "takes only ids"));
}

}  // namespace feed_arithmetic_test

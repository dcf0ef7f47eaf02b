// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/example.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <thread>
#include <vector>
#include <xtensor/xmath.hpp>
#include <xtensor/xtensor.hpp>

#include "compute/data/encoded.hpp"
#include "compute/data/support.hpp"

namespace example_test {

using edl::example, edl::example_builder;
using support::failure, support::from_hex, support::has;

namespace {

example sample() {
  example e;
  example_builder build{e};
  auto const image = build.floats("image", 4);
  for (std::size_t i = 0; i < 4; ++i) image[i] = float(i) * 10;
  build.integer("label", 7);
  std::int64_t const ids[]{-1, 0, 1, std::numeric_limits<std::int64_t>::min(),
                           std::numeric_limits<std::int64_t>::max()};
  build.integers("ids", ids);
  build.bytes("job", "clerk");
  std::string_view const words[]{"a", "", "bc"};
  build.bytes("words", words);
  build.floating("age", 1.5f);
  return e;
}

/// Everything that a record says, by its encoding, which is unique.
std::string parsed(std::string_view bytes) {
  example e;
  e.parse(bytes);
  for (auto const name : e.names()) CHECK(e.contains(name));
  return encoded(e);
}

}  // namespace

TEST_CASE("a record gives what was put in") {
  example e;
  e.parse(encoded(sample()));
  CHECK(e.size() == 6);
  CHECK(e.names() == std::vector<std::string_view>{"age", "ids", "image", "job", "label", "words"});
  CHECK(e.integer("label") == 7);
  CHECK(e.floating("age") == 1.5f);
  CHECK(e.floating("label") == 7.0f);
  CHECK(e.bytes("job") == "clerk");
  CHECK(e.bytes("words", 0) == "a");
  CHECK(e.bytes("words", 1) == "");
  CHECK(e.bytes("words", 2) == "bc");
  CHECK(e.count("words") == 3);
  CHECK(e.count("none") == 0);
  CHECK(!e.contains("none"));
  CHECK(e.integer_values("ids")[3] == std::numeric_limits<std::int64_t>::min());
  CHECK(e.integer_values("ids")[4] == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("lists are xtensor views that can be reshaped and computed with") {
  auto const e = sample();
  xt::xtensor<float, 3> const image = e.floats("image", {2, 2, 1}) / 10.0f;
  CHECK(image(1, 0, 0) == 2.0f);
  CHECK(image(1, 1, 0) == 3.0f);
  CHECK(e.integers("ids")(0) == -1);
  CHECK(e.integers("ids").shape(0) == 5);
  CHECK(e.floats("image").data() == e.float_values("image").data());  // no copy
  // Integers are numbers, too, whether they were put in or read.
  auto const back = [&] {
    example other;
    other.parse(encoded(e));
    return other;
  }();
  for (example const* one : {&e, &back}) {
    CHECK(one->floats("label")(0) == 7.0f);
    CHECK(one->floats("ids").shape(0) == 5);
    CHECK(one->floats("ids")(0) == -1.0f);
    CHECK(one->kind_of(1) != example::kind::floats);
  }
  CHECK(xt::sum(e.floats("image"))() == 60.0f);
  CHECK(e.integers("ids", {5, 1})(3, 0) == std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("a shape that a record's values do not fill is refused, by xtensor's own view as well") {
  auto const e = sample();
  CHECK(failure([&] { (void)e.floats("image", {28, 28, 1}); }) ==
        "'image' has 4 values, the network takes 784 (28 × 28 × 1)");
  CHECK(failure([&] { (void)e.floats("image", {3}); }) == "'image' has 4 values, the network takes 3");
  CHECK(failure([&] { (void)e.integers("ids", {2, 2}); }) ==
        "'ids' has 5 values, the network takes 4 (2 × 2)");
  CHECK(failure([&] { (void)xt::reshape_view(e.floats("image"), {6, 6}); }) ==
        "'image' has 4 values, the network takes 36 (6 × 6)");
  auto const image = e.floats("image");
  CHECK(failure([&] { (void)xt::reshape_view(image, {1, 1}); }) != "");
  CHECK(xt::reshape_view(image, {1, 4})(0, 3) == 30.0f);
}

TEST_CASE("a value that a record does not have is refused, and not another feature's") {
  auto const e = sample();
  CHECK(failure([&] { (void)e.float_values("image")[4]; }) ==
        "'image' has no value 4, which `feed` reads: this record has 4, from 0 on");
  CHECK(failure([&] { (void)e.integer_values("ids")[5]; }) != "");
  CHECK(failure([&] { (void)e.floats("image")(4); }) != "");
  CHECK(failure([&] { (void)e.floats("image")[7]; }) != "");
  CHECK(failure([&] { (void)e.floats("image", {2, 2})(0, 2); }) ==
        "'image' has no value 2, which `feed` reads: this record has 2, from 0 on");
  CHECK(failure([&] { (void)e.integers("ids")(-1); }) != "");
}

TEST_CASE("a feature that is missing or of another kind is named, with what there is") {
  auto const e = sample();
  CHECK(failure([&] { (void)e.floats("picture"); }) ==
        "the record has no floats as feature 'picture'; it has image (4 floats), label (1 integers), ids (5 "
        "integers), job "
        "(1 byte strings), words (3 byte strings), age (1 floats)");
  CHECK(has(failure([&] { (void)e.floats("words"); }), "has not floats as feature 'words'"));
  CHECK(has(failure([&] { (void)e.integer("ids"); }), "one integer"));
  CHECK(has(failure([&] { (void)e.integer("age"); }), "integers"));
  CHECK(has(failure([&] { (void)e.floating("image"); }), "one number"));
  CHECK(has(failure([&] { (void)e.bytes("words"); }), "one byte string"));
  CHECK(has(failure([&] { (void)e.bytes("words", 3); }), "4 byte strings"));
  CHECK(has(failure([&] { (void)example().floats("x"); }), "no features"));
  CHECK_THROWS_AS((void)e.floats("words"), edl::data_error);
  CHECK(failure([&] { (void)e.floats("evil\nname"); }).find('\n') == std::string::npos);
}

TEST_CASE("lists may be unpacked, in pieces, merged, replaced; unknown fields are skipped") {
  auto const entry = [](std::string const& value) {  // key "a"
    std::string const body =
        "\x0a\x01"
        "a" +
        std::string("\x12") + char(value.size()) + value;
    return std::string("\x0a") + char(body.size()) + body;
  };
  auto const record = [](std::string const& features) {
    return std::string("\x0a") + char(features.size()) + features;
  };
  example e;
  // int64_list { value: 1 value: 2 } unpacked, then another int64_list with a packed 3: one list.
  e.parse(
      record(entry(from_hex("1a0408010802"
                            "1a030a0103"))));
  CHECK(e.count("a") == 3);
  CHECK(e.integer_values("a")[2] == 3);
  // Unpacked floats.
  e.parse(
      record(entry(from_hex("120a"
                            "0d0000803f"
                            "0d00000040"))));
  CHECK(e.float_values("a")[1] == 2.0f);
  // A list of another kind replaces the first.
  e.parse(
      record(entry(from_hex("1a020801"
                            "0a030a0178"))));
  CHECK(e.bytes("a") == "x");
  // The later of two entries with one name counts, also from another Features.
  e.parse(record(entry(from_hex("1a020801")) + entry(from_hex("1a020802"))));
  CHECK(e.size() == 1);
  CHECK(e.integer("a") == 2);
  e.parse(record(entry(from_hex("1a020801"))) + record(entry(from_hex("1a020803"))));
  CHECK(e.integer("a") == 3);
  // Unknown fields of every wire type at the top.
  e.parse(from_hex("1005"
                   "190000000000000000"
                   "220161"
                   "2d00000000") +
          record(entry(from_hex("1a020804"))));
  CHECK(e.integer("a") == 4);
  // A feature without values, and no features at all.
  e.parse(record(entry("")));
  CHECK(e.contains("a"));
  CHECK(has(failure([&] { (void)e.integer("a"); }), "a (0 empty)"));
  e.parse("");
  CHECK(e.size() == 0);
}

TEST_CASE("malformed bytes are told with their place, and leave an empty record") {
  example e = sample();
  auto const bad = [&](std::string const& hex) { return failure([&] { e.parse(from_hex(hex)); }); };
  CHECK(bad("0aff") == "is not a tf.train.Example: malformed at byte 2 of 2");
  CHECK(e.size() == 0);
  CHECK(!bad("0a05").empty());          // longer than what is left
  CHECK(!bad("0affffffff0f").empty());  // 4 GiB
  CHECK(!bad("00").empty());            // field 0
  CHECK(!bad("0b0c").empty());          // a group
  CHECK(!bad("ffffffffffffffffffff01").empty());
  CHECK(!bad("0a0a0a080a016112031201"
             "0a")
             .empty());
  CHECK_THROWS_AS(e.parse("\xff"), edl::data_error);
}

TEST_CASE("storage is kept from record to record") {
  auto const bytes = encoded(sample());
  example e;
  e.parse(bytes);
  auto const* const before = e.float_values("image").data();
  for (int i = 0; i < 100; ++i) e.parse(bytes);
  CHECK(e.float_values("image").data() == before);
}

TEST_CASE("every truncation and flip of a record is an error or another record") {
  auto const good = encoded(sample());
  CHECK(parsed(good) == good);
  int refused = 0;
  for (std::size_t cut = 1; cut < good.size(); ++cut)
    CHECK(!failure([&] { parsed(std::string_view(good).substr(0, cut)); }).empty());
  for (std::size_t i = 0; i < good.size(); ++i)
    for (int flip : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF}) {
      auto damaged = good;
      damaged[i] = char(damaged[i] ^ flip);
      refused += !failure([&] { parsed(damaged); }).empty();
    }
  CHECK(refused > 200);
}

TEST_CASE("records damaged at random are errors or other records") {
  auto const good = encoded(sample());
  int refused = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    auto const bytes = support::mutate(good, {4, i});
    std::string again;
    if (!failure([&] { again = parsed(bytes); }).empty())
      ++refused;
    else
      CHECK(parsed(again) == again);
  }
  CHECK(refused > 10000);
  CHECK(refused < 20000);
}

TEST_CASE("a name may be empty, also before there is any text") {
  example e;
  // Two features, each with an empty name and an empty list of floats.
  e.parse(
      from_hex("0a0c"
               "0a04120212000a0412021200"));
  CHECK(e.size() == 1);
  CHECK(e.float_values("").empty());
}

TEST_CASE("a record with very many features is read in a time that its length bounds") {
  constexpr std::size_t many = 600'000;
  std::string features;
  auto const add = [&](std::size_t number, char value) {
    std::string const name = "n" + std::to_string(1'000'000 + number);  // 8 characters
    features += std::string("\x0a\x10\x0a\x08") + name + std::string("\x12\x04\x1a\x02\x08", 5) + value;
  };
  for (std::size_t i = 0; i < many; ++i) add(i, 1);
  add(3, 2);
  add(many - 1, 3);
  std::string record = "\x0a";
  for (std::size_t left = features.size(); left > 0; left >>= 7)
    record += char((left & 0x7f) | (left >> 7 ? 0x80 : 0));
  example e;
  e.parse(record + features);
  CHECK(e.size() == many);
  CHECK(e.integer("n1000003") == 2);
  CHECK(e.integer("n1599999") == 3);
}

TEST_CASE("what a thread asks records for is noted while that is wanted, by it alone") {
  edl::example record;
  edl::example_builder(record).integer("there", 7);
  record.contains("before");
  edl::asked_features outer;
  CHECK(record.contains("there"));
  {
    edl::asked_features inner;
    CHECK_FALSE(record.contains("optional"));
    CHECK_THROWS_AS(record.bytes("needed"), edl::data_error);
    std::thread([&] { record.contains("of another thread"); }).join();
    CHECK(inner.all.size() == 2);
    CHECK(inner.all.at("optional").kind == edl::example::kind::none);
    CHECK(inner.all.at("needed").kind == edl::example::kind::strings);
    CHECK(inner.all.at("needed").place == 1);
  }
  record.integer("there");
  CHECK(outer.all.size() == 1);
  CHECK(outer.all.at("there").kind == edl::example::kind::integers);
  CHECK(record.floating("there") == 7);
  CHECK(outer.all.at("there").kind == edl::example::kind::floats);  // which whole numbers are, too
  CHECK_THROWS_AS(record.bytes("there"), edl::data_error);
  CHECK(outer.all.at("there").kind == edl::example::kind::none);  // now a text, now a number
  CHECK_THROWS_AS(record.floats("there", {2, 3}), edl::data_error);
  CHECK(outer.all.at("there").extents == std::vector<std::size_t>{2, 3});
}

}  // namespace example_test

namespace example_builder_test {

using edl::example, edl::example_builder;
using support::failure, support::from_hex, support::has;

TEST_CASE("the encoding is protobuf's, with features in the order of their names") {
  example e;
  example_builder build{e};
  build.integer("b", 300);
  build.floating("a", 1.0f);
  // features { feature { key "a" value { float_list { value 1 } } } feature { key "b" value { int64_list {
  // value 300 } } } }
  CHECK(encoded(e) == from_hex("0a1c0a0d0a0161120812060a040000803f0a0b0a016212061a040a02ac02"));
  CHECK(encoded(example()) == from_hex("0a00"));
}

TEST_CASE("equal records give equal bytes, in whatever order they were filled") {
  example a, b;
  example_builder one{a};
  one.integer("x", 1);
  one.bytes("y", "z");
  example_builder other{b};
  other.bytes("y", "z");
  other.integer("x", 1);
  CHECK(encoded(a) == encoded(b));
}

TEST_CASE("a name cannot be used twice; a new builder begins anew") {
  example e;
  example_builder build{e};
  build.integer("a", 1);
  CHECK(has(failure([&] { build.bytes("a", "x"); }), "twice"));
  CHECK(has(failure([&] { build.floats("a", 3); }), "twice"));
  example_builder again{e};
  CHECK(e.size() == 0);
  again.floating("a", 2);
  CHECK(e.floating("a") == 2);
}

}  // namespace example_builder_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/example_builder.hpp"

#include <doctest/doctest.h>

#include "compute/data/encoded.hpp"
#include "compute/data/support.hpp"

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

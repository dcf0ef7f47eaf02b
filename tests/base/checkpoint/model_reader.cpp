// SPDX-License-Identifier: Apache-2.0
#include "edl/base/checkpoint/model_reader.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/wire/scratch.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/core/error.hpp"

namespace model_reader_test {

using namespace edl::checkpoint;

namespace {

edl::parameter_layout const layout{
    .variables = {{"bias", {3}, 0}}, .parameters = 3, .state = 0, .tables = {{"words", 2}, {"none", 4}}};

/// A model of 20,000 words, of which number i is 3 i.
std::string exported(scratch const& dir) {
  edl::rule<edl::sgd> const sgd{edl::sgd{}};
  edl::sparse::table words({.width = 2}, sgd), none({.width = 4}, sgd);
  for (std::uint64_t i = 0; i < 20'000; ++i) words.assign(3 * i, std::vector<float>{float(i), -float(i)});
  edl::sparse::table_snapshot const of_words(words), of_none(none);
  std::vector<row_source> const rows{rows_of(of_words), rows_of(of_none)};
  export_model(dir / "m.safetensors", layout, std::vector<float>{1, 2, 3}, rows, 77);
  return dir / "m.safetensors";
}

}  // namespace

TEST_CASE("each row of an exported model is found by its id, and no other") {
  scratch const dir;
  model_reader const m(exported(dir));
  CHECK(m.version() == 77);
  CHECK(m.read("bias").values == std::vector<float>{1, 2, 3});
  CHECK(m.read("bias").dims == std::vector<std::uint64_t>{3});
  REQUIRE(m.tables().size() == 2);
  auto const& words = m.find_table("words");
  CHECK(words.rows == 20'000);
  std::vector<float> row(2);
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    REQUIRE(m.find(words, 3 * i, row));
    REQUIRE(row == std::vector<float>{float(i), -float(i)});
    REQUIRE_FALSE(m.find(words, 3 * i + 1, row));
  }
  CHECK_FALSE(m.find(words, ~std::uint64_t{0}, row));
  std::vector<float> four(4, 5);
  CHECK_FALSE(m.find(m.find_table("none"), 3, four));
  CHECK(four == std::vector<float>(4, 5));
}

TEST_CASE("what is no such model is told by name") {
  scratch const dir;
  std::string const path = exported(dir);
  model_reader const m(path);
  std::vector<float> row(3);
  CHECK_THROWS_WITH_AS(m.find(m.find_table("words"), 1, row),
                       doctest::Contains("a row of table 'words' has 2"), edl::error);
  CHECK_THROWS_WITH_AS(m.find_table("ads"), doctest::Contains("lacks table 'ads'"), edl::error);
  CHECK_THROWS_WITH_AS(m.read("kernel"), doctest::Contains("lacks variable 'kernel'"), edl::error);
  CHECK_THROWS_WITH_AS(model_reader(dir / "none"), doctest::Contains((dir / "none").c_str()), edl::error);
  // Of somebody who writes rows in an order of his own.
  std::uint64_t const id = 1;
  float const value = 2;
  edl::durable_file file(dir / "other");
  std::vector<tensor_source> const tensors{
      {.name = "tables/a/ids", .dtype = "U64", .dims = {1}, .data = std::as_bytes(std::span(&id, 1))},
      {.name = "tables/a/embeddings", .dims = {1, 1}, .data = std::as_bytes(std::span(&value, 1))}};
  write_safetensors(file, tensors);
  file.commit();
  CHECK_THROWS_WITH_AS(model_reader(dir / "other"), doctest::Contains("not in the order"), edl::error);
}

TEST_CASE("variables of others' files may be in half precision, and not in another type") {
  scratch const dir;
  std::vector<std::uint16_t> const halves{0x3c00, 0xc000};
  std::vector<std::int64_t> const whole{3};
  edl::durable_file file(dir / "other");
  std::vector<tensor_source> const tensors{
      {.name = "a", .dtype = "F16", .dims = {1, 2}, .data = std::as_bytes(std::span(halves))},
      {.name = "b", .dtype = "BF16", .dims = {2}, .data = std::as_bytes(std::span(halves))},
      {.name = "c", .dtype = "I64", .dims = {1}, .data = std::as_bytes(std::span(whole))}};
  write_safetensors(file, tensors);
  file.commit();
  model_reader const m(dir / "other");
  CHECK(m.read("a").values == std::vector<float>{1, -2});
  CHECK(m.read("a").dims == std::vector<std::uint64_t>{1, 2});
  CHECK(m.read("b").values == std::vector<float>{0.0078125f, -2});
  CHECK_THROWS_WITH_AS(m.read("c"), doctest::Contains("tensor 'c'"), edl::error);
}

}  // namespace model_reader_test

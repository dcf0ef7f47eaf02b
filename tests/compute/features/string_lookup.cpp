// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/features/string_lookup.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "compute/data/support.hpp"
#include "edl/core/error.hpp"

namespace string_lookup_test {

using namespace edl::features;

TEST_CASE("a text's id is its place in the vocabulary, as ElasticDL's tutorial shows") {
  constexpr string_lookup words{{"A", "B", "C"}};
  static_assert(words("B") == 1 && words.size() == 4);
  std::vector<std::int64_t> ids;
  for (char const* const text : {"A", "B", "C", "D", "E"}) ids.push_back(words(text));
  CHECK(ids == std::vector<std::int64_t>{0, 1, 2, 3, 3});
}

TEST_CASE("unknown texts have no id, or several by their hashes") {
  constexpr string_lookup none{{"b", "a"}, 0}, several{{"b", "a"}, 5};
  CHECK(none("a") == 1);
  CHECK(none("c") == -1);
  CHECK(none.size() == 2);
  CHECK(several("c") == 2 + hashing{5}("c"));
  CHECK(several.size() == 7);
}

TEST_CASE("what a thread has looked up is counted, and how much of it no vocabulary has") {
  constexpr string_lookup words{{"A", "B"}};
  loaded_lookup const loaded({"C"}, 0);
  auto const before = lookups_of_thread();
  for (char const* const text : {"A", "B", "C", ""}) words(text), loaded(text);  // an empty text is no word
  auto const after = lookups_of_thread();
  CHECK(after.words - before.words == 6);
  CHECK(after.unknown - before.unknown == 3);
  CHECK(to_text({400, 3}) == "3 of 400 words that `feed` looked up are in no vocabulary (0.75 %)");
}

TEST_CASE("a word that stands twice is refused") {
  CHECK_THROWS_WITH_AS((string_lookup{{"a", "b", "a"}}), "the word 'a' occurs twice in a vocabulary",
                       edl::usage_error);
  CHECK_THROWS_AS(loaded_lookup({"a", "a"}), edl::usage_error);
}

TEST_CASE("a vocabulary is read from a file") {
  support::scratch const dir;
  std::string const path = dir / "cities";
  std::ofstream(path) << "Beijing\r\n New York \n";
  loaded_lookup const cities = loaded_lookup::from_file(path);
  CHECK(cities("New York") == 1);
  CHECK(cities("Paris") == 2);
  CHECK(cities.size() == 3);
  std::ofstream(path) << "a\nb\na\n";
  CHECK_THROWS_WITH_AS(loaded_lookup::from_file(path),
                       (path + ":3: the word 'a' occurs a second time").c_str(), edl::usage_error);
  std::ofstream(path) << "a\n\nb";  // the second word is empty
  CHECK(loaded_lookup::from_file(path)("") == 1);
  std::ofstream(path) << "";
  CHECK_THROWS_AS(loaded_lookup::from_file(path), edl::usage_error);
  CHECK_THROWS_AS(loaded_lookup::from_file(path + "-none"), edl::error);
  CHECK_THROWS_AS(loaded_lookup::from_file("/dev/zero"), edl::error);
}

}  // namespace string_lookup_test

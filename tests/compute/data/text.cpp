// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/text.hpp"

#include <doctest/doctest.h>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/core/error.hpp"

namespace text_test {

using edl::data::text_source;

TEST_CASE("windows of a text overlap by one character, and what is left over is none") {
  support::scratch const dir;
  std::string const path = support::write(dir / "a.txt", "abcdefghij");
  auto const source = edl::data::open_source("text:3:" + path);
  REQUIRE(source->shards() == std::vector<edl::data::shard>{{"a.txt", 3}});
  auto const reader = source->open();
  edl::example record;
  reader->read(0, 0, record);
  CHECK(record.bytes("text") == "abcd");
  reader->read(0, 2, record);
  CHECK(record.bytes("text") == "ghij");
  CHECK_THROWS_AS(reader->read(0, 3, record), edl::data_error);
  CHECK_THROWS_AS(reader->read(1, 0, record), edl::data_error);
  CHECK(edl::data::records(text_source(support::write(dir / "b.txt", "abcdefghi"), 3)) == 2);
  CHECK(edl::data::records(text_source(support::write(dir / "c.txt", "abcd"), 3)) == 1);
}

TEST_CASE("a text that is too short, and a length that is none, are refused") {
  support::scratch const dir;
  std::string const path = support::write(dir / "a.txt", "abc");
  CHECK_THROWS_WITH_AS(text_source(path, 3),
                       (path + ": has 3 bytes, and a window of 3 characters needs 4: shorten it").c_str(),
                       edl::data_error);
  CHECK_THROWS_AS(text_source(path, 0), edl::usage_error);
  CHECK_THROWS_AS(text_source(path, text_source::longest + 1), edl::usage_error);
  CHECK_THROWS_AS(text_source(dir / "none", 1), edl::error);
  for (char const* word :
       {"text:", "text:3", "text:3:", "text::a", "text:-1:a", "text:x:a", "text:99999999999999999999:a"})
    CHECK_THROWS_AS(edl::data::open_source(word), edl::usage_error);
}

TEST_CASE("another text and another length have other digests") {
  support::scratch const dir;
  auto const digest = [&](char const* text, std::uint64_t length) {
    return text_source(support::write(dir / "a.txt", text), length).digest(0);
  };
  CHECK(digest("abcdefg", 2) == digest("abcdefg", 2));
  CHECK(digest("abcdefg", 2) != digest("abcdefg", 3));
  CHECK(digest("abcdefg", 2) != digest("abcdefh", 2));
}

}  // namespace text_test

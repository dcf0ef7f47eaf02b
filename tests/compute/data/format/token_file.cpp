// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/token_file.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <utility>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/core/error.hpp"

namespace token_file_test {

using namespace edl::data;
using support::failure;
using support::has;
using ids = std::vector<std::uint32_t>;

std::string made(std::string const& path, std::vector<ids> const& documents, std::uint64_t vocabulary = 1000,
                 std::uint64_t tokenizer = 0x0123456789abcdef) {
  token_file_writer out(path, vocabulary, tokenizer);
  for (ids const& d : documents) out.add(d);
  out.commit();
  return path;
}

std::vector<std::int64_t> tokens(source const& of, std::size_t shard, std::uint64_t record) {
  edl::example e;
  of.open()->read(shard, record, e);
  auto const all = e.integer_values("tokens");
  return {all.begin(), all.end()};
}

TEST_CASE("a token file has the bytes that its documentation says") {
  scratch const dir;
  std::string const bytes = support::read(made(dir / "a.tokens", {{1, 258}, {}, {3}}));
  CHECK(bytes.substr(0, 56) == support::from_hex("45444c544f4b454e"
                                                 "01000000"
                                                 "02000000"
                                                 "e803000000000000"
                                                 "0300000000000000"
                                                 "0300000000000000"
                                                 "efcdab8967452301"
                                                 "0000000000000000"));
  CHECK(bytes.substr(60) == support::from_hex("00000000"
                                              "0100"
                                              "0201"
                                              "0300"
                                              "0000"
                                              "0200000000000000"
                                              "0200000000000000"
                                              "0300000000000000"));
  CHECK(support::read(made(dir / "b.tokens", {{1, 70'000}}, 70'001)).substr(64, 8) ==
        support::from_hex("0100000070110100"));
  CHECK(token_file_writer(dir / "c", 65'536).tokens() == 0);
  CHECK(has(failure([&] { made(dir / "d", {{5}}, 5); }),
            "d: token 0 of a document has the id 5, and the vocabulary is 5"));
  CHECK(!std::filesystem::exists(dir / "d"));
}

TEST_CASE("windows overlap by the one token that the last predicts") {
  scratch const dir;
  for (std::uint64_t const vocabulary : {1000, 100'000}) {
    made(dir / "a.tokens", {{0, 1, 2, 3}, {4, 5, 6}, {7, 8, 9}}, vocabulary);
    auto const three = open_source("tokens:3:" + (dir / "a.tokens"));
    REQUIRE(three->shards() == std::vector<shard>{{"a.tokens", 3}});
    CHECK(tokens(*three, 0, 0) == std::vector<std::int64_t>{0, 1, 2, 3});
    CHECK(tokens(*three, 0, 2) == std::vector<std::int64_t>{6, 7, 8, 9});
    CHECK(records(*open_source("tokens:4:" + (dir / "a.tokens"))) == 2);
    CHECK(records(*open_source("tokens:9:" + (dir / "a.tokens"))) == 1);
    CHECK(has(failure([&] { tokens(*three, 0, 3); }), "no window 3"));
    CHECK(has(failure([&] { tokens(*three, 1, 0); }), "no window 0"));
    CHECK(has(failure([&] { open_source("tokens:10:" + (dir / "a.tokens")); }),
              "has 10 tokens, and a window of 10 needs 11"));
  }
}

TEST_CASE("each file of several is a shard") {
  scratch const dir;
  made(dir / "1.tokens", {{1, 2, 3}});
  made(dir / "2.tokens", {{4, 5, 6, 7, 8}});
  auto const both = open_source("tokens:2:" + (dir / "*.tokens"));
  REQUIRE(both->shards() == std::vector<shard>{{"1.tokens", 1}, {"2.tokens", 2}});
  CHECK(tokens(*both, 1, 1) == std::vector<std::int64_t>{6, 7, 8});
  CHECK(records(*open_source("tokens:2:" + (dir / "1.tokens") + ",tokens:2:" + (dir / "2.tokens"))) == 3);
  CHECK(both->digest(0) != both->digest(1));
  CHECK(open_source("tokens:1:" + (dir / "1.tokens"))->digest(0) != both->digest(0));
  made(dir / "3.tokens", {{1, 2, 3}}, 1000, 7);
  CHECK(has(failure([&] { open_source("tokens:2:" + (dir / "*.tokens")); }),
            "3.tokens: was made by another tokenizer than"));
}

TEST_CASE("what is no token file is refused") {
  scratch const dir;
  std::string const good = support::read(made(dir / "a.tokens", {{1, 2}, {3, 4, 5}}));
  auto const why = [&](std::string const& bytes) {
    return failure([&] { token_source({support::write_anew(dir / "b", bytes)}, 2); });
  };
  CHECK(why(good).empty());
  for (std::size_t n = 0; n < good.size(); ++n) CHECK(!why(good.substr(0, n)).empty());
  CHECK(has(why(good + "x"),
            "b: has 97 bytes, which 5 tokens and 2 documents do not have; it is cut off or damaged"));
  for (std::size_t at = 0; at < 64; ++at) {
    std::string bad = good;
    bad[at] = char(bad[at] ^ 1);
    CHECK(!why(bad).empty());
  }
  auto const with = [&](std::size_t at, std::uint64_t n, std::size_t size) {
    std::string bad = good;
    std::memcpy(bad.data() + at, &n, size);
    std::uint32_t const sum = detail::crc32(std::string_view(bad).substr(0, 56));
    std::memcpy(bad.data() + 56, &sum, 4);
    return why(bad);
  };
  CHECK(has(with(0, 0, 4), "b: is not a token file; `edl data tokenize` makes one of texts"));
  CHECK(has(with(8, 2, 4), "is a token file of version 2; this program reads version 1"));
  CHECK(has(with(12, 3, 4), "ids of 3 bytes do not fit a vocabulary of 1000"));
  CHECK(has(with(16, 65'537, 8), "ids of 2 bytes do not fit"));
  for (std::size_t const at : {24, 32})
    for (std::uint64_t const n : {~0ull, 1ull << 63, 1ull << 61, 99ull, 0ull})
      CHECK(has(with(at, n, 8), "it is cut off or damaged"));
  CHECK(has(with(24, 6, 8), "the last document ends behind token 5 of 6; it is damaged"));
  CHECK(with(16, 3, 8).empty());  // ids are checked when they are read
  CHECK(has(failure([&] { tokens(token_source({dir / "b"}, 2), 0, 1); }),
            "token 2 has the id 3, and the vocabulary is 3"));
  for (char const* const text :
       {"tokens:", "tokens:3", "tokens:3:", "tokens::a", "tokens:-1:a", "tokens:x:a"})
    CHECK(has(failure([&] { token_source::open_named(text); }), "tokens are tokens:LENGTH:FILE"));
  CHECK_THROWS_AS(token_source({dir / "a.tokens"}, 0), edl::usage_error);
  CHECK_THROWS_AS(token_source({dir / "a.tokens"}, token_source::longest + 1), edl::usage_error);
}

}  // namespace token_file_test

// SPDX-License-Identifier: Apache-2.0
#include "http_recordio.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "compute/data/support.hpp"
#include "remote/web_server.hpp"

namespace http_recordio_test {

using namespace std::chrono_literals;

namespace {

constexpr http_limits impatient{.silence = 60'000ms, .answer = 60'000ms, .tries = 2, .pause = 0ms};

/// Records 0 to n − 1, some in each chunk.
std::string numbered(int n, edl::data::compressor with, std::size_t chunk_bytes = 400) {
  support::scratch const dir;
  edl::data::recordio_writer out(dir / "a", {.with = with, .max_chunk_bytes = chunk_bytes});
  edl::example record;
  std::string bytes;
  for (int i = 0; i < n; ++i) {
    edl::example_builder(record).integer("n", i);
    edl::encode(record, bytes);
    out.write(bytes);
  }
  out.close();
  return support::read(dir / "a");
}

std::int64_t read(edl::data::reader& in, std::uint64_t record) {
  edl::example into;
  in.read(0, record, into);
  return into.integer("n");
}

web::server serving(std::string const& bytes) {
  return web::server(std::map<std::string, std::string>{{"/data/a", bytes}, {"/data/a?token=x", bytes}});
}

}  // namespace

TEST_CASE("a file's records are those that were written, whatever it is packed by") {
  for (auto const with :
       {edl::data::compressor::none, edl::data::compressor::snappy, edl::data::compressor::gzip}) {
    web::server const s = serving(numbered(100, with));
    http_recordio const from(s.url("/data/a?token=x"), {}, impatient);
    CHECK(from.shards() == std::vector<edl::data::shard>{{"a", 100}});
    auto const in = from.open();
    for (std::uint64_t i = 0; i < 100; ++i) CHECK(read(*in, i) == std::int64_t(i));
    CHECK(read(*in, 37) == 37);
  }
}

TEST_CASE("a chunk is read once, also where records of two are asked for in turn") {
  web::server const s = serving(numbered(100, edl::data::compressor::none));
  http_recordio const from(s.url("/data/a"), {}, impatient);
  auto const in = from.open();
  int const before = s.requests();
  for (std::uint64_t i = 0; i < 5; ++i) CHECK(read(*in, i) + read(*in, 99 - i) == 99);
  CHECK(s.requests() == before + 2);
}

TEST_CASE("no more chunks are kept than there is room for") {
  web::server const s = serving(numbered(100, edl::data::compressor::none));
  http_recordio const from(s.url("/data/a"), {.cache_bytes = 1}, impatient);
  auto const in = from.open();
  for (std::uint64_t const i : {0, 50, 99}) CHECK(read(*in, i) == std::int64_t(i));
  int const before = s.requests();
  CHECK(read(*in, 99) == 99);
  CHECK(read(*in, 50) == 50);
  CHECK(s.requests() == before);
  CHECK(read(*in, 0) == 0);
  CHECK(s.requests() == before + 1);
}

TEST_CASE("the digest is another when the records are") {
  auto const digest = [](std::string const& bytes) {
    web::server const s = serving(bytes);
    return http_recordio(s.url("/data/a"), {}, impatient).digest(0);
  };
  auto const one = numbered(100, edl::data::compressor::none);
  CHECK(digest(one) == digest(one));
  CHECK(digest(one) != digest(numbered(101, edl::data::compressor::none)));
  CHECK(digest(one) != digest(numbered(100, edl::data::compressor::gzip)));
}

TEST_CASE("a damaged payload is damage of its chunk's records, with URL, record and byte") {
  std::string bytes = numbered(100, edl::data::compressor::none);
  bytes.back() = char(bytes.back() ^ 1);
  web::server const s = serving(bytes);
  http_recordio const from(s.url("/data/a"), {}, impatient);
  auto const in = from.open();
  CHECK(read(*in, 0) == 0);
  std::string const where = s.url("/data/a") + ": record 99, in the chunk at byte ";
  CHECK_THROWS_WITH_AS(read(*in, 99), doctest::Contains(where.c_str()), edl::data_error);
  CHECK_THROWS_WITH_AS(read(*in, 99), doctest::Contains("checksum"), edl::data_error);
}

TEST_CASE("a damaged header is refused when the file is opened, or ends it") {
  std::string const good = numbered(100, edl::data::compressor::none);
  auto const second = good.find(good.substr(0, 4), 4);
  REQUIRE(second != good.npos);
  auto const spoilt = [&](std::size_t word, std::uint32_t value) {
    std::string bytes = good;
    bytes.replace(second + 4 * word, 4, reinterpret_cast<char const*>(&value), 4);
    return bytes;
  };
  for (std::string const& bytes : {spoilt(0, 7), spoilt(2, 3), spoilt(3, 1u << 31), spoilt(3, 100'000),
                                   spoilt(4, 0), spoilt(4, ~0u), good.substr(0, second + 19)}) {
    web::server const s = serving(bytes);
    std::string const where =
        s.url("/data/a") + ": byte " + std::to_string(second) + ": no chunk of RecordIO";
    CHECK_THROWS_WITH_AS(http_recordio(s.url("/data/a"), {}, impatient), doctest::Contains(where.c_str()),
                         edl::data_error);
    http_recordio const from(s.url("/data/a"), {.skip_damaged = true}, impatient);
    REQUIRE(from.damage().size() == 1);
    CHECK(from.damage()[0].starts_with(where));
    REQUIRE(from.shards().size() == 1);
    CHECK(from.shards()[0].records < 100);
    CHECK(read(*from.open(), 3) == 3);
  }
}

TEST_CASE("a server that is away is no damage of records") {
  std::string const bytes = numbered(100, edl::data::compressor::none);
  web::server const s([&](web::request const& r) {
    return web::reply{r.first > 0 || r.last > 19 ? web::head("503 Service Unavailable", 0)
                                                 : web::part(bytes, r)};
  });
  // Where the index needs more than the first header, it fails as a whole, with --skip_damaged, too.
  bool damage = false, away = false;
  try {
    http_recordio const from(s.url("/data/a"), {.skip_damaged = true}, impatient);
  } catch (edl::data_error const&) {
    damage = true;
  } catch (edl::error const& e) {
    away = std::string(e.what()).ends_with("the server answers 503; tried 2 times");
  }
  CHECK_FALSE(damage);
  CHECK(away);
}

}  // namespace http_recordio_test

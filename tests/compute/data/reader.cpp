// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/reader.hpp"

#include <doctest/doctest.h>

namespace reader_test {

TEST_CASE("records of all shards are counted") {
  struct two : edl::data::source {
    std::vector<edl::data::shard> parts{{"a", 3}, {"b", 1ull << 40}};
    std::vector<edl::data::shard> const& shards() const override { return parts; }
    std::unique_ptr<edl::data::reader> open() const override { return nullptr; }
  };
  two const s;
  CHECK(edl::data::records(s) == (1ull << 40) + 3);
  CHECK(s.damage().empty());
}

TEST_CASE("a source and a reader of one's own are made with what their constructors take") {
  struct one : edl::data::reader {
    explicit one(std::string n) : name(std::move(n)) {}
    void read(std::size_t, std::uint64_t, edl::example&) override {}
    std::string name;
  };
  struct named : edl::data::source {
    explicit named(std::string n) : parts{{std::move(n), 3}} {}
    std::vector<edl::data::shard> parts;
    std::vector<edl::data::shard> const& shards() const override { return parts; }
    std::unique_ptr<edl::data::reader> open() const override {
      return edl::data::make_reader<one>(parts[0].name);
    }
  };
  auto const s = edl::data::make_source<named>("a");
  CHECK(s->shards()[0].name == "a");
  CHECK(dynamic_cast<one&>(*s->open()).name == "a");
}

}  // namespace reader_test

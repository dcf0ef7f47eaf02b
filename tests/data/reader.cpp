// SPDX-License-Identifier: Apache-2.0
#include "edl/data/reader.hpp"

#include <doctest/doctest.h>

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

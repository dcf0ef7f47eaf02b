// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/first_records.hpp"

#include <doctest/doctest.h>

#include "edl/compute/data/format/example.hpp"
#include "edl/core/error.hpp"

namespace first_records_test {

using namespace edl::data;

namespace {

struct numbered : source {
  std::vector<shard> all{{"a", 3}, {"b", 0}, {"c", 4}};
  std::vector<std::string> damaged{"a is damaged"}, labels{"cat", "dog"}, remarks{"c has no header"};
  std::vector<shard> const& shards() const override { return all; }
  std::uint64_t digest(std::size_t shard) const override { return 100 + shard; }
  std::span<std::string const> damage() const override { return damaged; }
  std::uint64_t number_in_file(std::size_t, std::uint64_t record) const override { return record + 1000; }
  std::span<std::string const> classes() const override { return labels; }
  std::span<std::string const> notes() const override { return remarks; }
  std::unique_ptr<reader> open() const override {
    struct its : reader {
      void read(std::size_t shard, std::uint64_t record, edl::example& into) override {
        edl::example_builder(into).integer("label", std::int64_t(10 * shard + record));
      }
    };
    return std::make_unique<its>();
  }
};

std::vector<shard> first(std::uint64_t n) { return first_records(std::make_unique<numbered>(), n).shards(); }

}  // namespace

TEST_CASE("the first records are those of the first shards, in order") {
  CHECK(first(2) == std::vector<shard>{{"a", 2}});
  CHECK(first(3) == std::vector<shard>{{"a", 3}});
  CHECK(first(5) == std::vector<shard>{{"a", 3}, {"b", 0}, {"c", 2}});
  CHECK(first(100) == numbered().all);
}

TEST_CASE("what is left is read as before") {
  first_records const s(std::make_unique<numbered>(), 5);
  CHECK(records(s) == 5);
  CHECK(s.digest(2) == 102);
  CHECK(s.number_in_file(0, 2) == 1002);
  CHECK(s.damage().size() == 1);
  CHECK(s.classes().size() == 2);
  CHECK(s.notes().size() == 1);
  edl::example e;
  s.open()->read(2, 1, e);
  CHECK(e.integer("label") == 21);
}

}  // namespace first_records_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/split.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "compute/data/support.hpp"
#include "edl/compute/data/first_records.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/table.hpp"
#include "edl/compute/data/joined.hpp"
#include "edl/compute/data/source.hpp"

namespace split_test {

using namespace edl::data;
using edl::example;
using support::failure, support::has;

namespace {

/// The values of `n` in all records of a source, in order.
std::vector<std::int64_t> all_of(source const& s) {
  std::vector<std::int64_t> all;
  auto const in = s.open();
  example e;
  for (std::size_t i = 0; i < s.shards().size(); ++i)
    for (std::uint64_t r = 0; r < s.shards()[i].records; ++r) {
      in->read(i, r, e);
      all.push_back(e.integer("n"));
    }
  return all;
}

/// Files of 0, 1, 2, … records.
std::shared_ptr<source const> numbered(support::scratch const& dir, std::vector<int> const& sizes) {
  int n = 0;
  std::string list;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::string text = "n\n";
    for (int r = 0; r < sizes[i]; ++r) text += std::to_string(n++) + "\n";
    list += (i > 0 ? "," : "") + support::write(dir / (std::to_string(i) + ".csv"), text);
  }
  return open_source(list);
}

}  // namespace

TEST_CASE("each record is in one part, and the parts have the size that was asked for") {
  for (double const fraction : {0.1, 0.2, 1.0 / 3, 0.25, 0.5, 0.75, 0.9, 0.999, 0.007, 1e-6})
    for (std::uint64_t const n : {0, 1, 2, 3, 7, 10, 99, 100, 1001}) {
      CAPTURE(fraction);
      CAPTURE(n);
      record_split const s(fraction, 5, n);
      std::uint64_t const held_out = s.held_out_before(n);
      CHECK(held_out == std::uint64_t(std::llround(fraction * 1e6)) * n / 1'000'000);
      std::vector<std::uint64_t> all;
      for (std::uint64_t i = 0; i < held_out; ++i) all.push_back(s.validation(i));
      CHECK(std::ranges::is_sorted(all));
      std::uint64_t before = 0;
      for (std::uint64_t r = 0; r < n; ++r) {
        REQUIRE(s.held_out_before(r) == before);
        before += std::ranges::binary_search(all, r) ? 1 : 0;
      }
      for (std::uint64_t i = 0; i < n - held_out; ++i) all.push_back(s.training(i));
      CHECK(std::is_sorted(all.begin() + std::ptrdiff_t(held_out), all.end()));
      std::ranges::sort(all);
      std::vector<std::uint64_t> every(n);
      std::iota(every.begin(), every.end(), 0);
      CHECK(all == every);
    }
}

TEST_CASE("the seed decides, and nothing else") {
  auto const held = [](std::uint64_t seed) {
    record_split const s(0.1, seed, 1000);
    std::vector<std::uint64_t> all;
    for (std::uint64_t i = 0; i < s.held_out_before(1000); ++i) all.push_back(s.validation(i) % 10);
    return all;
  };
  CHECK(held(1) == held(1));
  CHECK(held(1) != held(2));
  auto places = held(1);
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  CHECK(places.size() == 10);  // not every tenth
}

TEST_CASE("shares that cannot be are refused") {
  for (double const fraction : {0.0, 1.0, -0.1, 1.5, 1e-9, 0.9999999})
    CHECK_THROWS_AS(record_split(fraction, 1, 100), edl::usage_error);
}

TEST_CASE("the parts of a data set of several files, also of files that are smaller than a run") {
  support::scratch const dir;
  std::vector<int> sizes{13, 1, 2, 30, 3, 1};
  auto const whole = numbered(dir, sizes);
  split_source const training(whole, 0.2, 7, split_part::training),
      validation(whole, 0.2, 7, split_part::validation);
  CHECK(records(training) == 40);
  CHECK(records(validation) == 10);
  auto all = all_of(training);
  auto const held = all_of(validation);
  CHECK(std::ranges::is_sorted(all));
  CHECK(std::ranges::is_sorted(held));
  all.insert(all.end(), held.begin(), held.end());
  std::ranges::sort(all);
  std::vector<std::int64_t> every(50);
  std::iota(every.begin(), every.end(), 0);
  CHECK(all == every);
  CHECK(std::ranges::all_of(validation.shards(), [](shard const& s) { return s.records > 0; }));
  example e;
  CHECK(has(failure([&] { training.open()->read(0, 999, e); }), "0.csv: no record 999"));
  CHECK(has(failure([&] { training.open()->read(99, 0, e); }), "no shard 99"));
}

TEST_CASE("another share or seed has another digest; a part without records is refused") {
  support::scratch const dir;
  auto const whole = numbered(dir, {20});
  auto const digest = [&](double fraction, std::uint64_t seed) {
    return split_source(whole, fraction, seed, split_part::training).digest(0);
  };
  CHECK(digest(0.1, 1) == digest(0.1, 1));
  CHECK(digest(0.1, 1) != digest(0.1, 2));
  CHECK(digest(0.1, 1) != digest(0.2, 1));
  CHECK(digest(0.1, 1) != whole->digest(0));
  CHECK(has(failure([&] { split_source(whole, 0.01, 1, split_part::validation); }),
            "a share of 0.01 of 20 records leaves none to evaluate"));
}

TEST_CASE("an error names the record's place in its file") {
  support::scratch const dir;
  std::shared_ptr<source const> const whole = open_source(support::write(dir / "a.csv", "n\n1\n2,2\n3\n4\n"));
  split_source const part(whole, 0.25, 1, split_part::training);
  auto const in = part.open();
  example e;
  std::string said;
  for (std::uint64_t i = 0; i < 3; ++i) said += failure([&] { in->read(0, i, e); });
  split_source const held(whole, 0.25, 1, split_part::validation);
  said += failure([&] { held.open()->read(0, 0, e); });
  CHECK(said == (dir / "a.csv") + ":3: expected 1 field as in the header, found 2");
}

TEST_CASE("a record of a part has the number that it has in its file, in a list and where it is cut") {
  support::scratch const dir;
  auto const whole = numbered(dir, {40, 0, 60});
  for (split_part const p : {split_part::training, split_part::validation}) {
    first_records const s(std::make_unique<split_source>(whole, 0.3, 5, p), 25);
    auto const in = s.open();
    example e;
    for (std::size_t shard = 0; shard < s.shards().size(); ++shard)
      for (std::uint64_t r = 0; r < s.shards()[shard].records; ++r) {
        in->read(shard, r, e);
        bool const first = s.shards()[shard].name == "0.csv";
        CHECK(e.integer("n") == std::int64_t(s.number_in_file(shard, r) + (first ? 0 : 40)));
      }
  }
}

}  // namespace split_test

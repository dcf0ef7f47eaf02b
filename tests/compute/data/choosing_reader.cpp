// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/choosing_reader.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "compute/data/format/parquet_file.hpp"
#include "compute/data/support.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/parquet.hpp"
#include "edl/compute/data/joined.hpp"
#include "edl/compute/data/loader.hpp"
#include "edl/compute/data/split.hpp"

namespace choosing_reader_test {

using namespace edl::data;
using edl::example;
using parquet_file::node, parquet_file::page;
using support::failure, support::has, support::scratch;

namespace {

/// Record i has a, b and c, which are i, 2 i and 3 i, as far as they are chosen.
struct three : choosing_reader {
  void read(std::size_t, std::uint64_t record, example& into) override {
    edl::example_builder build(into);
    for (int i = 0; i < 3; ++i)
      if (std::string const name(1, "abc"[i]); !leaves_out(name))
        build.integer(name, std::int64_t(record) * (i + 1));
    features += into.size();
  }
  void choose(feature_names const* names) override {
    all = !names;
    if (names) chosen = *names;
  }
  bool leaves_out(std::string_view name) const override {
    return !all && std::string_view("abc").find(name) != std::string_view::npos && !chosen.contains(name);
  }

  bool all = true;
  feature_names chosen;
  std::size_t features = 0;  // read, of all records
};

/// Reads a record and does something with it, as often as it takes.
template <class Act>
int at(three& in, feature_choice& choice, std::uint64_t record, Act&& act) {
  example e;
  for (int times = 1;; ++times) {
    in.read(0, record, e);
    if (choice.complete([&] { act(e); })) return times;
  }
}

/// x and z of 200 records in two row groups; the second page of z is damaged.
std::string with_damage(scratch const& dir) {
  std::vector<std::int32_t> all(200);
  std::iota(all.begin(), all.end(), 0);
  std::string const bytes(reinterpret_cast<char const*>(all.data()), 800);
  std::string damaged = page(bytes.substr(400), 100, 0, true);
  damaged.back() ^= 1;
  std::vector<std::string> const pages{page(bytes.substr(0, 400), 100), page(bytes.substr(400), 100)};
  return support::write(dir / "x.parquet",
                        parquet_file::file({{node("x", 1), pages, {100, 100}},
                                            {node("y", 1), pages, {100, 100}},
                                            {node("z", 1), {pages[0], damaged}, {100, 100}}},
                                           {100, 100}));
}

/// What all minibatches have as labels, or the first error.
std::vector<std::int64_t> labels_of(source const& from, loader::decoder const& decode, std::string& error,
                                    bool skip_damaged = false) {
  loader l(
      from, {.threads = 0, .minibatch_size = 8, .shuffle = false, .skip_damaged = skip_damaged},
      [] { return make_batch(8, 1, 0, 1); }, decode);
  std::vector<std::int64_t> all;
  for (std::uint32_t s = 0; s < from.shards().size(); ++s)
    l.submit({{0, s}, s, 0, from.shards()[s].records, edl::mode::evaluation});
  l.close();
  while (batch* const b = l.next()) {
    if (error.empty()) error = b->error;
    all.insert(all.end(), b->classes.begin(), b->classes.begin() + b->rows);
    l.recycle(b);
  }
  return all;
}

}  // namespace

TEST_CASE("a reader leaves out what nobody has asked for, until somebody does") {
  three in;
  feature_choice choice(&in);
  auto const ask_a = [](example const& e) { CHECK(e.contains("a")); };
  for (std::uint64_t i = 0; i < 100; ++i) CHECK(at(in, choice, i, ask_a) == 1);
  CHECK(in.chosen == feature_names{"a"});
  CHECK(in.features == 3 * 64 + 36);
  std::int64_t got = 0;  // CHECK would catch what goes through a feed
  CHECK(at(in, choice, 7, [&](example const& e) { got = e.integer("b"); }) == 2);
  CHECK(got == 14);
  CHECK(in.chosen == feature_names{"a", "b"});
  // What no record has is no reason to read anything again.
  CHECK(at(in, choice, 7, [](example const& e) { CHECK(!e.contains("d")); }) == 1);
  // A feed that takes any exception for its own.
  int const times = at(in, choice, 7, [&](example const& e) {
    try {
      got = e.integer("c");
    } catch (...) {
    }
  });
  CHECK(times == 2);
  CHECK(got == 21);
  CHECK_THROWS_AS(at(in, choice, 7, [](example const&) { throw 5; }), int);
}

TEST_CASE("who goes through the names of all features gets all of them") {
  for (int const before : {0, feature_choice::learned}) {
    three in;
    feature_choice choice(&in);
    for (int i = 0; i < before; ++i) at(in, choice, 1, [](example const& e) { CHECK(e.contains("a")); });
    std::size_t count = 0;
    for (int i = 0; i < 100; ++i) at(in, choice, 1, [&](example const& e) { count = e.names().size(); });
    CHECK(count == 3);
    CHECK(in.all);
  }
}

TEST_CASE("a loader reads the columns that its feed asks for, and the same records") {
  scratch const dir;
  parquet_source const from(with_damage(dir));
  std::string error;
  auto const all = labels_of(
      from,
      [](example const& e, batch& b, int row, edl::mode) {
        auto const x = e.integer("x");
        b.class_row(row)[0] = std::int32_t(x + (x >= 150 ? e.integer("y") : 0));
      },
      error);
  CHECK(error.empty());  // of the page of z
  REQUIRE(all.size() == 200);
  for (std::size_t i = 0; i < 200; ++i) CHECK(all[i] == std::int64_t(i >= 150 ? 2 * i : i));
  // With --skip_damaged each record is read whole, so that all threads leave out the same ones.
  auto const whole = labels_of(
      from,
      [](example const& e, batch& b, int row, edl::mode) {
        b.class_row(row)[0] = std::int32_t(e.integer("x"));
      },
      error, true);
  CHECK(whole.size() == 100);
}

TEST_CASE("parts of files and files together choose, too") {
  scratch const dir;
  std::string const path = with_damage(dir);
  std::vector<std::pair<std::string, std::unique_ptr<source>>> files;
  for (int i = 0; i < 2; ++i) files.emplace_back(path, std::make_unique<parquet_source>(path));
  auto const both = std::make_shared<joined_source>(std::move(files));
  auto const feed = [](example const& e, batch& b, int row, edl::mode) {
    b.class_row(row)[0] = std::int32_t(e.integer("x"));
  };
  std::string error;
  CHECK(labels_of(*both, feed, error).size() == 400);
  CHECK(labels_of(split_source(both, 0.1, 1, split_part::training), feed, error).size() == 360);
  CHECK(error.empty());
}

}  // namespace choosing_reader_test

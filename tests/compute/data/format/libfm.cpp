// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/libfm.hpp"

#include <doctest/doctest.h>

#include "compute/data/support.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/core/error.hpp"

namespace libfm_test {

using edl::data::libfm_source;

TEST_CASE("a row is a label, ids and weights") {
  support::scratch const dir;
  std::string const path =
      support::write(dir / "train.libfm", "1 451:1 4149:0.5\r\n\n# a comment\n-1\n +2.5\t7:-1e3  ");
  auto const source = edl::data::open_source(path);
  REQUIRE(source->shards() == std::vector<edl::data::shard>{{"train.libfm", 3}});
  auto const reader = source->open();
  edl::example row;
  reader->read(0, 0, row);
  CHECK(row.floating("label") == 1);
  CHECK(std::ranges::equal(row.integer_values("ids"), std::vector<std::int64_t>{451, 4149}));
  CHECK(std::ranges::equal(row.float_values("weights"), std::vector<float>{1, 0.5f}));
  reader->read(0, 1, row);
  CHECK(row.floating("label") == -1);
  CHECK(row.count("ids") == 0);
  reader->read(0, 2, row);
  CHECK(row.floating("label") == 2.5f);
  CHECK(row.float_values("weights")[0] == -1000);
  CHECK_THROWS_AS(reader->read(0, 3, row), edl::data_error);
}

TEST_CASE("what the options say a file is comes before its name") {
  support::scratch const dir;
  std::string const path = support::write(dir / "a.csv", "1 2:3\n0 1:1\n");
  CHECK(edl::data::records(*edl::data::open_source(path, {.as = edl::data::format::libfm})) == 2);
}

TEST_CASE("a row that is none is told with its line and column") {
  support::scratch const dir;
  std::string const path =
      support::write(dir / "a", "\n1 2:3\nx 1:1\n1 -4:1\n1 5\n1 5:\n1 5:1x\n1 99999999999999999999:1\n");
  libfm_source const source(path);
  auto const reader = source.open();
  edl::example row;
  reader->read(0, 0, row);
  std::vector<std::string> said;
  for (std::uint64_t i = 1; i < 7; ++i) try {
      reader->read(0, i, row);
    } catch (edl::data_error const& e) {
      said.push_back(std::string(e.what()).substr(path.size()));
    }
  CHECK(said == std::vector<std::string>{":3:1: expected a label", ":4:5: expected an id of at least 0",
                                         ":5:4: expected ':' and a weight", ":6:5: expected a weight",
                                         ":7:6: expected a blank", ":8:3: expected an id"});
}

TEST_CASE("a file without rows is refused, and other content has another digest") {
  support::scratch const dir;
  CHECK_THROWS_AS(libfm_source(support::write(dir / "none", "\n\n")), edl::data_error);
  auto const of = [&](char const* text) { return libfm_source(support::write(dir / "a", text)).digest(0); };
  CHECK(of("1 2:3") != of("1 2:4"));
}

}  // namespace libfm_test

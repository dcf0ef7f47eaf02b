// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/joined.hpp"

#include <doctest/doctest.h>

#include "compute/data/pictures.hpp"
#include "compute/data/support.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/source.hpp"

namespace joined_test {

using namespace edl::data;
using edl::example;
using support::failure, support::has;

TEST_CASE("a pattern, a list and both are one data set, whose columns have one kind") {
  support::scratch const dir;
  support::write(dir / "part-1.csv", "x,label\n1,0\n2,1\n");
  support::write(dir / "part-2.csv", "x,label\n2.5,1\n");
  support::write(dir / "other/part-1.csv", "label,x\n1,9\n");
  auto const s = open_source((dir / "part-*.csv") + "," + (dir / "other/part-1.csv"));
  REQUIRE(s->shards() == std::vector<shard>{{dir / "part-1.csv", 2},
                                            {dir / "part-2.csv", 1},
                                            {dir / "other/part-1.csv", 1}});
  auto const in = s->open();
  example e;
  in->read(2, 0, e);
  CHECK(e.float_values("x")[0] == 9);
  in->read(0, 1, e);
  CHECK(e.float_values("x")[0] == 2);
  in->read(1, 0, e);
  CHECK(e.integer("label") == 1);
  CHECK(has(failure([&] { in->read(3, 0, e); }), "no shard 3: the data has only 3"));
  CHECK(s->digest(0) == open_source(dir / "part-1.csv")->digest(0));
  CHECK(s->digest(3) == 0);
  CHECK(open_source(dir / "part-*.csv")->shards()[1].name == "part-2.csv");
}

TEST_CASE("a path that is there is no list and no pattern") {
  support::scratch const dir;
  support::write(dir / "a,b*.csv", "x\n1\n");
  CHECK(records(*open_source(dir / "a,b*.csv")) == 1);
}

TEST_CASE("what is wrong with a list is told with the path that it is") {
  support::scratch const dir;
  support::write(dir / "a.csv", "x\n1\n");
  support::write(dir / "b.csv", "y\n1\n");
  CHECK(failure([&] { open_source(dir / "c*.csv"); }) == (dir / "c*.csv") + ": no path matches the pattern");
  CHECK(has(failure([&] { open_source((dir / "a.csv") + ","); }), "a path of the list is empty"));
  CHECK(has(failure([&] { open_source((dir / "a.csv") + "," + (dir / "c.csv")); }), "c.csv: no such"));
  CHECK(has(failure([&] { open_source(dir / "[ab].csv"); }), "a.csv: lacks the column 'y'"));
}

TEST_CASE("folders of pictures go together where their classes are the same") {
  support::scratch const dir;
  auto const picture = encode_png(support::plain({2, 2, 1}, 5));
  for (char const* name : {"a/cat/1.png", "a/dog/1.png", "b/cat/1.png", "b/dog/1.png", "c/dog/1.png"})
    support::write(dir / name, picture);
  auto const s = open_source((dir / "a") + "," + (dir / "b"));
  CHECK(records(*s) == 4);
  CHECK(s->classes().size() == 2);
  CHECK(has(failure([&] { open_source((dir / "a") + "," + (dir / "c")); }), "have not the same classes"));
}

}  // namespace joined_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/autoscaler/label_set.hpp"

#include <doctest/doctest.h>

namespace label_set_test {

using namespace edl::autoscaler;

TEST_CASE("a label set finds what was set last, by key") {
  label_set s{{"zone", "a"}, {"arch", "arm64"}, {"zone", "b"}};
  CHECK(s.size() == 2);
  REQUIRE(s.find("zone"));
  CHECK(*s.find("zone") == "b");
  CHECK(*s.find("arch") == "arm64");
  CHECK(s.find("zon") == nullptr);
  CHECK(label_set{}.find("") == nullptr);
  label_set const copy = s;
  s.set("zone", "c");
  CHECK(*copy.find("zone") == "b");
}

TEST_CASE("sets of one pool share equal texts, and the pool forgets what nobody has") {
  label_pool pool;
  label_set a = pool.of({{"zone", "x"}, {"host", "n1"}});
  {
    label_set const b = pool.of({{"zone", "x"}, {"host", "n2"}});
    CHECK(a.find("zone") == b.find("zone"));
    CHECK(*b.find("host") == "n2");
    CHECK(pool.size() == 5);
  }
  pool.tidy();
  CHECK(pool.size() == 4);
  a = {};
  pool.tidy();
  CHECK(pool.size() == 0);
}

}  // namespace label_set_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/controller/neighbours.hpp"

#include <doctest/doctest.h>

#include "history.hpp"

using namespace history;

TEST_CASE("anti-affinity holds in both directions, within a domain, and between pods of one kind") {
  std::vector<node> nodes{machine("a", 4), machine("b", 4), machine("c", 4)};
  nodes[0].labels.set("zone", "x");
  nodes[1].labels.set("zone", "x");
  pod_shape shy = cores(1), red = cores(2), plain = cores(3), own = cores(4);
  shy.apart = {{"red", "zone"}};
  red.marks = {"red"};
  own.apart = {{"own", "zone"}};
  own.marks = {"own"};
  neighbours n(nodes, {&shy, &red, &plain, &own});
  CHECK(n.concerns(0));
  CHECK_FALSE(n.concerns(2));
  CHECK_FALSE(n.alone(0));
  CHECK(n.alone(3));
  n.add(1, 0);  // a red one on a keeps the shy one off the zone
  CHECK_FALSE(n.allow(0, 0));
  CHECK_FALSE(n.allow(0, 1));
  CHECK(n.allow(0, 2));  // without the label there is no domain
  CHECK(n.allow(1, 1));
  CHECK(n.allow(0, 1, {1}));
  CHECK(n.first_freed(1, 1) == 0);
  CHECK(n.first_freed(2, 1) == 1);
  n.remove(1, 0);
  n.add(0, 1);  // and the other way round
  CHECK_FALSE(n.allow(1, 0));
  CHECK(n.allow(2, 0));
  n.remove(0, 1);
  CHECK(n.allow(1, 0));
}

TEST_CASE("workers that keep each other off are each put on a node of their own") {
  cluster_view v{.now = 1, .nodes = {machine("a", 8), machine("b", 8), machine("c", 8)}};
  for (node& n : v.nodes) n.labels.set("host", n.name);
  pod_shape s = cores(1);
  s.apart = {{"w", "host"}};
  s.marks = {"w"};
  v.jobs = {one("j", 1, 10, s)};
  apply(v, make_plan(v));
  CHECK(workers_of(v, "j") == 3);
  CHECK(wrong(v) == "");
  CHECK(changes(v, make_plan(v)) == "");
}

// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/autoscaler/neighbours.hpp"

#include <doctest/doctest.h>

#include "history.hpp"

namespace neighbours_test {

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

TEST_CASE("affinity: a pod goes where its company is, and the first of those that need each other anywhere") {
  std::vector<node> nodes{machine("a", 4), machine("b", 4), machine("c", 4), machine("d", 4)};
  nodes[0].labels.set("zone", "x");
  nodes[1].labels.set("zone", "x");
  nodes[2].labels.set("zone", "y");
  pod_shape guest = cores(1), host = cores(2), own = cores(3);
  guest.together = {{"host", "zone"}};
  host.marks = {"host"};
  own.together = {{"own", "zone"}};
  own.marks = {"own"};
  neighbours n(nodes, {&guest, &host, &own});
  for (int node : {0, 1, 2, 3}) CHECK_FALSE(n.allow(0, node));
  CHECK(n.first_opened(1, 1) == 0);  // a host on b opens its zone, a and b
  CHECK(n.first_opened(0, 1) == -1);
  n.add(1, 1);
  CHECK(n.allow(0, 0));
  CHECK(n.allow(0, 1));
  CHECK_FALSE(n.allow(0, 2));
  CHECK_FALSE(n.allow(0, 0, {1}));  // when the host leaves
  for (int node : {0, 2}) CHECK(n.allow(2, node));
  CHECK_FALSE(n.allow(2, 3));  // a node without the label is in no domain
  n.add(2, 2);
  CHECK_FALSE(n.allow(2, 0));
  CHECK(n.allow(2, 2));
  n.remove(2, 2);
  CHECK(n.first_freed(2, 2) == 0);  // the next may begin anywhere again
  CHECK(n.allow(2, 0));
}

TEST_CASE("workers that need each other grow in one zone, though there is more room in others") {
  cluster_view v{.now = 1, .nodes = {machine("a", 1), machine("b", 2), machine("c", 1), machine("d", 3)}};
  for (std::size_t i = 0; i < 4; ++i) v.nodes[i].labels.set("zone", i < 2 ? "x" : "y");
  pod_shape s = cores(1);
  s.together = {{"w", "zone"}};
  s.marks = {"w"};
  v.jobs = {one("j", 1, 10, s)};
  apply(v, make_plan(v));
  int const workers = workers_of(v, "j");
  CHECK((workers == 3 || workers == 4));
  std::set<std::string> zones;
  for (pod const& p : v.pods)
    for (node const& n : v.nodes)
      if (n.name == p.node) zones.insert(*n.labels.find("zone"));
  CHECK(zones.size() == 1);
  CHECK(changes(v, make_plan(v)) == "");
}

}  // namespace neighbours_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/autoscaler/fitting.hpp"

#include <doctest/doctest.h>

#include "history.hpp"

namespace fitting_test {

using namespace history;

TEST_CASE("allows: taints, selectors and required affinity as the scheduler reads them") {
  using enum requirement::relation;
  node n = machine("n", 4);
  n.labels = {{"zone", "a"}, {"cores", "16"}};
  pod_shape s = cores(1);
  CHECK(allows(n, s));
  n.taints = {{"dedicated", "x", "PreferNoSchedule"}};
  CHECK(allows(n, s));
  n.taints = {{"dedicated", "x", "NoSchedule"}};
  CHECK_FALSE(allows(n, s));
  for (toleration const& t :
       {toleration{"dedicated", "x", ""}, toleration{"dedicated", "", "NoSchedule", true},
        toleration{"", "", "", true}}) {
    s.tolerations = {t};
    CHECK(allows(n, s));
  }
  for (toleration const& t : {toleration{"dedicated", "y", ""}, toleration{"dedicated", "x", "NoExecute"},
                              toleration{"other", "", "", true}}) {
    s.tolerations = {t};
    CHECK_FALSE(allows(n, s));
  }
  n.taints.clear();
  s.node_selector = {{"zone", "a"}};
  CHECK(allows(n, s));
  s.node_selector = {{"zone", "b"}};
  CHECK_FALSE(allows(n, s));
  s.node_selector.clear();
  auto const with = [&](std::vector<std::vector<requirement>> terms) {
    s.affinity = std::move(terms);
    return allows(n, s);
  };
  CHECK(with({{{"zone", in, {"b", "a"}}}}));
  CHECK_FALSE(with({{{"zone", in, {"b", "a"}}, {"gpu", exists}}}));  // all lines of a term
  CHECK(with({{{"gpu", exists}}, {{"gpu", does_not_exist}}}));       // any term
  CHECK(with({{{"gpu", not_in, {"a"}}}}));
  CHECK(with({{{"cores", greater, {"15"}}}}));
  CHECK_FALSE(with({{{"cores", less, {"16"}}}}));
  CHECK_FALSE(with({{{"cores", less, {"many"}}}}));
  CHECK(with({{{"metadata.name", in, {"n"}}}}));
  CHECK_FALSE(with({{}}));  // an empty term matches nothing
  s.affinity.clear();
  n.schedulable = false;
  CHECK_FALSE(allows(n, s));
}

TEST_CASE("room: what pods hold is gone, what leaving ones hold is soon there, and slots count") {
  cluster_view v{.nodes = {machine("a", 4, 1), machine("b", 2)}};
  v.nodes[1].allocatable[pod_slots] = 1000;
  v.pods = {{.name = "x", .node = "a", .shape = cores(3)},
            {.name = "y", .node = "b", .leaving = true, .shape = cores(1)}};
  pod_shape const one_core = cores(1), two = cores(2), card = gpus(1),
                  fpga{.requests = {{"example.com/fpga", 1}}};
  fitting f(v, {&one_core, &two, &card, &fpga}, 0.5);
  CHECK(f.first_fit(f.shape(one_core)) == 0);
  CHECK(f.first_fit(f.shape(two)) == -1);
  CHECK(f.first_fit_with_leaving(f.shape(two)) == 1);
  CHECK(f.first_fit(f.shape(card)) == 0);
  CHECK(f.first_fit(f.shape(fpga)) == -1);
  CHECK(f.fits_without(f.shape(two), 0, {f.shape(one_core)}, false));
  CHECK_FALSE(f.within_load(f.shape(one_core)));  // 3 of 6 cores are taken, and half is headroom
  CHECK(f.within_load(f.shape(card)));            // devices have none
  CHECK_FALSE(f.overloaded(f.shape(one_core)));
  f.take(f.shape(one_core), 0);
  CHECK(f.overloaded(f.shape(one_core)));
  CHECK(f.first_fit(f.shape(one_core)) == -1);
  f.give_back(f.shape(one_core), 0);
  CHECK(f.first_fit(f.shape(one_core)) == 0);
  CHECK(f.how_many(f.shape(one_core), 0, 9) == 1);
  CHECK(f.dominant_share(f.shape(card)) == 1);
}

}  // namespace fitting_test

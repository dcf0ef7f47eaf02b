// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/autoscaler/autoscaler.hpp"

#include <doctest/doctest.h>

#include "cluster/autoscaler/converged_plans.hpp"

namespace autoscaler_test {

using namespace converged_plans;

TEST_CASE(
    "random clusters and histories: plans end, fit, hold their bounds, and the same again changes nothing" *
    doctest::test_suite("long")) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    world w(seed);
    plan_options o;
    o.who = policies()[seed % policies().size()];
    o.max_load = seed % 3 == 0 ? 0.8 : 1;
    o.move = seed % 4 < 2;
    for (int event = 0; event < 25; ++event) {
      CAPTURE(event);
      w.happen();
      cluster_view& v = w.view;
      std::map<std::string, int> before;
      for (job_view const& j : v.jobs) before[j.uid] = workers_of(v, j.uid);
      plan const p = make_plan(v, o);
      plan const again = make_plan(v, o);
      REQUIRE(p.jobs.size() == v.jobs.size());
      for (std::size_t i = 0; i < p.jobs.size(); ++i) {
        job_plan const& to = p.jobs[i];
        job_view const& j = v.jobs[i];
        CAPTURE(to.uid);
        REQUIRE(to.uid == j.uid);
        REQUIRE(to.workers == again.jobs[i].workers);
        REQUIRE(to.nodes == again.jobs[i].nodes);
        REQUIRE(to.leaving == again.jobs[i].leaving);
        REQUIRE(!to.reason.empty());
        REQUIRE(to.workers <= j.max);
        if (to.admitted) REQUIRE(to.workers >= j.min);
        if (j.admitted && !j.suspended) REQUIRE(to.admitted);  // never suspended to make room
        if (!to.admitted) REQUIRE(to.workers == 0);
      }
      apply(v, p, seed % 2 == 0);
      REQUIRE(wrong(v) == "");
      for (job_plan const& to : p.jobs) REQUIRE(workers_of(v, to.uid) == to.workers);
      // Who moves, or leaves for a pod that waits, leaves room that somebody may use; that ends, too.
      int rounds = 0;
      for (plan next = make_plan(v, o); !changes_nothing(v, next); next = make_plan(v, o)) {
        CAPTURE(changes(v, next));
        REQUIRE(++rounds < (o.move ? 20 : 2));
        for (job_plan const& to : next.jobs)
          if (!o.move) REQUIRE(to.leaving.empty());
        apply(v, next, seed % 2 == 0);
        REQUIRE(wrong(v) == "");
      }
    }
  }
}

TEST_CASE("fair: nobody has two workers more than another who could have one of them") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    auto const upto = [&](int a, int b) { return std::uniform_int_distribution<int>(a, b)(random); };
    std::vector<node> nodes;
    for (int i = upto(1, 8); i > 0; --i) nodes.push_back(machine("n" + std::to_string(i), upto(1, 16)));
    cluster_view v = of(std::move(nodes), {});
    for (int event = 0; event < 8; ++event) {
      int const min = upto(0, 3);
      job_view j = one("j" + std::to_string(event), min, min + upto(0, 20), cores(1));
      j.submitted = event;
      v.jobs.push_back(std::move(j));
      if (event > 4 && upto(0, 1)) {
        std::erase_if(v.pods, [&](pod const& p) { return p.job == v.jobs[0].uid; });
        v.jobs.erase(v.jobs.begin());
      }
      converge(v, {.max_load = 1});
      int most = 0, capacity = 0, taken = 0;
      for (node const& n : v.nodes) capacity += int(n.allocatable.at("cpu") / 1000);
      for (job_view const& a : v.jobs) taken += a.workers;
      for (job_view const& a : v.jobs)
        if (a.workers > a.min) most = std::max(most, a.workers);
      for (job_view const& a : v.jobs) {
        if (!a.admitted || a.workers == a.max) continue;
        CHECK(a.workers >= most - 1);
        CHECK(taken == capacity);
      }
    }
  }
}

TEST_CASE("the example that the first autoscaler got wrong: 2 and 8 of 60, room for 87 more") {
  cluster_view v = of({machine("n", 97)}, {one("a", 2, 60, cores(1)), one("b", 2, 60, cores(1))});
  for (auto [uid, n] : {std::pair("a", 2), std::pair("b", 8)}) {
    job_of(v, uid).workers = n;
    job_of(v, uid).admitted = true;
    for (int i = 0; i < n; ++i)
      v.pods.push_back({.name = uid + std::to_string(i), .job = uid, .node = "n", .shape = cores(1)});
  }
  plan const p = make_plan(v, {.max_load = 1});
  CHECK(std::set{plan_of(p, "a").workers, plan_of(p, "b").workers} == std::set{48, 49});
}

TEST_CASE("an extended resource is used to its last, and the loop over it ends") {
  cluster_view v = of({machine("n", 100, 8)}, {one("a", 1, 60, gpus(1))});
  plan const p = make_plan(v, {.max_load = 0.9});
  CHECK(plan_of(p, "a").workers == 8);
}

TEST_CASE("a job is let in at its min by shrinking others, at once") {
  cluster_view v = of({machine("n", 10)}, {one("a", 2, 60, cores(1))});
  converge(v, {.max_load = 1});
  CHECK(job_of(v, "a").workers == 10);
  job_of(v, "a").last_resized = v.now;  // even one that was just resized
  v.jobs.push_back(one("b", 3, 3, cores(1)));
  plan const p = make_plan(v, {.max_load = 1});
  CHECK(plan_of(p, "b").workers == 3);
  CHECK(plan_of(p, "a").workers == 7);
  CHECK(plan_of(p, "a").reason == "7 of 2 to 60: it made room for b");
  CHECK(plan_of(p, "a").leaving.size() == 3);
  v.jobs.push_back(one("c", 9, 9, cores(1)));
  CHECK_FALSE(plan_of(make_plan(v, {.max_load = 1}), "c").admitted);
  CHECK(plan_of(make_plan(v, {.max_load = 1}), "c").reason ==
        "it waits: its 9 pods have no room, even if all others shrink to their min: they ask for cpu 9, of "
        "which 5 are left");
}

TEST_CASE("a job that waits says what is missing") {
  auto const why = [](std::vector<node> nodes, job_view j) {
    return plan_of(make_plan(of(std::move(nodes), {std::move(j)}), {.max_load = 1}), "a").reason;
  };
  auto const says = [&](std::string const& text, std::string const& part) {
    INFO(text);
    CHECK(text.ends_with(part));
  };
  pod_shape large = cores(1);
  large.requests["memory"] = std::int64_t{6} << 30;
  large.requests["memory"] *= 1000;
  node n = machine("n", 8);
  n.allocatable["memory"] = (std::int64_t{8} << 30) * 1000;
  says(why({n}, one("a", 2, 2, large)), "they ask for memory 12Gi, of which 8Gi are left");
  says(why({machine("m", 3), machine("n", 3)}, one("a", 1, 1, cores(4))),
       "no node has enough of it in one piece");
  pod_shape elsewhere = cores(1);
  elsewhere.node_selector["disk"] = "fast";
  says(why({n}, one("a", 1, 1, elsewhere)), "no node takes a worker by its labels and taints");
}

TEST_CASE("pods of others have room at once, from those above their min, and never from below it") {
  cluster_view v = of({machine("m", 4), machine("n", 4)}, {one("a", 3, 60, cores(1))});
  converge(v, {.max_load = 1});
  CHECK(job_of(v, "a").workers == 8);
  v.pods.push_back({.name = "web", .shape = cores(3)});
  plan const p = make_plan(v, {.max_load = 1});
  REQUIRE(p.reservations.size() == 1);
  CHECK(plan_of(p, "a").workers == 5);
  apply(v, p, false);
  CHECK(changes_nothing(
      v, make_plan(v, {.max_load = 1})));  // it has not been scheduled yet, and its room is kept
  v.pods.push_back({.name = "web-2", .shape = cores(4)});
  plan const full = make_plan(v, {.max_load = 1});
  CHECK(full.hopeless == std::vector<std::string>{"web-2"});  // a's three would have to go
  CHECK(plan_of(full, "a").workers == 5);
}

TEST_CASE("room that a leaving pod still holds is counted once") {
  cluster_view v = of({machine("n", 4)}, {one("a", 1, 4, cores(1))});
  converge(v, {.max_load = 1});
  v.pods.push_back({.name = "web", .shape = cores(2)});
  plan const p = make_plan(v, {.max_load = 1});
  for (pod& w : v.pods)
    for (std::string const& name : plan_of(p, "a").leaving) w.leaving |= w.name == name;
  job_of(v, "a").workers = 2;
  plan const meanwhile = make_plan(v, {.max_load = 1});
  CHECK(plan_of(meanwhile, "a").workers == 2);
  CHECK(plan_of(meanwhile, "a").leaving.empty());
  CHECK(meanwhile.reservations.size() == 1);
}

TEST_CASE("higher priorities first, and the lower ones keep their min") {
  job_view high = one("high", 1, 6, cores(1)), low = one("low", 2, 60, cores(1));
  high.priority = 5;
  cluster_view v = of({machine("n", 9)}, {low});
  converge(v, {.max_load = 1});
  v.jobs.push_back(high);
  converge(v, {.max_load = 1});
  CHECK(job_of(v, "high").workers == 6);
  CHECK(job_of(v, "low").workers == 3);
  v.pods.push_back({.name = "web", .shape = cores(2)});
  converge(v, {.max_load = 1});
  CHECK(job_of(v, "high").workers == 5);
  CHECK(job_of(v, "low").workers == 2);
}

TEST_CASE("headroom is left, and given back when services have taken it") {
  cluster_view v = of({machine("n", 20)}, {one("a", 1, 60, cores(1))});
  converge(v, {.max_load = 0.9});
  CHECK(job_of(v, "a").workers == 18);
  v.pods.push_back({.name = "web", .node = "n", .shape = cores(2)});
  converge(v, {.max_load = 0.9});
  CHECK(job_of(v, "a").workers == 16);
  CHECK(plan_of(make_plan(v, {.max_load = 0.9}), "a").reason ==
        "16 of 1 to 60: the rest is headroom for services");
}

TEST_CASE("a job that gains nothing from another worker is not given one") {
  job_view j = one("a", 1, 60, cores(1));
  j.speeds = {{2, 200}, {4, 390}, {8, 391}};
  cluster_view v = of({machine("n", 20)}, {j});
  plan const p = make_plan(v);
  CHECK(plan_of(p, "a").workers == 4);
  CHECK(plan_of(p, "a").reason == "4 of 1 to 60: more workers were measured to add nothing");
}

TEST_CASE(
    "no thrash: who was resized is left alone for as long as the change cost, unless somebody needs room") {
  cluster_view v = of({machine("n", 10)}, {one("a", 1, 60, cores(1))});
  v.jobs[0].change_cost = 30;
  apply(v, make_plan(v, {.max_load = 1, .change_share = 0.1}));
  CHECK(job_of(v, "a").workers == 10);
  v.nodes.push_back(machine("m", 10));
  v.now += 299;
  CHECK(changes_nothing(v, make_plan(v, {.max_load = 1, .change_share = 0.1})));
  v.now += 2;
  CHECK(plan_of(make_plan(v, {.max_load = 1, .change_share = 0.1}), "a").workers == 20);
}

TEST_CASE("pods that wait for a node without hope are taken back, and those that fit are kept") {
  cluster_view v = of({machine("n", 2)}, {one("a", 1, 60, cores(1))});
  v.jobs[0].admitted = true;
  v.jobs[0].workers = 5;
  for (int i = 0; i < 5; ++i)
    v.pods.push_back({.name = "a" + std::to_string(i), .job = "a", .shape = cores(1)});
  plan const p = make_plan(v, {.max_load = 1});
  CHECK(plan_of(p, "a").workers == 2);
  CHECK(plan_of(p, "a").nodes.empty());
  CHECK(plan_of(p, "a").leaving == std::vector<std::string>{"a2", "a3", "a4"});
}

TEST_CASE(
    "a large job that has waited is not passed by for ever, and one that fits nowhere holds nobody up") {
  cluster_view v = of({machine("n", 8)}, {one("a", 2, 2, cores(1))});
  converge(v, {.max_load = 1});
  job_view large = one("large", 7, 7, cores(1)), small = one("small", 1, 1, cores(1));
  large.submitted = v.now;
  small.submitted = v.now + 1;
  v.jobs.insert(v.jobs.end(), {large, small});
  v.now += 10;
  CHECK(plan_of(make_plan(v, {.max_load = 1}), "small").admitted);
  v.now += 1000;
  CHECK_FALSE(plan_of(make_plan(v, {.max_load = 1}), "small").admitted);
  CHECK(plan_of(make_plan(v, {.max_load = 1}), "small").reason ==
        "it waits behind a job that has waited longer");
  auto const passed = [&](auto const& change, double max_load = 1) {
    cluster_view other = v;
    change(job_of(other, "large"));
    return plan_of(make_plan(other, {.max_load = max_load}), "small").admitted;
  };
  CHECK_FALSE(passed([](job_view&) {}));
  CHECK(passed([](job_view& j) { j.worker = cores(9); }));
  CHECK(passed([](job_view& j) { j.fixed = {cores(9)}; }));            // a server
  CHECK(passed([](job_view& j) { j.min = j.max = 9; }));               // all together
  CHECK(passed([](job_view& j) { j.fixed = {cores(1), cores(1)}; }));  // with its fixed pods
  CHECK_FALSE(passed([](job_view& j) { j.fixed = {cores(1)}; }));
  CHECK(passed([](job_view&) {}, 0.8));  // beyond the headroom
}

TEST_CASE("who is left alone for now is looked at again when the time has come") {
  cluster_view v = of({machine("n", 4)}, {one("a", 0, 60, cores(1))});
  apply(v, make_plan(v, {.max_load = 1}));
  v.now += 2;
  v.jobs.push_back(one("b", 0, 60, cores(1)));
  plan const p = make_plan(v, {.max_load = 1, .change_share = 0.1});
  CHECK(plan_of(p, "b").workers == 0);
  REQUIRE(p.again_at);
  CHECK(*p.again_at == doctest::Approx(v.now + 8));
  v.now = *p.again_at;
  CHECK(plan_of(make_plan(v, {.max_load = 1}), "b").workers == 2);
}

TEST_CASE("a size that its owner set is kept: nobody is given its workers, and it is given no more") {
  cluster_view v = of({machine("n", 10)}, {one("a", 1, 8, cores(1)), one("b", 1, 60, cores(1))});
  v.jobs[0].manual = 6;
  converge(v, {.max_load = 1});
  CHECK(job_of(v, "a").workers == 6);
  CHECK(job_of(v, "b").workers == 4);
  CHECK(plan_of(make_plan(v, {.max_load = 1}), "a").reason == "6 of 6: its owner set this size");
  v.pods.push_back({.name = "web", .shape = cores(4)});
  converge(v, {.max_load = 1});
  CHECK(job_of(v, "a").workers == 6);
  CHECK(job_of(v, "b").workers == 4);  // three could leave, which is not enough
  job_of(v, "a").manual = 2;
  converge(v, {.max_load = 1});
  CHECK(job_of(v, "a").workers == 2);
  CHECK(job_of(v, "b").workers == 4);
  job_of(v, "a").manual = 100;
  converge(v, {.max_load = 1});
  CHECK(job_of(v, "a").workers == 8);  // never more than max
}

TEST_CASE("a suspended job holds nothing, and is not let in") {
  cluster_view v = of({machine("n", 10)}, {one("a", 2, 60, cores(1)), one("b", 2, 60, cores(1))});
  converge(v, {.max_load = 1});
  v.jobs[0].suspended = true;
  plan const p = make_plan(v, {.max_load = 1});
  CHECK_FALSE(plan_of(p, "a").admitted);
  CHECK(plan_of(p, "a").leaving.size() == 5);
  CHECK(plan_of(p, "a").reason == "its owner suspended it");
  CHECK(plan_of(p, "a").suspended);
  v.jobs[0].why_suspended = "Kueue does not admit it";
  CHECK(plan_of(make_plan(v, {.max_load = 1}), "a").reason == "Kueue does not admit it");
  converge(v, {.max_load = 1});
  CHECK(job_of(v, "b").workers == 10);
  v.jobs[0].suspended = false;
  converge(v, {.max_load = 1});
  CHECK(job_of(v, "a").workers == 5);
}

TEST_CASE("a reason explains the size that it stands beside") {
  cluster_view v = of({machine("n", 4)}, {one("a", 1, 8, cores(1))});
  converge(v, {.max_load = 1});
  CHECK(plan_of(make_plan(v, {.max_load = 1}), "a").reason == "4 of 1 to 8: no room is left for more");
  // A service takes the place of a worker, which the scheduler has preempted.
  job_of(v, "a").last_resized = v.now;
  v.pods.erase(std::ranges::find(v.pods, v.jobs[0].uid, &pod::job));
  v.pods.push_back({.name = "service", .node = "n", .priority = 100, .shape = cores(1)});
  CHECK(plan_of(make_plan(v, {.max_load = 1}), "a").reason ==
        "3 of 1 to 8: 1 worker is gone, and no room is left for another");
  v.jobs.push_back(one("b", 1, 8, cores(1)));
  v.nodes.push_back(machine("m", 5));
  converge(v, {.max_load = 1});
  CHECK(plan_of(make_plan(v, {.max_load = 1}), "a").reason.find("jobs with a stronger claim") !=
        std::string::npos);
}

TEST_CASE("a job is let in with all of its pods or with none, and who would have made room keeps it") {
  job_view gang = one("gang", 2, 4, cores(2));
  gang.fixed = {cores(1), cores(3)};
  cluster_view v = of({machine("m", 4), machine("n", 3)}, {one("a", 1, 7, cores(1))});
  converge(v, {.max_load = 1});
  v.jobs.push_back(gang);
  plan const p = make_plan(v, {.max_load = 1});  // seven cores are not enough for eight and a's one
  CHECK_FALSE(plan_of(p, "gang").admitted);
  CHECK(plan_of(p, "gang").workers == 0);
  CHECK(plan_of(p, "gang").nodes.empty());
  CHECK(plan_of(p, "gang").fixed_nodes.empty());
  CHECK(plan_of(p, "gang").reason ==
        "it waits: its 4 pods have no room, even if all others shrink to their min: they ask for cpu 8, of "
        "which 6 are left");
  CHECK(plan_of(p, "a").leaving.empty());
  CHECK(plan_of(p, "a").reason == "7 of 1 to 7: it has all that it may have");
  v.nodes.push_back(machine("o", 2));
  plan const q = make_plan(v, {.max_load = 1});
  CHECK(plan_of(q, "gang").admitted);
  CHECK(plan_of(q, "gang").nodes.size() == 2);
  CHECK(plan_of(q, "gang").fixed_nodes.size() == 2);
  CHECK(plan_of(q, "a").workers == 1);
}

TEST_CASE("pods that wait for something else than room, or that nobody would miss, make nobody shrink") {
  cluster_view v = of({machine("n", 4)}, {one("a", 1, 60, cores(1))});
  converge(v, {.max_load = 1});
  v.pods.push_back({.name = "gated", .blocked = true, .shape = cores(1)});
  v.pods.push_back({.name = "balloon", .priority = -11, .shape = cores(1)});
  v.pods.push_back({.name = "pulls", .node = "elsewhere", .shape = cores(1)});
  CHECK(changes(v, make_plan(v, {.max_load = 1})) == "");
  CHECK(make_plan(v, {.max_load = 1}).hopeless.empty());
  v.pods.back() = {.name = "web", .shape = cores(1)};
  CHECK(plan_of(make_plan(v, {.max_load = 1}), "a").workers == 3);
}

TEST_CASE("pods of others with a higher priority are given room first") {
  cluster_view v = of({machine("n", 4)}, {one("a", 1, 60, cores(1))});
  converge(v, {.max_load = 1});
  v.pods.push_back({.name = "large", .shape = cores(2)});
  v.pods.push_back({.name = "important", .priority = 1000, .shape = cores(2)});
  plan const p = make_plan(v, {.max_load = 1});
  REQUIRE(p.reservations.size() == 1);
  CHECK(p.reservations[0].pod == "important");
  CHECK(p.hopeless == std::vector<std::string>{"large"});
}

TEST_CASE("a pod whose selector no node has, or that is larger than any node, makes nobody shrink") {
  cluster_view v = of({machine("n", 4), machine("m", 4)}, {one("a", 1, 60, cores(1))});
  converge(v, {.max_load = 1});
  pod_shape nowhere = cores(1);
  nowhere.node_selector["zone"] = "moon";
  v.pods.push_back({.name = "moon", .shape = nowhere});
  v.pods.push_back({.name = "large", .shape = cores(5)});
  plan const p = make_plan(v, {.max_load = 1});
  CHECK(changes(v, p) == "");
  CHECK(p.hopeless.size() == 2);
}

TEST_CASE("room that the scheduler does not use is not kept for ever") {
  cluster_view v = of({machine("n", 4)}, {one("a", 1, 60, cores(1))});
  plan_options const o{.max_load = 1, .promise = 120};
  converge(v, o);
  v.pods.push_back({.name = "web", .shape = cores(2)});
  apply(v, make_plan(v, o), false);
  CHECK(job_of(v, "a").workers == 2);
  for (pod& w : v.pods) w.leaving = false;
  v.pods.push_back({.name = "last", .job = "a", .node = "n", .leaving = true, .shape = cores(1)});
  for (int round = 0; round < 10; ++round) {  // a worker ends slowly: the room is not free yet
    v.now += 100;
    apply(v, make_plan(v, o), false);
    CHECK(job_of(v, "a").workers == 2);
  }
  v.pods.pop_back();
  v.now += 119;
  apply(v, make_plan(v, o), false);
  CHECK(job_of(v, "a").workers == 2);
  for (int round = 0; round < 5; ++round) {
    v.now += 1000;
    plan const p = make_plan(v, o);
    CHECK(p.hopeless == std::vector<std::string>{"web"});
    CHECK(p.reservations.empty());
    apply(v, p, false);
    CHECK(job_of(v, "a").workers == 4);  // and web makes nobody shrink again
  }
}

TEST_CASE("nodes that are cordoned or not ready are given nothing, and what runs there counts") {
  cluster_view v = of({machine("m", 4), machine("n", 4)}, {one("a", 1, 60, cores(1))});
  converge(v, {.max_load = 1});
  v.nodes[0].schedulable = false;
  CHECK(changes(v, make_plan(v, {.max_load = 1})) == "");
  std::erase_if(v.pods, [](pod const& p) { return p.node == "m"; });
  job_of(v, "a").workers = 4;
  v.now += 1000;
  CHECK(changes(v, make_plan(v, {.max_load = 1})) == "");
  v.nodes[0].schedulable = true;
  CHECK(plan_of(make_plan(v, {.max_load = 1}), "a").workers == 8);
}

TEST_CASE("two jobs of one name in two namespaces are two jobs") {
  cluster_view v = of({machine("n", 10)}, {one("uid-1", 1, 3, cores(1)), one("uid-2", 1, 60, cores(1))});
  v.jobs[0].name = "red/mnist";
  v.jobs[1].name = "blue/mnist";
  converge(v, {.max_load = 1});
  CHECK(workers_of(v, "uid-1") == 3);
  CHECK(workers_of(v, "uid-2") == 7);
  v.jobs[0].suspended = true;
  plan const p = make_plan(v, {.max_load = 1});
  for (std::string const& name : plan_of(p, "uid-1").leaving) CHECK(name.rfind("uid-1", 0) == 0);
  CHECK(plan_of(p, "uid-1").leaving.size() == 3);
  CHECK(plan_of(p, "uid-2").leaving.empty());
}

}  // namespace autoscaler_test

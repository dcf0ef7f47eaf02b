// SPDX-License-Identifier: Apache-2.0
// The autoscaler leaves alone what is well: noise, clusters at rest, random histories.
#include <doctest/doctest.h>

#include "cluster/autoscaler/converged_plans.hpp"
#include "edl/cluster/autoscaler/autoscaler.hpp"

namespace autoscaler_rest_test {

using namespace converged_plans;

TEST_CASE("no thrash: noise of 5 % in the speeds resizes nobody, in hundreds of plans") {
  for (policy const& who : policies())
    for (unsigned seed = 0; seed < 10; ++seed) {
      CAPTURE(std::string(who.name));
      CAPTURE(seed);
      std::mt19937 random(seed);
      std::uniform_real_distribution<double> noise(0.95, 1.05);
      cluster_view v = of({machine("n", 24)}, {one("a", 1, 20, cores(1)), one("b", 1, 20, cores(1)),
                                               one("c", 1, 20, cores(1)), one("d", 1, 20, cores(1))});
      constexpr double loss[] = {0.02, 0.05, 0.1, 0.3};  // a step's part that more workers do not divide
      constexpr int settling = 40, plans = 400;
      int resizes = 0;
      for (int t = 0; t < plans; ++t, v.now += 20) {  // nobody is left alone because of the last change
        plan const p = make_plan(v, {.who = who, .max_load = 1});
        for (job_plan const& to : p.jobs) resizes += t >= settling && to.workers != job_of(v, to.uid).workers;
        apply(v, p);
        for (std::size_t i = 0; i < v.jobs.size(); ++i) {
          job_view& j = v.jobs[i];
          j.records_left = 1e6;
          std::erase_if(j.speeds, [&](measured_speed const& m) { return m.workers == j.workers; });
          j.speeds.push_back({j.workers, 100 * noise(random) / (loss[i] + 1.0 / j.workers)});
        }
      }
      CHECK(resizes <= plans / 100);
    }
}

TEST_CASE("no thrash: whether more workers are of use is not asked anew with every noisy speed") {
  for (policy const& who : policies())
    for (unsigned seed = 0; seed < 10; ++seed) {
      CAPTURE(std::string(who.name));
      CAPTURE(seed);
      std::mt19937 random(seed);
      std::uniform_real_distribution<double> noise(0.95, 1.05);
      cluster_view v = of({machine("n", 64)}, {one("a", 1, 20, cores(1)), one("b", 1, 20, cores(1))});
      int resizes = 0;
      for (int t = 0; t < 400; ++t, v.now += 20) {
        plan const p = make_plan(v, {.who = who, .max_load = 1});
        for (job_plan const& to : p.jobs) resizes += t >= 40 && to.workers != job_of(v, to.uid).workers;
        apply(v, p);
        for (job_view& j : v.jobs) {
          j.records_left = 1e6;
          if (t == 0) j.speeds.push_back({10, 1000});
          std::erase_if(j.speeds, [&](measured_speed const& m) { return m.workers == j.workers; });
          // At the border of use: ten more add ten per cent.
          j.speeds.push_back({j.workers, 10.0 * (90 + std::min(j.workers, 10) + std::max(0, j.workers - 10)) *
                                             noise(random)});
        }
      }
      CHECK(resizes <= 4);
    }
}

TEST_CASE("a large cluster at rest stays at rest, also after a burst, a lost node and the end of jobs" *
          doctest::test_suite("long")) {
  for (policy const& who : policies())
    for (unsigned seed = 0; seed < 4; ++seed) {
      CAPTURE(std::string(who.name));
      CAPTURE(seed);
      cluster_view v = large(300, 60, seed);
      plan_options const o{.who = who};
      auto const rests = [&] {
        apply(v, make_plan(v, o));
        CHECK(wrong(v) == "");
        for (int round = 0; round < 3; ++round) {
          v.now += 10'000;
          CHECK(changes(v, make_plan(v, o)) == "");
        }
      };
      rests();
      for (int i = 0; i < 30; ++i)
        v.pods.push_back({.name = "burst-" + std::to_string(i), .shape = cores(8, 8)});
      rests();
      std::erase_if(v.pods, [](pod const& w) { return w.node == "n2"; });
      v.nodes.erase(v.nodes.begin() + 2);
      rests();
      for (int i = 0; i < 6; ++i) {
        std::erase_if(v.pods, [&](pod const& w) { return w.job == v.jobs.front().uid; });
        v.jobs.erase(v.jobs.begin());
      }
      rests();
    }
}

TEST_CASE("random histories: where the headroom is used, nobody has a worker above min that uses it") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    world w(seed);
    plan_options const o{.who = policies()[seed % policies().size()], .max_load = 0.5 + 0.1 * (seed % 5)};
    for (int event = 0; event < 20; ++event) {
      CAPTURE(event);
      w.happen();
      cluster_view& v = w.view;
      apply(v, make_plan(v, o));
      for (char const* what : {"cpu", "memory"}) {
        double used = 0, has = 0;
        auto const amount = [&](resources const& r) { return r.count(what) ? double(r.at(what)) : 0; };
        for (node const& n : v.nodes) has += n.schedulable ? amount(n.allocatable) : 0;
        for (pod const& p : v.pods) used += p.node.empty() ? 0 : amount(p.shape->requests);
        if (used <= has * o.max_load * (1 + 1e-9)) continue;
        for (job_view const& j : v.jobs) {
          CAPTURE(j.uid);
          REQUIRE(j.workers <= std::max(j.min, 0));
        }
      }
    }
  }
}

TEST_CASE(
    "random priorities: no worker above min where a higher priority, or a pod of others, lacks its room") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    auto const upto = [&](int a, int b) { return std::uniform_int_distribution<int>(a, b)(random); };
    std::vector<node> nodes;
    for (int i = upto(1, 6); i > 0; --i) nodes.push_back(machine("n" + std::to_string(i), upto(1, 12)));
    cluster_view v = of(std::move(nodes), {});
    plan_options const o{
        .who = policies()[seed % policies().size()], .max_load = 1, .starvation_timeout = 1e9};
    int serial = 0;
    for (int event = 0; event < 15; ++event) {
      CAPTURE(event);
      v.now += 1000;
      if (int const what = upto(0, 5); what < 3) {
        int const min = upto(0, 3);
        job_view j = one("j" + std::to_string(++serial), min, min + upto(0, 12), cores(1));
        j.priority = upto(-2, 2);
        j.submitted = v.now;
        v.jobs.push_back(std::move(j));
      } else if (what == 3) {
        for (int i = upto(1, 4); i > 0; --i)
          v.pods.push_back({.name = "s" + std::to_string(++serial), .shape = cores(1)});
      } else if (what == 4) {
        std::erase_if(v.pods, [&](pod const& p) { return p.name[0] == 's' && upto(0, 1); });
      } else if (!v.jobs.empty()) {
        auto const gone = v.jobs.begin() + upto(0, int(v.jobs.size()) - 1);
        std::erase_if(v.pods, [&](pod const& p) { return p.job == gone->uid; });
        v.jobs.erase(gone);
      }
      apply(v, make_plan(v, o));
      int capacity = 0, kept = 0;
      for (node const& n : v.nodes) capacity += int(n.allocatable.at("cpu") / 1000);
      bool lacks = false;
      for (pod const& p : v.pods) {
        kept += p.job.empty() && !p.node.empty();
        lacks = lacks || (p.job.empty() && p.node.empty());
      }
      for (job_view const& j : v.jobs) kept += j.admitted ? j.min : 0;
      for (job_view const& low : v.jobs) {
        CAPTURE(low.uid);
        if (lacks) REQUIRE(low.workers <= low.min);
        for (job_view const& high : v.jobs) {
          CAPTURE(high.uid);
          if (high.priority > low.priority && high.admitted && high.workers < high.max)
            REQUIRE(low.workers <= low.min);
        }
      }
      for (job_view const& j : v.jobs)
        if (!j.admitted) REQUIRE(kept + j.min > capacity);  // not even if all others shrink to their min
    }
  }
}

}  // namespace autoscaler_rest_test

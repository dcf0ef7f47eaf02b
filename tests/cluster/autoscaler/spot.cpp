// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/autoscaler/spot.hpp"

#include <doctest/doctest.h>

namespace spot_test {

using namespace edl::autoscaler;
using place = spot_state::place;

namespace {

spot_pool pool(std::string name, double price, double move_hours = 0.02) {
  return {.name = std::move(name), .price = price, .move_hours = move_hours, .seen{}};
}
// A day for 16 hours of work, with 8 of slack.
spot_state state() {
  return {.deadline = 24,
          .work = 16,
          .until_next = 0.1,
          .on_demand = 80,
          .on_demand_hours = 0.02,
          .budget{},
          .pools = {pool("dear", 20), pool("cheap", 15)}};
}
// Up for a long time, or down since an hour ago, which is usual.
spot_sightings steady() {
  spot_sightings s;
  s.saw(0, true);
  s.saw(100, true);
  return s;
}

}  // namespace

TEST_CASE("sightings add up to hours, losses and returns") {
  spot_sightings s;
  s.saw(1, true);
  s.saw(3, true);
  s.saw(4, false);
  s.saw(7, false);
  s.saw(8, true);
  CHECK(s.up_hours == doctest::Approx(2 + 0.5 + 0.5));
  CHECK(s.down_hours == doctest::Approx(0.5 + 3 + 0.5));
  CHECK(s.losses == 1);
  CHECK(s.returns == 1);
  CHECK(s.up == true);
}

TEST_CASE("a job on demand stays where a move to cheaper machines costs more than it saves") {
  spot_state s = state();
  s.at = place::on_demand;
  s.work = 1, s.deadline = 20;
  s.pools = {pool("far", 20, 2.5)};
  s.pools[0].move_usd = 80;
  CHECK(decide(s).at == place::on_demand);
  s.pools[0].move_usd = 0, s.pools[0].move_hours = 0.02;
  CHECK(decide(s).at == place::spot);
}

TEST_CASE("a job goes to the cheapest pool, and asks for the next one where it is refused") {
  spot_state s = state();
  spot_placement to = decide(s);
  CHECK(to.at == place::spot);
  CHECK(to.pool == 1);
  CHECK(to.reason.starts_with("goes to cheap: 15.00 an hour"));
  CHECK(to.expected > 16 * 15);
  CHECK(to.expected < 16 * 80);
  s.pools[1].seen.saw(s.now, false);
  s.deadline = s.work + 1;  // no time to wait for a sixth of the price
  to = decide(s);
  CHECK(to.at == place::spot);
  CHECK(to.pool == 0);
}

TEST_CASE("it moves where that pays, and stays where it does not") {
  spot_state s = state();
  s.at = place::spot;
  s.pool = 0;
  CHECK(decide(s).pool == 1);
  s.pools[1].price = 19.99;
  s.pools[1].move_usd = 5;
  spot_placement const to = decide(s);
  CHECK(to.pool == 0);
  CHECK(to.reason.starts_with("stays in dear"));
}

TEST_CASE("it waits while slack is likely to bring something cheaper, and no longer") {
  spot_state s = state();
  s.pools[0].price = 70;
  s.now = 101;
  s.deadline += 101;
  s.pools[1].seen = steady();
  s.pools[1].seen.saw(101, false);
  spot_placement to = decide(s);
  CHECK(to.at == place::nowhere);
  CHECK(to.reason.starts_with("waits: dear costs 70.00"));
  s.deadline = s.now + s.work + 0.11;  // less than until the next decision and a start
  to = decide(s);
  CHECK(to.at == place::spot);
  CHECK(to.pool == 0);
}

TEST_CASE("the deadline comes first: on demand, and no way back without slack for it") {
  spot_state s = state();
  for (spot_pool& p : s.pools) p.seen.saw(0, false);
  s.deadline = s.work + 0.05;
  spot_placement const to = decide(s);
  CHECK(to.at == place::on_demand);
  CHECK(to.reason.starts_with("goes on demand: the deadline"));
  s = state();
  s.at = place::on_demand;
  CHECK(decide(s).at == place::spot);
  s.deadline = s.work + 0.03;  // a move of 0.02, and if it fails one back
  CHECK(decide(s).at == place::on_demand);
}

TEST_CASE("a pool that is dearer than on demand is no offer, and a budget is told, not kept") {
  spot_state s = state();
  s.pools = {pool("mad", 90)};
  s.deadline = s.work + 0.1;
  CHECK(decide(s).at == place::on_demand);
  s.budget = 100;
  CHECK(decide(s).reason.ends_with("but 100.00 of the budget are left"));
  s.work = 0;
  CHECK(decide(s).at == place::nowhere);
}

TEST_CASE("where starts are long, a steady pool is worth more than a cheaper one that is lost again") {
  spot_state s = state();
  s.now = 100;
  s.deadline = 100 + s.work + 2;
  for (spot_pool& p : s.pools) p.move_hours = 0.2;
  s.on_demand_hours = 0.2;
  s.pools[0].seen = steady();
  s.pools[1].seen = steady();
  s.pools[1].price = 19;
  s.pools[1].seen.losses = s.pools[1].seen.returns = 100;
  CHECK(decide(s).pool == 0);
  for (spot_pool& p : s.pools) p.move_hours = 0.0003;  // a second
  s.on_demand_hours = 0.0003;
  CHECK(decide(s).pool == 1);
}

}  // namespace spot_test

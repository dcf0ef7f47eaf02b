// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/server/model_keepers.hpp"

#include <doctest/doctest.h>

#include "base/net/peers.hpp"
#include "job/master/driven_master.hpp"

namespace model_keepers_test {

using namespace edl::master;

namespace {

struct connected {
  explicit connected(coordinator const& decisions, bool replicas) : it(decisions, replicas) {}

  edl::net::node node{peers::options()};
  model_keepers it;
  int connections = 0;

  void joined(std::uint32_t id, std::uint64_t incarnation = 1) {
    it.joined(id, incarnation, [&] {
      ++connections;
      return std::make_shared<edl::net::channel>(node, std::vector{peers::any_port()}, "nobody");
    });
  }
};

}  // namespace

TEST_CASE("each range is kept by the server that serves it, as long as that is a member") {
  driven_master m({.training = {{"t", 16}}, .num_servers = 2});
  connected c(m.it, false);
  for (std::uint32_t const id : {0u, 1u}) {
    CHECK(m.join(role::server, id));
    c.joined(id);
    c.joined(id);
  }
  CHECK(c.connections == 2);
  m.configured();
  auto const all = c.it.all();
  REQUIRE(all.size() == 2);
  for (std::uint32_t r = 0; r < 2; ++r) {
    CHECK(all[r].range == r);
    CHECK(all[r].id == r);
  }
  m.it.left(role::server, 1, 1, m.now);
  CHECK(c.it.takes_part(all[0]));
  CHECK_FALSE(c.it.takes_part(all[1]));
  c.it.forget_gone();
  CHECK_FALSE(c.it.find(1));
  CHECK(c.it.find(0));
}

TEST_CASE("a world's model is kept by all its members, and a frozen version by those that have it") {
  driven_master m({.training = {{"t", 16}}, .num_workers = 2, .replicas = true});
  connected c(m.it, true);
  CHECK(c.it.is_keeper(role::worker));
  for (std::uint32_t const id : {0u, 1u}) {
    CHECK(m.join(role::worker, id));
    c.joined(id);
  }
  m.enter(0);
  m.enter(1, 0, copy_position{.version = 3, .applied = {}, .world = 1});
  REQUIRE(m.it.ready());
  CHECK(c.it.all().size() == 2);
  REQUIRE(c.it.all(true).size() == 1);
  CHECK(c.it.all(true)[0].id == 1);
  CHECK(c.it.holders(3).size() == 1);
  CHECK(c.it.holders(4).size() == 2);
}

}  // namespace model_keepers_test

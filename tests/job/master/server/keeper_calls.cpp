// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/server/keeper_calls.hpp"

#include <doctest/doctest.h>

#include "job/master/served_master.hpp"

namespace keeper_calls_test {

using namespace served_master;

TEST_CASE("a server at a newer generation than it is told to take is told of one above it") {
  std::atomic<std::uint64_t> taken{0};
  server_process s([&](std::uint16_t, edl::bytes message) -> std::string {
    auto const r = edl::wire::unpack<edl::wire::ConfigureRequest>(message, "master");
    if (r.generation() <= 40) throw call_error(status::stale_generation, "already at generation 40");
    taken = r.generation();
    return configured();
  });
  master_process m;
  CHECK(m.join(s));
  CHECK(eventually([&] { return m.ready(); }));
  CHECK(taken > 40);
}

}  // namespace keeper_calls_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/server/orders.hpp"

#include <doctest/doctest.h>

#include "job/master/served_master.hpp"

namespace orders_test {

using namespace served_master;

TEST_CASE("a server that does not answer at first is asked again until it does, whatever it says") {
  for (status const code :
       {status::not_ready, status::unavailable, status::deadline_exceeded, status::unauthenticated}) {
    CAPTURE(int(code));
    server_process s([&](std::uint16_t, edl::bytes) -> std::string {
      if (s.asked < 4) throw call_error(code, "not now");
      return configured();
    });
    master_process m;
    CHECK(m.join(s));
    CHECK(eventually([&] { return m.ready(); }));
    CHECK(s.asked == 4);
  }
}

TEST_CASE("an order to a server that is gone is void") {
  server_process lost(
      [&](std::uint16_t, edl::bytes) -> std::string { throw call_error(status::not_ready, "never"); });
  server_process next([](std::uint16_t, edl::bytes) { return configured(); });
  master_process m([](server_options& o) { o.step_timeout = 50ms; });
  CHECK(m.join(lost));
  REQUIRE(eventually([&] { return lost.asked >= 2; }));
  CHECK(m.join(next, 2));
  CHECK(eventually([&] { return m.ready(); }));
  // It is waited for no more, and asked at most once more.
  int const asked = lost.asked;
  REQUIRE(eventually([&] { return m.waits().value_or("") != ""; }));
  REQUIRE(eventually([&] { return m.waits()->find("ps-0 to answer") == std::string::npos; }));
  CHECK(lost.asked <= asked + 1);
}

TEST_CASE("a server that lives and can never be reached ends the job, with the reason") {
  server_process s([](std::uint16_t, edl::bytes) -> std::string {
    throw call_error(status::unavailable, "no way to it");
  });
  master_process m([](server_options& o) { o.order_timeout = 200ms; });
  CHECK(m.join(s));
  CHECK(eventually([&] { return m.ended().has_value(); }));
  CHECK(m.ended()->find("server 0 cannot take the state of ") == 0);
  CHECK(m.ended()->find("no way to it") != std::string::npos);
}

}  // namespace orders_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/controller/election.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "edl/core/error.hpp"

namespace election_test {

using namespace edl::controller;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

edl::time_point const start{1h};

/// A Lease, as a server keeps it.
struct server {
  json lease = nullptr;
  int version = 0;
  void put(json next) {
    lease = std::move(next);
    lease["metadata"]["resourceVersion"] = std::to_string(++version);
  }
};

election make(char const* who) {
  return {"edl-controller", "edl-system", who, {.duration = 15s, .renew_deadline = 10s, .retry = 2s}};
}

/// Returns whether it leads after one try.
bool turn(election& e, server& s, edl::time_point now,
          std::string const& wall = "2026-11-22T10:00:00.000000Z") {
  auto next = e.propose(s.lease, now, wall + std::to_string(now.time_since_epoch().count()));
  if (!next) return e.leads(now);
  s.put(*next);
  e.accepted(now);
  return true;
}

}  // namespace

TEST_CASE(
    "the first takes the lease, and the second waits until it is not renewed any more, by its own clock") {
  server s;
  election a = make("a"), b = make("b");
  CHECK(turn(a, s, start));
  CHECK(s.lease["spec"]["leaseTransitions"] == 0);
  CHECK_FALSE(turn(b, s, start));
  // The other's clock runs years ahead: it is no matter what its renewals say.
  CHECK(turn(a, s, start + 8s, "2099-01-01T00:00:00.000000Z"));
  CHECK_FALSE(turn(b, s, start + 10s));
  CHECK_FALSE(turn(b, s, start + 24s));
  CHECK(b.holder() == "a");
  CHECK(turn(b, s, start + 25s));
  CHECK(s.lease["spec"]["holderIdentity"] == "b");
  CHECK(s.lease["spec"]["leaseTransitions"] == 1);
  CHECK_FALSE(turn(a, s, start + 25s));
}

TEST_CASE("a holder that cannot renew stops before anybody can take its place") {
  server s;
  election a = make("a"), b = make("b");
  turn(a, s, start);
  turn(b, s, start);
  CHECK(a.leads(start + 9s));
  CHECK(a.until() == start + 10s);
  CHECK_FALSE(a.leads(start + 10s));
  CHECK_FALSE(turn(b, s, start + 14s));
  CHECK(turn(b, s, start + 15s));
}

TEST_CASE("where the holder is killed another leads within 12 s, whenever it looks") {
  election::options const o;
  auto const killed = start + 20s;  // just after a renewal
  for (auto phase = 0ms; phase < o.retry; phase += 50ms) {
    server s;
    election a("edl-controller", "edl-system", "a", o), b("edl-controller", "edl-system", "b", o);
    auto now = start;
    for (; now < killed; now += o.retry) {
      CHECK(turn(a, s, now));
      CHECK_FALSE(turn(b, s, now + phase));
    }
    CHECK(turn(a, s, killed));
    now += phase;
    while (!turn(b, s, now)) now += o.retry;
    CHECK(now - killed >= o.duration);
    CHECK(now - killed <= o.duration + 2 * o.retry);
    CHECK(now - killed < 15s);
  }
}

TEST_CASE("a holder that leaves gives the lease back") {
  server s;
  election a = make("a"), b = make("b");
  turn(a, s, start);
  CHECK_FALSE(turn(b, s, start));
  CHECK_FALSE(b.release(s.lease, "").has_value());
  s.put(*a.release(s.lease, "now"));
  a.lost();
  CHECK_FALSE(a.leads(start));
  CHECK(turn(b, s, start + 1s));
}

TEST_CASE("a lease that says anything is no reason to fail") {
  for (char const* text :
       {R"({})", R"({"spec": null})", R"({"spec": {"holderIdentity": 3, "leaseTransitions": "x"}})"}) {
    server s;
    s.lease = json::parse(text);
    election a = make("a");
    CHECK(turn(a, s, start));
  }
}

TEST_CASE("times that could let two lead are refused") {
  CHECK_THROWS_AS(election("n", "s", "a", {.duration = 10s, .renew_deadline = 10s}), edl::usage_error);
  CHECK_THROWS_AS(election("n", "s", "a", {.renew_deadline = 2s, .retry = 2s}), edl::usage_error);
}

}  // namespace election_test

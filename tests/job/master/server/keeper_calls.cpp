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

TEST_CASE("a version is evaluated although a member that keeps it is not configured yet") {
  std::atomic<int> claims{0};
  server_process s([&](std::uint16_t called, edl::bytes) -> std::string {
    if (called == method::configure) return configured();
    if (called == method::claim && ++claims <= 2) throw call_error(status::not_ready, "not configured yet");
    return edl::wire::pack(edl::wire::Empty{});
  });
  master_process m([](server_options& o) {
    o.job.type = job_type::training_with_evaluation;
    o.job.validation = {{"v", 4}};
    o.job.evaluation_steps = 1;
  });
  CHECK(m.join(s));
  CHECK(m.join_worker());
  REQUIRE(eventually([&] { return m.ready(); }));
  edl::wire::VersionReport report;
  report.set_generation(m.on_node([&] { return m.it->decisions().generation(); }));
  report.set_version(1);
  report.set_evaluate(true);
  m.ask(method::version, report);
  CHECK(eventually(
      [&] { return m.on_node([&] { return m.it->decisions().versions().evaluations().wants_frozen(1); }); }));
  CHECK(claims == 3);
  CHECK(m.said().find("is not evaluated") == std::string::npos);
}

}  // namespace keeper_calls_test

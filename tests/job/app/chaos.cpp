// SPDX-License-Identifier: Apache-2.0
// A few jobs to which happens what `edl-world` cannot express. Long runs: tools/chaos.
#include <doctest/doctest.h>

#include "chaos/plan.hpp"
#include "chaos/trial.hpp"

namespace chaos_test {

TEST_CASE("neighbours, storage that fails and damaged journals cost a job nothing") {
  struct drawn {
    bool allreduce;
    std::uint64_t seed;
  };
  for (drawn const d : {drawn{false, 3}, {true, 5}}) {
    auto const p = chaos::draw_plan(d.seed, {.allreduce = d.allreduce,
                                             .min_faults = 6,
                                             .max_faults = 8,
                                             .epochs_per_worker = 8,
                                             .hostile = true,
                                             .long_silences = false});
    chaos::outcome const o = chaos::trial(p, nullptr).run();
    MESSAGE("seed " << d.seed << ", " << p.configuration() << ": " << o.faults.size() << " faults in "
                    << o.seconds << " s");
    CAPTURE(o.log);
    for (std::string const& why : o.failures) FAIL_CHECK(why);
    CHECK_FALSE(o.faults.empty());
  }
}

TEST_CASE("lost replies, altered records, and signals to all of a job or to its start cost it nothing") {
  // Without TLS and with it, behind relays; and by one command.
  for (bool const relays : {true, false})
    for (bool const allreduce : {true, false}) {
      std::uint64_t seed = 1;
      chaos::plan p;
      do
        p = chaos::draw_plan(seed++, {.allreduce = allreduce,
                                      .min_faults = 5,
                                      .max_faults = 6,
                                      .epochs_per_worker = 4,
                                      .by_hand = relays,
                                      .proxied = relays,
                                      .signals = !relays,
                                      .long_silences = false});
      while (p.plain != (relays && allreduce));
      chaos::outcome const o = chaos::trial(p, nullptr).run();
      MESSAGE("seed " << p.seed << ", " << p.configuration() << ": " << o.faults.size() << " faults in "
                      << o.seconds << " s");
      CAPTURE(o.log);
      for (std::string const& why : o.failures) FAIL_CHECK(why);
      CHECK_FALSE(o.faults.empty());
    }
}

TEST_CASE("killed at random, a job has the same best version, the same list and the same end") {
  chaos::reference undisturbed;
  auto const p = chaos::draw_plan(
      3, {.allreduce = true, .min_faults = 6, .max_faults = 6, .long_silences = false, .judged = true});
  chaos::outcome const o = chaos::trial(p, &undisturbed).run();
  MESSAGE(p.configuration() << ": " << o.faults.size() << " faults in " << o.seconds << " s; " << o.best);
  CAPTURE(o.log);
  for (std::string const& why : o.failures) FAIL_CHECK(why);
  CHECK_FALSE(o.faults.empty());
  CHECK(o.same_bits == true);
}

TEST_CASE("a plan is drawn from its seed alone") {
  auto const a = chaos::draw_plan(7, {.allreduce = true}), b = chaos::draw_plan(7, {.allreduce = true}),
             c = chaos::draw_plan(8, {.allreduce = true});
  REQUIRE(a.faults.size() == b.faults.size());
  bool same = a.faults.size() == c.faults.size();
  for (std::size_t i = 0; i < a.faults.size(); ++i) {
    CHECK(a.faults[i].what == b.faults[i].what);
    CHECK(a.faults[i].choice == b.faults[i].choice);
    same = same && a.faults[i].choice == c.faults[i].choice;
  }
  CHECK_FALSE(same);
}

}  // namespace chaos_test

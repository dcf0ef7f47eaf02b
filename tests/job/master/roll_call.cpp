// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/roll_call.hpp"

#include <doctest/doctest.h>

#include <string>

namespace roll_call_test {

using namespace edl::master;

namespace {

copy_position copy(std::uint64_t version, std::uint64_t of = 1) { return {version, {}, of}; }

struct roll {
  membership workers;
  roll_call it;

  explicit roll(std::uint32_t n, unsigned threshold = 3) : it(threshold) {
    for (std::uint32_t i = 0; i < n; ++i)
      workers.join(i, 100 + i, {"tcp:h:" + std::to_string(i + 1)}, time_point{});
  }

  void enter(std::uint32_t id, std::optional<copy_position> c = {},
             std::optional<std::uint32_t> suspect = {}) {
    it.enter(id, {.incarnation = 100 + id, .last = 1, .copy = std::move(c), .suspect = suspect});
  }

  std::string form(std::uint64_t version, std::uint64_t number = 2, std::string restore = {}) {
    if (it.empty())
      for (auto const& [id, m] : workers.all()) enter(id, copy(version));
    world const w = it.form(number, workers, version, std::move(restore));
    std::string out;
    for (auto const& m : w.members)
      out += (out.empty() ? "" : " ") + std::to_string(m.id) + (m.current ? "*" : "");
    return out;
  }

  // A world in which the first accuses the second, and so on, and which comes to `version`.
  void broken(std::uint64_t version,
              std::vector<std::pair<std::uint32_t, std::uint32_t>> const& accusations) {
    it.clear();
    for (auto const& [id, m] : workers.all()) {
      std::optional<std::uint32_t> suspect;
      for (auto const& [who, whom] : accusations)
        if (who == id) suspect = whom;
      enter(id, copy(version), suspect);
    }
  }
};

}  // namespace

TEST_CASE("a roll is complete when every member has entered, as the process that it is") {
  roll r(2);
  CHECK(r.it.empty());
  CHECK_FALSE(r.it.complete(r.workers));
  r.enter(0);
  CHECK_FALSE(r.it.empty());
  CHECK_FALSE(r.it.complete(r.workers));
  r.it.enter(1, {.incarnation = 9, .last = 0, .copy = {}, .suspect = {}});
  CHECK_FALSE(r.it.complete(r.workers));
  CHECK(r.it.has(1, 9));
  CHECK_FALSE(r.it.has(1, 101));
  r.enter(1);
  CHECK(r.it.complete(r.workers));
  CHECK(r.it.has(1, 101));
  r.it.forget(0);
  CHECK_FALSE(r.it.complete(r.workers));
  r.enter(0);
  r.it.clear();
  CHECK(r.it.empty());
}

TEST_CASE("nobody is suspect before as many worlds as the threshold have broken for the same one") {
  for (unsigned threshold : {1u, 2u, 3u, 5u}) {
    roll r(3, threshold);
    r.form(5);  // version 5 has been reached
    for (unsigned i = 1; i < threshold; ++i) {
      r.broken(5, {{0, 2}});
      CHECK_FALSE(r.it.suspect());
      r.form(5);
    }
    r.broken(5, {{0, 2}});
    CHECK(r.it.suspect() == 2u);
    CHECK_FALSE(r.it.suspect());  // asked anew
    r.broken(5, {{0, 2}});
    CHECK(r.it.suspect().has_value() == (threshold == 1));
  }
}

TEST_CASE("a world counts once, however many voices there are, and however often they are raised") {
  roll r(5);
  r.form(5);
  r.broken(5, {{0, 4}, {1, 4}, {2, 4}, {3, 4}});
  for (int i = 0; i < 5; ++i) r.enter(0, copy(5), 4u);
  CHECK_FALSE(r.it.suspect());
  r.form(5);
  r.broken(5, {{0, 4}, {1, 4}});
  CHECK_FALSE(r.it.suspect());
  r.form(5);
  r.broken(5, {{3, 4}});
  CHECK(r.it.suspect() == 4u);
}

TEST_CASE("of those suspected in as many worlds it is the one whom most miss, else the youngest") {
  roll r(4);
  r.form(5);
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(r.it.suspect());
    r.broken(5, {{0, 1}, {2, 1}, {1, 3}});
    if (i < 2) r.form(5);
  }
  CHECK(r.it.suspect() == 1u);
  roll two(2);
  two.form(5);
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(two.it.suspect());
    two.broken(5, {{0, 1}, {1, 0}});
    if (i < 2) two.form(5);
  }
  CHECK(two.it.suspect() == 1u);
  CHECK_FALSE(two.it.suspect());  // the other is cleared with it
}

TEST_CASE("a world that brings a newer version clears all") {
  roll r(2);
  r.form(5);
  for (int i = 0; i < 2; ++i) {
    r.broken(5, {{0, 1}});
    r.form(5);
  }
  r.broken(6, {{0, 1}});
  CHECK_FALSE(r.it.suspect());
  r.form(6);
  for (int i = 0; i < 2; ++i) {
    r.broken(6, {{0, 1}});
    CHECK_FALSE(r.it.suspect());
    r.form(6);
  }
  r.broken(6, {{0, 1}});
  CHECK(r.it.suspect() == 1u);
}

TEST_CASE("who is lost is suspect no more") {
  roll r(3);
  r.form(5);
  for (int i = 0; i < 2; ++i) {
    r.broken(5, {{0, 2}});
    r.form(5);
  }
  r.it.forget(2);
  r.broken(5, {{0, 2}});
  CHECK_FALSE(r.it.suspect());
}

}  // namespace roll_call_test

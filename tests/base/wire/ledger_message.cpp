// SPDX-License-Identifier: Apache-2.0
#include "edl/base/wire/ledger_message.hpp"

#include <doctest/doctest.h>

#include <random>

#include "base/wire/scratch.hpp"
#include "edl/base/wire/edl.pb.h"

namespace ledger_message_test {

using namespace edl::wire;

namespace {

edl::ledger random_ledger(unsigned seed) {
  std::mt19937 random(seed);
  edl::ledger l;
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch)
    for (std::uint32_t task = 0; task < 40; ++task) {
      auto const n = std::uint32_t(random() % 5);
      for (std::uint32_t i = 0; i < n; ++i) l.apply({{{epoch, task}, i, 4}, 8});
    }
  return l;
}

}  // namespace

TEST_CASE("a ledger survives its message and its text") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    auto const l = random_ledger(seed);
    Ledger message;
    to_message(l, message);
    Ledger read;
    REQUIRE(read.ParseFromString(message.SerializeAsString()));
    CHECK(from_message(read) == l);
    CHECK(ledger_from_json(to_json(l), "here") == l);
  }
  Ledger used;
  to_message(random_ledger(1), used);
  to_message({}, used);
  CHECK(from_message(used) == edl::ledger{});
}

TEST_CASE("the text of a ledger") {
  edl::ledger l;
  l.set_closed(0, 0, 5);
  l.set_closed(0, 7, 8);
  l.set_open({1, 3}, 2);
  CHECK(to_json(l) == R"({"closed":{"0":[0,5,7,8]},"open":[[1,3,2]]})");
}

TEST_CASE("a ledger that contradicts itself is refused") {
  auto const said = [](auto&& fill) {
    Ledger message;
    fill(message);
    return complaint([&] { from_message(message); });
  };
  auto const closed = [](Ledger& m, std::initializer_list<std::uint32_t> runs) {
    auto& c = *m.add_closed();
    c.set_epoch(2);
    for (auto r : runs) c.add_runs(r);
  };
  auto const open = [](Ledger& m, std::uint32_t index, std::uint32_t applied) {
    auto& o = *m.add_open();
    o.mutable_task()->set_epoch(2);
    o.mutable_task()->set_index(index);
    o.set_applied(applied);
  };
  CHECK(said([&](Ledger& m) { closed(m, {0, 5, 6, 8}); }).empty());
  CHECK(contains(said([&](Ledger& m) { closed(m, {0, 5, 6}); }), "no end"));
  CHECK(contains(said([&](Ledger& m) { closed(m, {5, 5}); }), "empty run"));
  CHECK(contains(said([&](Ledger& m) { closed(m, {6, 5}); }), "empty run"));
  CHECK(contains(said([&](Ledger& m) { closed(m, {0, 5, 4, 6}); }), "does not follow"));
  CHECK(contains(said([&](Ledger& m) { closed(m, {4, 6}), closed(m, {0, 1}); }), "does not follow"));
  CHECK(contains(said([&](Ledger& m) { open(m, 1, 0); }), "open twice"));
  CHECK(contains(said([&](Ledger& m) { open(m, 1, 1), open(m, 1, 2); }), "open twice"));
  CHECK(contains(said([&](Ledger& m) { closed(m, {0, 5}), open(m, 1, 1); }), "open twice"));
  CHECK(said([&](Ledger& m) { open(m, 1, 1), open(m, 2, 2); }).empty());
}

TEST_CASE("a text that is no ledger is refused") {
  for (std::string const text :
       {"", "[]", "{}", "null", R"({"closed":{},"open":{}})", R"({"closed":[],"open":[]})",
        R"({"closed":{"x":[0,1]},"open":[]})", R"({"closed":{"0":[0]},"open":[]})",
        R"({"closed":{"0":7},"open":[]})", R"({"closed":{"0":[0,4294967296]},"open":[]})",
        R"({"closed":{"0":[-1,1]},"open":[]})", R"({"closed":{},"open":[[0,1]]})",
        R"({"closed":{},"open":[[0,1,"2"]]})", R"({"closed":{"-1":[0,1]},"open":[]})",
        R"({"closed":{},"open":[[0,1,1],[0,1,1]]})"})
    CHECK_MESSAGE(contains(complaint([&] { ledger_from_json(text, "manifest.json"); }), "manifest.json"),
                  text);
  CHECK(contains(complaint([&] { ledger_from_json(std::string(300'000, '['), "here"); }), "here"));
}

TEST_CASE("what damaged records lack, and what was counted, survive the message and the text") {
  edl::ledger l;
  l.apply({{{1, 2}, 0, 3}, 60, 4});
  l.apply({{{1, 2}, 1, 3}, 64});
  l.apply({{{1, 5}, 0, 1}, 64});
  CHECK(l.skipped().at({1, 2}) == 4);
  CHECK(l.tallies().at(1) == edl::ledger::tally{3, 188});
  Ledger message;
  to_message(l, message);
  CHECK(from_message(message) == l);
  CHECK(to_json(l) == R"({"closed":{"1":[5,6]},"open":[[1,2,2]],"skipped":[[1,2,4]],"tallies":[[1,3,188]]})");
  CHECK(ledger_from_json(to_json(l), "here") == l);
  for (char const* text :
       {R"({"closed":{},"open":[],"skipped":[[1,2,4]]})",
        R"({"closed":{"1":[2,3]},"open":[],"skipped":[[1,2,0]]})",
        R"({"closed":{},"open":[],"tallies":[[1,2,3],[1,2,3]]})",
        R"({"closed":{},"open":[],"tallies":[[1,2]]})", R"({"closed":{},"open":[],"tallies":7})"})
    CHECK_THROWS_AS(ledger_from_json(text, "here"), edl::error);
}

}  // namespace ledger_message_test

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include "edl/core/error.hpp"
#include "edl/job/master/coordinator.hpp"
#include "job/master/driven_master.hpp"

namespace generations_test {

using namespace edl::master;
using edl::ledger;
using edl::task_kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Twenty records in tasks of four, in minibatches of two; three servers, and two of them hold each range.
job_options options() {
  job_options o;
  o.training = {{"t", 20}};
  o.minibatch_size = 2;
  o.minibatches_per_task = 2;
  o.shuffle = false;
  o.num_workers = 1;
  o.num_servers = 3;
  o.server_copies = 2;
  o.checkpoint = true;
  return o;
}

struct master : driven_master {
  explicit master(job_options o = options(), std::optional<persisted_state> before = {})
      : driven_master(std::move(o), before) {}

  bool join(std::uint32_t id, std::uint64_t incarnation = 1, std::uint64_t held = 0,
            std::vector<std::uint32_t> ranges = {}) {
    return it.join({role::server, id, incarnation, {}, 5, held, std::move(ranges)}, now).accepted;
  }

  void start() {
    for (std::uint32_t id = 0; id < 3; ++id) CHECK(join(id));
    CHECK(it.join({role::worker, 0, 1, {}, 5}, now).accepted);
    CHECK_FALSE(configured().keep);
    CHECK(it.ready());
  }
};

ledger some() {
  ledger l;
  l.apply({{{0, 0}, 0, 2}, 2});
  l.apply({{{0, 0}, 1, 2}, 2});
  l.apply({{{0, 1}, 0, 2}, 2});
  return l;
}

}  // namespace

TEST_CASE("the loss of a server with a backup loses nothing: the others go on with what they have") {
  master m;
  m.start();
  CHECK(m.it.request_task(0, 1, m.now).kind == task_kind::training);
  m.it.left(role::server, 1, 1, m.now);
  CHECK_FALSE(m.take<find_restore_point>());
  auto const c = m.configured(some(), 3);
  CHECK(c.generation == 2);
  CHECK(c.keep);
  CHECK(c.servers == std::set<std::uint32_t>{0, 2});
  CHECK(c.sources == std::vector<std::uint32_t>{0, 2, 2});  // its backup serves range 1
  CHECK(m.it.ready());
  // The lease is void; what the servers have applied is done.
  CHECK(m.it.tasks()->done().records_done == 4);
  auto const t = m.it.request_task(0, 1, m.now);
  CHECK((t.key.index == 1 && t.applied == 1 && t.generation == 2));

  // A new process takes the place, and copies.
  CHECK(m.join(1, 2));
  auto const again = m.configured(some(), 3);
  CHECK((again.keep && again.generation == 3));
  CHECK(again.places[1] == range_place{1, 2});
  CHECK(again.sources == std::vector<std::uint32_t>{0, 2, 2});
  CHECK(m.it.ready());
}

TEST_CASE("the loss of both holders of a range goes back to a checkpoint") {
  master m;
  m.start();
  m.it.left(role::server, 1, 1, m.now);
  CHECK(m.take<configure_servers>()->keep);
  m.it.left(role::server, 2, 1, m.now);  // while they are at it
  CHECK(m.take<find_restore_point>());
  m.it.restore_point_found(m.it.generation(), restore_point{"version-9", 9, some()}, m.now);
  CHECK_FALSE(m.take<configure_servers>());  // two are away
  CHECK(m.join(1, 2));
  CHECK(m.join(2, 2));
  auto const c = m.configured();
  CHECK((!c.keep && c.restore == "version-9" && c.servers.size() == 3));
  CHECK(m.it.ready());
}

TEST_CASE("a server that was to copy is no holder before all have answered") {
  master m;
  m.start();
  m.it.left(role::server, 1, 1, m.now);
  m.configured(some(), 3);
  CHECK(m.join(1, 2));
  auto const c = m.take<configure_servers>();
  REQUIRE(c);
  m.it.left(role::server, 2, 1, m.now);
  CHECK(m.take<configure_servers>()->sources == std::vector<std::uint32_t>{0, 0, 0});
  m.it.left(role::server, 0, 1, m.now);
  CHECK(m.take<find_restore_point>());
}

TEST_CASE("a server whose backup is cut off gets another") {
  master m;
  m.start();
  m.it.backup_cut_off(0, 1, 1, m.now);   // does not serve that range
  m.it.backup_cut_off(0, 99, 0, m.now);  // in no such generation
  CHECK(m.it.generation() == 1);
  m.it.backup_cut_off(0, 1, 0, m.now);
  CHECK(m.it.servers().find(1) == nullptr);
  CHECK(m.configured(some(), 3).places[0] == range_place{0, 2});
}

TEST_CASE("a master that takes another's place goes on with servers that have their state") {
  persisted_state const before{
      .generation = 4,
      .members = 1,
      .wanted_servers = 3,
      .workers = {.next = 1, .lines = {{0, 0, false}}},
      .servers = {.next = 3, .lines = {{0, 0, false}, {1, 0, false}, {2, 0, false}}}};
  SUBCASE("all of them") {
    master m(options(), before);
    CHECK(m.join(0, 1, 4, {0, 2}));
    CHECK(m.join(1, 1, 4, {0, 1}));
    CHECK_FALSE(m.take<configure_servers>());
    CHECK(m.join(2, 1, 4, {1, 2}));
    auto const c = m.configured(some(), 3);
    CHECK((c.keep && c.generation == 5));
    CHECK(m.it.tasks()->done().records_done == 4);
  }
  SUBCASE("one was lost, too: the others hold everything, and it is waited for no longer than a moment") {
    master m(options(), before);
    CHECK(m.join(0, 1, 4, {0, 2}));
    CHECK(m.join(1, 1, 4, {0, 1}));
    m.now += seconds(1);
    m.it.tick(m.now);
    CHECK_FALSE(m.take<configure_servers>());
    for (int i = 0; i < 12; ++i) m.it.tick(m.now += milliseconds(250));
    auto const c = m.configured(some(), 3);
    CHECK((c.keep && c.servers == std::set<std::uint32_t>{0, 1}));
  }
  SUBCASE("what they hold is of an older generation, or not everything") {
    master m(options(), before);
    CHECK(m.join(0, 1, 3, {0, 2}));
    CHECK(m.join(1, 1, 4, {1}));
    CHECK(m.join(2, 1, 0));
    CHECK_FALSE(m.take<configure_servers>());
    CHECK(m.take<find_restore_point>());
    m.it.restore_point_found(m.it.generation(), std::nullopt, m.now);
    CHECK_FALSE(m.configured().keep);
  }
}

TEST_CASE("members know a newer generation than a master's journal: it goes above it, with their state") {
  auto const join = [](master& m, role of, std::uint32_t id, std::uint64_t held, std::uint64_t heard,
                       std::vector<std::uint32_t> ranges = {}) {
    return m.it.join({of, id, 1, {}, 5, held, std::move(ranges), heard}, m.now).accepted;
  };
  auto const warned = [](master& m) {
    bool seen = false;
    for (auto& c : m.it.take_commands()) m.seen.push_back(std::move(c));
    for (auto const& c : m.seen)
      if (auto const* line = std::get_if<log_line>(&c))
        seen |= line->text.find("its journal was lost or is older") != std::string::npos;
    return seen;
  };
  persisted_state const before{
      .generation = 4,
      .members = 1,
      .wanted_servers = 3,
      .workers = {.next = 1, .lines = {{0, 0, false}}},
      .servers = {.next = 3, .lines = {{0, 0, false}, {1, 0, false}, {2, 0, false}}}};
  SUBCASE("an intact journal: exactly the next, without a word") {
    master m(options(), before);
    CHECK(join(m, role::worker, 0, 4, 4));
    for (std::uint32_t id = 0; id < 3; ++id) CHECK(join(m, role::server, id, 4, 4, {id, (id + 2) % 3}));
    auto const c = m.configured(some(), 3);
    CHECK((c.keep && c.generation == 5));
    CHECK_FALSE(warned(m));
  }
  SUBCASE("an older journal") {
    master m(options(), before);
    CHECK(join(m, role::server, 0, 9, 9, {0, 2}));
    CHECK(join(m, role::server, 1, 9, 9, {0, 1}));
    CHECK(join(m, role::server, 2, 9, 9, {1, 2}));
    auto const c = m.configured(some(), 3);
    CHECK((c.keep && c.generation == 10));
    CHECK(m.it.tasks()->done().records_done == 4);
    CHECK(warned(m));
  }
  SUBCASE("the journal before, and the one server that knew better is gone: a worker does") {
    persisted_state older = before;
    older.generation = 1;
    master m(options(), older);
    CHECK(m.it.generation() == 2);
    CHECK(join(m, role::worker, 1, 2, 2));
    CHECK(m.it.generation() == 3);
  }
  SUBCASE("an older journal, and storage that has not answered when a worker comes") {
    master m(options(), before);
    CHECK(m.join(0, 1, 3, {0, 2}));
    CHECK(m.join(1, 1, 4, {1}));
    CHECK(m.join(2, 1, 0));
    REQUIRE(m.take<find_restore_point>());
    CHECK(join(m, role::worker, 0, 9, 9));
    auto const again = m.take<find_restore_point>();
    CHECK((again && again->generation == 10));
  }
  SUBCASE("none at all; a worker comes first") {
    master m;
    CHECK(join(m, role::worker, 0, 9, 9));
    CHECK(m.it.generation() == 10);
    CHECK(join(m, role::server, 0, 9, 9, {0, 2}));
    CHECK(join(m, role::server, 1, 9, 9, {0, 1}));
    CHECK(join(m, role::server, 2, 9, 9, {1, 2}));
    auto const c = m.configured(some(), 3);
    CHECK((c.keep && c.generation == 10));
    CHECK(m.it.tasks()->done().records_done == 4);
  }
  SUBCASE("none at all, and not everything is there: back to a checkpoint") {
    master m;
    CHECK(join(m, role::server, 0, 1, 1, {0}));
    CHECK(join(m, role::server, 1, 0, 0));
    CHECK(join(m, role::server, 2, 0, 0));
    CHECK(m.take<find_restore_point>());
    m.it.restore_point_found(m.it.generation(), std::nullopt, m.now);
    auto const c = m.configured();
    CHECK((!c.keep && c.generation == 2));
  }
  SUBCASE("it runs already") {
    master m;
    m.start();
    CHECK(m.it.generation() == 1);
    SUBCASE("a worker from another time") {
      SUBCASE("of a generation of the same number") {
        CHECK(join(m, role::worker, 1, 1, 1));
        auto const c = m.configured(some(), 3);
        CHECK((c.keep && c.generation == 2));
      }
      CHECK(join(m, role::worker, 2, 7, 7));
      auto const c = m.configured(some(), 3);
      CHECK((c.keep && c.generation == 8));
    }
    SUBCASE("a server from another time") {
      m.it.left(role::server, 1, 1, m.now);
      CHECK(m.configured(some(), 3).keep);
      CHECK(m.it.join({role::server, 1, 2, {}, 5, 7, {1}, 7}, m.now).accepted);
      auto const c = m.configured(some(), 3);
      CHECK((c.keep && c.generation == 8));
      for (std::uint32_t const source : c.sources) CHECK(source != 1);  // what it has is of that time
    }
  }
  SUBCASE("a number that cannot be is refused") {
    master m;
    CHECK_FALSE(join(m, role::server, 0, 0, ~std::uint64_t{0}));
  }
}

TEST_CASE("a server that knows a newer generation than it is told to take: the next ones leap above it") {
  master m;
  for (std::uint32_t id = 0; id < 3; ++id) CHECK(m.join(id));
  std::uint64_t const ahead = 1000;
  int rounds = 0;
  for (; m.it.generation() <= ahead; ++rounds) {
    auto const c = m.take<configure_servers>();
    REQUIRE(c);
    m.it.server_ahead(1, 1, c->generation, m.now);
    m.it.server_ahead(1, 1, c->generation, m.now);  // told twice
    if (m.take<find_restore_point>()) m.it.restore_point_found(m.it.generation(), std::nullopt, m.now);
  }
  CHECK(rounds <= 10);
  CHECK(m.configured().generation > ahead);
  CHECK(m.it.ready());
}

TEST_CASE(
    "an evaluation of the end that the master before has not completed begins again, a complete one not") {
  auto o = options();
  o.type = job_type::training_with_evaluation;
  o.validation = {{"v", 8}};
  o.evaluation_steps = 100;
  ledger all;
  all.set_closed(0, 0, 5);
  // A master until all has been trained, and some tasks of the last evaluation are reported.
  auto const until_the_end = [&](master& m, std::uint64_t generation, int reports) {
    for (std::uint32_t id = 0; id < 3; ++id) CHECK(m.join(id, 1, generation, {id, (id + 2) % 3}));
    CHECK(m.it.join({role::worker, 0, 1, {}, 5}, m.now).accepted);
    CHECK(m.configured(all, 7).keep == (generation > 0));
    if (generation == 0)
      for (auto t = m.it.request_task(0, 1, m.now); t.kind == task_kind::training;
           t = m.it.request_task(0, 1, m.now))
        CHECK(m.it.report_task({.worker = 0, .incarnation = 1, .lease = t.lease}, m.now));
    REQUIRE(m.take<ask_version>());
    m.it.version_announced(m.it.generation(), 7, m.now);
    int done = 0;
    for (; done < reports; ++done) {
      auto const t = m.it.request_task(0, 1, m.now);
      if (t.kind != task_kind::evaluation) break;
      CHECK(t.version == 7);
      CHECK(m.it.report_task({.worker = 0, .incarnation = 1, .lease = t.lease, .metrics = {1}}, m.now));
    }
    return done;
  };
  for (int const reported : {0, 1, 2}) {
    CAPTURE(reported);
    master first(o);
    CHECK(until_the_end(first, 0, reported) == reported);
    persisted_state left = first.it.remembered();
    left.finished = false;  // it is lost before that
    CHECK(left.evaluated.has_value() == (reported == 2));
    master second(o, left);
    CHECK(until_the_end(second, left.generation, 10) == (reported == 2 ? 0 : 2));
    CHECK(second.it.finished());
    CHECK(second.take<evaluation_done>().has_value() == (reported < 2));
  }
}

}  // namespace generations_test

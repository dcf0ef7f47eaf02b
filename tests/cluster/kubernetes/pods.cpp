// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/pods.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cluster/kubernetes/driven_pods.hpp"

namespace pods_test {

using namespace driven_pods;

TEST_CASE("A wanted process is asked for once, and its end is told once") {
  drive d;
  d.all.start(worker(0), std::nullopt, d.now);
  auto asked = d.take<create_pod>();
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].who == worker(0));
  CHECK(asked[0].limit.at("memory") == "2Gi");
  auto s = d.come_up(worker(0));
  d.all.take_commands();
  d.exit(s, 3);
  auto const ends = d.take<pod_ended>();
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].ending.failed());
  CHECK(describe(ends[0].ending) == "exited with code 3");
  d.all.deleted(s, d.now);
  CHECK(d.take<pod_ended>().empty());
}

TEST_CASE("A worker that is being deleted is told of at once, and its successor says why") {
  drive d;
  auto s = d.run(worker(2));
  d.all.take_commands();
  s.terminating = true;
  s.disruption = "PreemptionByScheduler: default-scheduler: preempting";
  d.all.changed(s, d.now);
  auto const leaving = d.take<pod_leaving>();
  REQUIRE(leaving.size() == 1);
  CHECK(leaving[0].who == worker(2));
  d.all.start(worker(4), 2, d.now);
  auto const commands = d.all.take_commands();
  auto const has = [&](auto const& wanted) {
    return std::ranges::any_of(commands, [&](auto const& c) { return wanted(c); });
  };
  CHECK(has([](pod_command const& c) {
    auto const* n = std::get_if<pod_note>(&c);
    return n && n->reason == "WorkerRelaunched" &&
           n->text.find("worker-4 replaces worker-2, which was taken away: PreemptionByScheduler") == 0;
  }));
  CHECK(has([](pod_command const& c) {
    auto const* n = std::get_if<create_pod>(&c);
    return n && n->who == worker(4) && n->index == 2;
  }));
  d.exit(s, 137);
  auto const ends = d.take<pod_ended>();
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].ending.outside);
}

TEST_CASE("Workers on nodes that are short of something are told of when that changes") {
  drive d;
  for (process_id const who : {worker(0), worker(1), server(0)}) {
    auto s = d.run(who);
    s.node = who == worker(1) ? "m" : "n";
    d.all.changed(s, d.now);
  }
  auto const told = [&] {
    d.all.tick(d.now);
    return d.take<pods_pressed>();
  };
  CHECK(told().empty());
  d.all.short_of({{"n", "DiskPressure"}, {"o", "MemoryPressure"}});
  auto const first = told();
  REQUIRE(first.size() == 1);
  CHECK(first[0].workers ==
        std::map<std::uint32_t, std::string>{{0, "runs on node n, which has DiskPressure"}});
  CHECK(told().empty());
  d.all.stop(worker(0), 30s);  // it hands over
  CHECK(told().at(0).workers.empty());
}

TEST_CASE("New workers go to the chosen pool; those elsewhere move, or are created again without a node") {
  drive d;
  d.run(server(0));
  auto old = d.run(worker(0));
  d.all.use_pool("{}");
  d.all.start(worker(1), std::nullopt, d.now);
  CHECK(d.take<create_pod>().back().pool == "{}");
  pod_status waits{.who = worker(1), .index = 1, .name = pod_name("j", worker(1)), .uid = "w", .pool = "{}"};
  d.all.created(worker(1), waits.uid);
  d.all.changed(waits, d.now);
  auto const moving = [&] {
    d.all.tick(d.now);
    return d.take<pods_moving>();
  };
  using all = std::map<std::uint32_t, std::string>;
  CHECK(moving().at(0).workers == all{{0, "moves to the pool of nodes that was chosen"}});
  CHECK(moving().empty());
  d.all.use_pool("{\"a\":\"b\"}");
  d.all.tick(d.now);
  auto const ends = d.take<pod_ended>();
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].ending.who == worker(1));
  CHECK(ends[0].ending.outside);
  d.all.stop(worker(0), 30s);
  CHECK(moving().at(0).workers.empty());
  // Without a pool nobody moves.
  d.run(worker(2));
  CHECK(moving().size() == 1);
  d.all.use_pool("");
  CHECK(moving().at(0).workers.empty());
}

TEST_CASE("Nodes that a master avoids are avoided by the next") {
  drive d;
  CHECK(d.all.avoid(worker(0), "is slow") == "");
  auto s = d.run(worker(0));
  s.node = "n";
  d.all.changed(s, d.now);
  CHECK(d.all.avoid(worker(0), "is slow") == "n");
  CHECK(d.all.avoid(worker(0), "is slow") == "");
  d.all = pods({.job = "j", .avoided = {"n"}});
  d.all.start(worker(1), std::nullopt, d.now);
  CHECK(d.take<create_pod>().at(0).avoid == std::vector<std::string>{"n"});
}

TEST_CASE(
    "A node that is about to go gets no pod for a while, and a pod without a node does not wait for it") {
  drive d;
  d.all.evade(worker(0), "has notice", d.now);  // its node is not known
  auto s = d.run(worker(0));
  s.node = "n";
  d.all.changed(s, d.now);
  d.all.take_commands();
  for (int i = 0; i < 2; ++i) d.all.evade(worker(0), "has notice: AWS", d.now);
  auto const told = d.all.take_commands();
  REQUIRE(told.size() == 2);
  CHECK(std::get<nodes_leaving>(told[0]).nodes == std::vector<std::string>{"n"});
  CHECK(std::get<pod_note>(told[1]).text == "this job leaves node n: worker-0 has notice: AWS");
  for (std::uint32_t const id : {1, 2}) {
    d.all.start(worker(id), std::nullopt, d.now);
    auto const asked = d.take<create_pod>();
    REQUIRE(asked.size() == 1);
    CHECK(asked[0].avoid == std::vector<std::string>{"n"});
  }
  // One finds a node, the other does not.
  auto placed = d.come_up(worker(1));
  d.all.created(worker(2), "waits");
  d.all.tick(d.now + 299s);
  d.all.take_commands();
  d.all.tick(d.now + 301s);
  auto const commands = d.all.take_commands();
  std::vector<std::string> deleted;
  std::vector<process_id> ended;
  for (auto const& c : commands) {
    if (auto const* one = std::get_if<delete_pod>(&c)) deleted.push_back(one->uid);
    if (auto const* one = std::get_if<pod_ended>(&c)) {
      ended.push_back(one->ending.who);
      CHECK(one->ending.outside);
    }
    if (auto const* one = std::get_if<nodes_leaving>(&c)) CHECK(one->nodes.empty());
  }
  CHECK(deleted == std::vector<std::string>{"waits"});
  CHECK(ended == std::vector<process_id>{worker(2)});
  d.all.start(worker(3), 2, d.now);
  CHECK(d.take<create_pod>().at(0).avoid.empty());
}

TEST_CASE("A server's name is used again when its old pod is gone") {
  drive d;
  auto s = d.run(server(0));
  d.all.take_commands();
  d.exit(s, 137);
  CHECK_FALSE(d.take<pod_ended>()[0].ending.outside);  // the master reads the signal
  d.all.start(server(0), 0, d.now);
  auto const commands = d.all.take_commands();
  CHECK(std::ranges::none_of(commands, [](auto const& c) { return std::holds_alternative<create_pod>(c); }));
  auto const gone =
      std::ranges::find_if(commands, [](auto const& c) { return std::holds_alternative<delete_pod>(c); });
  REQUIRE(gone != commands.end());
  CHECK(std::get<delete_pod>(*gone).uid == s.uid);
  d.all.deleted(s, d.now);
  CHECK(d.take<create_pod>().size() == 1);
}

TEST_CASE("A server that is given up and wanted again comes back when its old pod is gone") {
  drive d;
  auto s = d.run(server(0));
  d.all.stop(server(0), 0s);
  d.all.start(server(0), 0, d.now);
  d.all.take_commands();
  d.exit(s, 137);
  auto const ends = d.take<pod_ended>();
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].ending.stop_requested);
  d.all.deleted(s, d.now);
  REQUIRE(d.take<create_pod>().size() == 1);
  SUBCASE("the new pod is kept") {
    d.all.created(server(0), "new");
    CHECK(d.take<delete_pod>().empty());
  }
  SUBCASE("what is refused for now is asked for again") {
    pods::refusal why;
    SUBCASE("unreachable") { why = {0, {}, "unreachable"}; }
    SUBCASE("old pod") { why = {409, "AlreadyExists", "already exists"}; }
    SUBCASE("quota") { why = {403, "Forbidden", "exceeded quota: q"}; }
    d.all.refused(server(0), why, d.now);
    d.all.tick(d.now + 60s);
    CHECK(d.take<create_pod>().size() == 1);
    d.all.created(server(0), "new");
    CHECK(d.take<delete_pod>().empty());
  }
  SUBCASE("unless it is stopped once more") {
    d.all.stop(server(0), 0s);
    d.all.created(server(0), "new");
    CHECK(d.take<delete_pod>().size() == 1);
  }
}

TEST_CASE("A pod that is to leave before its request is answered ends as the master has asked") {
  drive d;
  d.all.start(server(0), std::nullopt, d.now);
  pod_status const s{.who = server(0), .name = "n", .uid = "u"};
  d.all.changed(s, d.now);
  d.all.stop(server(0), 0s);
  d.all.start(server(0), 0, d.now);
  d.all.created(server(0), "u");
  d.all.take_commands();
  d.all.deleted(s, d.now);
  auto const commands = d.all.take_commands();
  REQUIRE(commands.size() == 2);
  CHECK(std::get<pod_ended>(commands[0]).ending.stop_requested);
  CHECK(std::get<create_pod>(commands[1]).who == server(0));
}

TEST_CASE("Thirty lost at once are asked for again in one go") {
  drive d;
  std::vector<pod_status> running;
  for (std::uint32_t i = 0; i < 30; ++i) running.push_back(d.run(worker(i)));
  d.all.take_commands();
  for (auto& s : running) {
    s.terminating = true;
    d.all.changed(s, d.now);
  }
  auto const leaving = d.take<pod_leaving>();
  REQUIRE(leaving.size() == 30);
  for (auto const& l : leaving) d.all.start(worker(30 + l.who.id), l.who.id, d.now);
  CHECK(d.take<create_pod>().size() == 30);
}

TEST_CASE("A master that takes another's place finds the pods, and hears what it has missed") {
  drive d;
  pod_status runs{.who = worker(1), .index = 1, .name = "a", .uid = "1", .at = phase::running};
  pod_status failed{.who = worker(0), .index = 0, .name = "b", .uid = "2", .at = phase::failed};
  failed.ended = {3, "Error", {}};
  pod_status leaves = runs;
  leaves.who = worker(2), leaves.uid = "3", leaves.terminating = true;
  d.all.listed({runs, failed, leaves}, d.now);
  auto const commands = d.all.take_commands();
  auto const& found = std::get<pods_found>(commands.back()).pods;
  CHECK(found.running == std::vector{worker(1)});
  CHECK(found.next_worker == 3);
  CHECK(std::ranges::count_if(commands, [](auto const& c) { return std::holds_alternative<pod_ended>(c); }) ==
        1);
  CHECK(std::ranges::count_if(commands,
                              [](auto const& c) { return std::holds_alternative<pod_leaving>(c); }) == 1);

  SUBCASE("a listing after an expired watch tells of what is gone") {
    d.all.listed({failed}, d.now);
    auto const ends = d.take<pod_ended>();
    REQUIRE(ends.size() == 2);
    CHECK(ends[0].ending.outside);
    CHECK(describe(ends[0].ending) == "was deleted");
  }
}

TEST_CASE("What the master stops is its own doing, and stopped once; what comes up too late is deleted") {
  drive d;
  auto s = d.run(worker(0));
  d.all.take_commands();
  d.all.stop(worker(0), 30s);
  d.all.stop(worker(0), 30s);
  auto const deletions = d.take<delete_pod>();
  REQUIRE(deletions.size() == 1);
  CHECK(deletions[0].grace == 30s);
  s.terminating = true;
  d.all.changed(s, d.now);
  CHECK(d.take<pod_leaving>().empty());
  d.exit(s, 1);
  auto const ends = d.take<pod_ended>();
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].ending.stop_requested);

  d.all.start(worker(1), std::nullopt, d.now);
  d.all.stop(worker(1), 0s);
  CHECK(d.take<delete_pod>().empty());
  d.all.created(worker(1), "late");
  auto const late = d.take<delete_pod>();
  REQUIRE(late.size() == 1);
  CHECK(late[0].uid == "late");
}

TEST_CASE("What has ended by itself, or is about to, stays; the rest goes with the job") {
  drive d;
  auto left = d.run(worker(0)), hangs = d.run(worker(1));
  d.all.start(worker(2), std::nullopt, d.now);
  d.all.created(worker(2), "waits");  // no node has room for it
  d.all.changed({.who = worker(2), .name = "w2", .uid = "waits"}, d.now);
  d.all.start(worker(3), std::nullopt, d.now);  // not answered yet
  d.all.start(worker(4), std::nullopt, d.now);
  d.all.refused(worker(4), {0, {}, "unreachable"}, d.now);  // to be asked for again
  d.all.take_commands();
  // Those that have no node have not left, whatever the master was told.
  d.all.stop_all(2s, {worker(0), worker(2)});
  std::vector<std::string> deleted;
  for (auto const& c : d.take<delete_pod>()) deleted.push_back(c.uid);
  CHECK(deleted == std::vector<std::string>{hangs.uid, "waits"});
  CHECK(d.all.creating());
  d.all.created(worker(3), "late");
  CHECK(d.take<delete_pod>().at(0).uid == "late");
  d.all.start(worker(5), std::nullopt, d.now);
  d.all.tick(d.now + 60s);
  CHECK(d.take<create_pod>().empty());
  CHECK(d.all.any());
  d.exit(hangs, 143);
  d.all.deleted({.who = worker(2), .name = "w2", .uid = "waits"}, d.now);
  d.all.deleted({.who = worker(3), .name = "w3", .uid = "late"}, d.now);
  CHECK_FALSE(d.all.any());  // the node of worker 0 may tell of its end when it likes
  d.exit(left, 0);
  CHECK(d.take<delete_pod>().empty());
}

TEST_CASE("What was asked of a pod before it was there is not asked of it twice over") {
  drive d;
  d.all.start(server(0), std::nullopt, d.now);
  d.all.stop(server(0), 30s);        // it is given up while its pod is being made,
  d.all.start(server(0), 0, d.now);  // and wanted again
  d.all.created(server(0), "u");
  CHECK(d.take<delete_pod>().empty());
  d.all.stop(server(0), 30s);
  auto const deletions = d.take<delete_pod>();
  REQUIRE(deletions.size() == 1);
  CHECK(deletions[0].uid == "u");
}

TEST_CASE(
    "A pod that was made though its request failed is deleted when it comes to light, unless it is wanted") {
  drive d;
  d.all.listed({}, d.now);
  d.all.start(worker(0), std::nullopt, d.now);
  d.all.stop(worker(0), 2s);
  d.all.take_commands();
  SUBCASE("before the request's answer") {
    d.all.changed({.who = worker(0), .name = "n", .uid = "u"}, d.now);
    CHECK(d.take<delete_pod>().empty());
    d.all.refused(worker(0), {409, "AlreadyExists", "already exists"}, d.now);
  }
  SUBCASE("after it") {
    d.all.refused(worker(0), {0, {}, "unreachable"}, d.now);
    CHECK(d.take<delete_pod>().empty());
    d.all.changed({.who = worker(0), .name = "n", .uid = "u"}, d.now);
  }
  auto const deletions = d.take<delete_pod>();
  REQUIRE(deletions.size() == 1);
  CHECK(deletions[0].uid == "u");
  CHECK(d.all.any());
  d.all.deleted({.who = worker(0), .name = "n", .uid = "u"}, d.now);
  CHECK_FALSE(d.all.any());

  d.all.start(worker(1), std::nullopt, d.now);
  d.all.take_commands();
  d.all.changed({.who = worker(1), .name = "n", .uid = "v"}, d.now);
  d.all.refused(worker(1), {409, "AlreadyExists", "already exists"}, d.now);
  d.all.tick(d.now + 60s);
  CHECK(d.all.take_commands().empty());
}

TEST_CASE("A pod whose other containers outlive the program is deleted, and its end told once") {
  drive d;
  auto s = d.run(worker(0));
  s.others = true;
  s.ended = {0, "Completed", {}};
  d.all.changed(s, d.now);
  auto commands = d.all.take_commands();
  auto const count = [&](auto is) { return std::ranges::count_if(commands, is); };
  CHECK(count([](auto const& c) { return std::holds_alternative<pod_ended>(c); }) == 1);
  CHECK(count([](auto const& c) { return std::holds_alternative<delete_pod>(c); }) == 1);
  s.terminating = true;
  d.all.changed(s, d.now);
  d.all.deleted(s, d.now);
  CHECK(d.all.take_commands().empty());
  // One that has ended as a whole stays to be looked at.
  auto t = d.run(worker(1));
  t.others = true;
  d.take<pod_ended>();
  t.at = phase::succeeded;
  t.ended = {0, "Completed", {}};
  d.all.changed(t, d.now);
  CHECK(d.take<delete_pod>().empty());
}

TEST_CASE(
    "Of several containers the first in the spec is the program's, whatever the order of their statuses") {
  auto const pod = nlohmann::json::parse(R"({
    "metadata": {"labels": {"elasticdl-replica-type": "worker", "elasticdl-replica-index": "3"}},
    "spec": {"containers": [{"name": "train"}, {"name": "log"}]},
    "status": {"phase": "Running", "containerStatuses": [
      {"name": "log", "state": {"running": {}}},
      {"name": "train", "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}]}})");
  auto const s = read_pod(pod);
  REQUIRE(s);
  REQUIRE(s->ended);
  CHECK(s->ended->code == 3);
  CHECK(s->lingers());
}

TEST_CASE("Who has given up waiting has not failed") {
  drive d;
  auto s = d.run(worker(0));
  d.all.take_commands();
  d.exit(s, edl::platform::gave_up_waiting);
  auto const ends = d.take<pod_ended>();
  REQUIRE(ends.size() == 1);
  CHECK_FALSE(ends[0].ending.failed());
}

TEST_CASE("An event that overtakes the answer to its request is the same pod") {
  drive d;
  d.all.start(worker(0), std::nullopt, d.now);
  d.all.changed({.who = worker(0), .name = "n", .uid = "u"}, d.now);
  d.all.created(worker(0), "u");
  d.all.take_commands();
  d.all.changed({.who = worker(0), .name = "n", .uid = "u", .at = phase::running}, d.now);
  d.all.tick(d.now + 60s);
  CHECK(d.all.take_commands().empty());
}

TEST_CASE("The answer to a request may come after the pod has come and gone: it is no pod that is there") {
  drive d;
  auto const come_and_go = [&] {
    d.all.changed({.who = server(0), .name = "s", .uid = "u"}, d.now);
    d.all.deleted({.who = server(0), .name = "s", .uid = "u"}, d.now);
    CHECK(d.take<pod_ended>().size() == 1);
  };
  d.all.start(server(0), std::nullopt, d.now);
  d.take<create_pod>();
  SUBCASE("wanted again before the answer") {
    come_and_go();
    d.all.start(server(0), 0, d.now);
    CHECK(d.take<create_pod>().empty());
    d.all.created(server(0), "u");
    CHECK(d.take<create_pod>().size() == 1);
  }
  SUBCASE("wanted again after the answer") {
    come_and_go();
    d.all.created(server(0), "u");
    d.all.start(server(0), 0, d.now);
    CHECK(d.take<create_pod>().size() == 1);
  }
  SUBCASE("wanted again before it has gone") {
    pod_status s{.who = server(0), .name = "s", .uid = "u"};
    d.all.changed(s, d.now);
    d.exit(s, 1);
    d.all.start(server(0), 0, d.now);
    d.all.deleted(s, d.now);
    CHECK(d.take<create_pod>().empty());
    SUBCASE("the request was carried out") { d.all.created(server(0), "u"); }
    SUBCASE("its answer is lost") {
      d.all.refused(server(0), {}, d.now);
      d.all.tick(d.now + 60s);
    }
    CHECK(d.take<create_pod>().size() == 1);
  }
  SUBCASE("a list that is older than the answer does not say that it is gone") {
    d.all.created(server(0), "u", "12");
    d.all.listed({}, d.now, "11");
    CHECK(d.take<pod_ended>().empty());
    d.all.listed({}, d.now, "12");
    CHECK(d.take<pod_ended>().size() == 1);
  }
}

TEST_CASE("The least size comes first: servers, and the workers without which the job does not run") {
  drive d;
  d.all.least(2);
  for (process_id const who : {worker(0), worker(1), worker(2), worker(3), server(0)})
    d.all.start(who, std::nullopt, d.now);
  auto const asked = [&] {
    std::vector<std::string> names;
    for (auto const& c : d.take<create_pod>()) names.push_back(edl::to_string(c.who));
    return names;
  };
  using names = std::vector<std::string>;
  CHECK(asked() == names{"worker-0", "worker-1", "ps-0"});
  d.come_up(worker(0));
  d.come_up(worker(1));
  CHECK(asked().empty());
  auto s = d.come_up(server(0));
  CHECK(asked() == names{"worker-2", "worker-3"});
  // Nor do others take what a server needs that is to come back.
  d.all.refused(worker(2), {403, "Forbidden", "exceeded quota: q"}, d.now);
  d.exit(s, 137);
  d.all.start(server(0), 0, d.now);
  d.all.deleted(s, d.now);
  d.all.tick(d.now + 60s);
  CHECK(asked() == names{"ps-0"});
  d.come_up(server(0));
  CHECK(asked() == names{"worker-2"});
  // One that is stopped before it is made is not made.
  d.all.start(worker(4), std::nullopt, d.now);
  d.all.stop(worker(4), 0s);
  d.all.tick(d.now + 120s);
  CHECK(asked() == names{"worker-4"});
}

TEST_CASE("A worker makes way for a server that its quota leaves no room for, and who waits is told") {
  drive d;
  auto s = d.run(server(0));
  auto last = d.run(worker(0));
  for (std::uint32_t id : {1u, 2u}) last = d.run(worker(id));
  d.exit(s, 137);
  d.all.start(server(0), 0, d.now);
  d.all.deleted(s, d.now);
  d.all.take_commands();
  // What is about to end may give back its quota within a moment.
  for (int i = 0; i < 3; ++i) {
    CHECK(d.take<pod_leaving>().empty());
    d.all.tick(d.now += 60s);
    d.all.refused(server(0), {403, "Forbidden", "exceeded quota: q"}, d.now);
  }
  auto const commands = d.all.take_commands();
  std::string left;
  for (auto const& c : commands)
    if (auto const* p = std::get_if<pod_leaving>(&c)) left += edl::to_string(p->who) + " " + p->why;
  CHECK(left == "worker-2 made room for ps-0 in the quota");
  d.all.refused(server(0), {403, "Forbidden", "exceeded quota: q"}, d.now);
  CHECK(d.take<pod_leaving>().empty());  // one is on its way out
  last.terminating = true;
  d.exit(last, 143);
  CHECK(d.take<pod_ended>().at(0).ending.outside);
  d.all.start(worker(3), 2, d.now);
  d.all.tick(d.now += 60s);
  auto const next = d.take<create_pod>();
  REQUIRE(next.size() == 1);
  CHECK(next[0].who == server(0));
}

TEST_CASE("A pod that the job needs and that is refused is told of until it is there") {
  drive d;
  auto const told = [&] {
    d.all.tick(d.now);
    std::vector<std::string> all;
    for (auto const& m : d.take<pods_missing>()) all.push_back(m.why);
    return all;
  };
  d.all.start(server(0), std::nullopt, d.now);
  CHECK(told().empty());
  d.all.refused(server(0), {403, "Forbidden", "exceeded quota: q"}, d.now);
  CHECK(told() == std::vector<std::string>{"ps-0 cannot be created yet: exceeded quota: q"});
  CHECK(told().empty());
  d.now += 60s;
  d.all.tick(d.now);
  d.come_up(server(0));
  CHECK(told() == std::vector<std::string>{""});
}

TEST_CASE("Servers with all copies of a part of the model on one node are told of") {
  drive d;
  d.all = pods({.job = "j", .server_copies = 2});
  auto const told = [&] {
    d.all.tick(d.now);
    std::string all;
    for (auto const& n : d.take<pod_note>()) all += n.reason + ": " + n.text;
    return all;
  };
  auto a = d.run(server(0)), b = d.run(server(1));
  for (auto* s : {&a, &b}) {
    s->node = "n";
    d.all.changed(*s, d.now);
  }
  CHECK(told().starts_with("CopiesTogether: ps-0, ps-1 are on node n: "));
  CHECK(told().empty());
  b.node = "m";
  d.all.changed(b, d.now);
  CHECK(told().empty());
}

TEST_CASE("A real API server's streams: what became of each pod") {
  char const* const data = std::getenv("EDL_TEST_DATA");
  std::string const folder = std::string(data ? data : "") + "/../k8s/transcripts/";
  auto const run = [&](std::string const& file, std::map<std::string, std::uint32_t> const& ids) {
    std::ifstream in(folder + file);
    std::vector<std::string> told;
    pods all(
        {.job = "j", .server = {}, .worker = {.request = {}, .limit = {{"memory", "64Mi"}}, .priority = {}}});
    bool body = false;
    for (std::string line; std::getline(in, line);) {
      if (line.rfind("{\"type\"", 0) == 0 && (body = true)) {
        auto event = nlohmann::json::parse(line);
        auto& metadata = event["object"]["metadata"];
        if (!ids.contains(metadata.value("name", ""))) continue;
        metadata["labels"]["elasticdl-replica-type"] = "worker";
        metadata["labels"]["elasticdl-replica-index"] = std::to_string(ids.at(metadata["name"]));
        auto const s = read_pod(event["object"]);
        REQUIRE(s);
        event["type"] == "DELETED" ? all.deleted(*s, {}) : all.changed(*s, {});
        for (auto const& c : all.take_commands()) {
          if (auto const* e = std::get_if<pod_ended>(&c))
            told.push_back(to_string(e->ending.who) +
                           (e->ending.outside    ? " outside: "
                            : e->ending.failed() ? " failed: "
                                                 : ": ") +
                           describe(e->ending));
          if (auto const* l = std::get_if<pod_leaving>(&c))
            told.push_back(to_string(l->who) + " leaves: " + l->why);
        }
      }
    }
    return std::pair(body, told);
  };
  auto const [there, six] =
      run("02-pods-watch-life-of-six-pods.http", {{"w0", 0}, {"w1", 1}, {"w2", 2}, {"w3", 3}});
  if (!there) {
    MESSAGE("skipped: there are no recorded streams beside the test data");
    return;
  }
  CHECK(six ==
        std::vector<std::string>{
            "worker-3 failed: cannot start: ErrImageNeverPull: Container image \"no-such-image:1\" is not "
            "present with pull policy of Never",
            "worker-2 outside: used more memory than its limit of 64Mi",
            "worker-1 failed: exited with code 3", "worker-0: exited with code 0"});
  auto const preempted =
      run("37-pods-watch-preemption-and-kubectl-delete.http", {{"low0", 0}, {"low1", 1}}).second;
  std::string const why =
      "was taken away: PreemptionByScheduler: default-scheduler: preempting to accommodate a higher priority "
      "pod";
  CHECK(preempted == std::vector<std::string>{"worker-0 leaves: " + why, "worker-0 outside: " + why,
                                              "worker-1 leaves: was deleted",
                                              "worker-1 outside: was deleted"});
}

}  // namespace pods_test

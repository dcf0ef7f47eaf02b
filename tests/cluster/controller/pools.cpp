// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/controller/pools.hpp"

#include <doctest/doctest.h>

#include "cluster/autoscaler/world.hpp"
#include "edl/core/error.hpp"

namespace pools_test {

using namespace world;

namespace {

constexpr double hour = 3600;

/// Nodes of three pools, and a job whose two workers may run there.
struct market {
  cluster c;
  std::optional<pass> p{std::in_place};

  explicit market(double hours, json const& progress = nullptr) {
    c.add_node("0-master", 2);
    for (std::string const name : {"a", "b", "od"}) c.add_node(name, 4, {{"pool", name}});
    c.add_job("job", 2, 2);
    auto const pool = [](char const* name, double usd) {
      return json{{"name", name}, {"nodeSelector", {{"pool", name}}}, {"usdPerHour", usd}};
    };
    json on_demand = pool("od", 4);
    on_demand.erase("name");
    c.change_spec("job", {{"spot",
                           {{"deadline", edl::stamp_of(c.now + hours * hour)},
                            {"onDemand", on_demand},
                            {"pools", {pool("a", 1), pool("b", 1.2)}}}}});
    if (!progress.is_null()) c.objects.at(c.job_path("job"))["status"] = progress;
  }

  json spot() const { return c.status("job").value("spot", json::object()); }
  std::string pool() const { return spot().value("pool", ""); }
  /// Running workers by node, as "a a".
  std::string places() const {
    std::string all;
    for (auto const& path : c.paths("-worker-")) {
      json const& pod = c.objects.at(path);
      if (pod["status"]["phase"] == "Running" && !pod["metadata"].contains("deletionTimestamp"))
        all += (all.empty() ? "" : " ") + pod["spec"]["nodeName"].get<std::string>();
    }
    return all;
  }
  void run(int seconds, std::function<void()> const& check = {}) {
    for (int i = 0; i < seconds; ++i) {
      p->work(c);
      c.step();
      if (check) check();
    }
  }
  void take_nodes(std::string const& name) {
    c.lose_node(name);
    for (auto const& path : c.paths("/pods/"))
      if (c.objects.at(path)["spec"].value("nodeName", "") == name) {
        c.erase(path);
        c.objects.erase(path);
      }
  }
};

json const half_done = R"({"progress": {"records": 1000000, "totalRecords": 2000000},
  "speeds": [{"workers": 2, "recordsPerSecond": 278}]})"_json;  // an hour is missing

}  // namespace

TEST_CASE("workers run in the cheapest pool, and what they cost is added up") {
  market m(10);
  m.run(20);
  CHECK(m.pool() == "a");
  CHECK(m.places() == "a a");
  double const before = m.spot()["usd"];
  m.c.now += hour;
  m.run(1);
  CHECK(m.spot()["usd"].get<double>() == doctest::Approx(before + 2).epsilon(0.01));
  // Another controller goes on with that sum.
  m.p.emplace();
  m.c.now += hour;
  m.run(12);
  CHECK(m.spot()["usd"].get<double>() == doctest::Approx(before + 4).epsilon(0.01));
  CHECK(m.spot()["pools"][0]["upHours"].get<double>() == doctest::Approx(2).epsilon(0.02));
}

TEST_CASE("a pool that has no machines for two minutes is left, and tried again when it has a node") {
  market m(10);
  m.run(20);
  m.take_nodes("a");
  m.run(100);
  CHECK(m.pool() == "a");  // its nodes may come back
  CHECK(m.places() == "");
  m.run(60);
  CHECK(m.pool() == "b");
  CHECK(m.places() == "b b");
  CHECK(m.spot()["pools"][0]["up"] == "False");
  CHECK(m.spot()["pools"][0]["losses"] == 1);
  // Workers leave when their successors run.
  m.c.add_node("a", 4, {{"pool", "a"}});
  m.run(30, [&] { CHECK(m.places().size() >= 3); });
  CHECK(m.pool() == "a");
  CHECK(m.places() == "a a");
  CHECK(m.spot()["pools"][0]["returns"] == 1);
}

TEST_CASE("a pool that is tried in vain costs the workers elsewhere nothing") {
  market m(10);
  m.c.lose_node("a");
  m.p->take_prices({{"b", 0.5}});
  m.run(20);
  CHECK(m.places() == "b b");
  m.p->take_prices({{"a", 0.45}, {"b", 0.5}});
  int without = 0;
  std::set<std::string> tried;
  m.run(1500, [&] {
    without += m.places() != "b b";
    tried.insert(m.pool());
  });
  CHECK(tried == std::set<std::string>{"a", "b"});
  CHECK(without == 0);
}

TEST_CASE("workers leave a pool whose nodes are about to go, before they go") {
  market m(10);
  m.run(20);
  REQUIRE(m.places() == "a a");
  m.p->take_prices({{"b", 1.02}});
  m.c.annotate(cluster::pod_path("elasticdl-job-master"), annotation::leaving_nodes, "x,a");
  m.run(30, [&] { CHECK(m.places().size() >= 3); });
  CHECK(m.pool() == "b");
  CHECK(m.places() == "b b");
  CHECK(m.spot()["pools"][0]["up"] == "False");
  m.c.annotate(cluster::pod_path("elasticdl-job-master"), annotation::leaving_nodes, "y");
  m.run(500, [&] { CHECK(m.places() == "b b"); });
}

TEST_CASE("new prices move the workers") {
  market m(10);
  m.run(20);
  REQUIRE(m.places() == "a a");
  m.p->take_prices({{"a", 3}, {"b", 0.5}, {"another", 0}});
  m.run(30);
  CHECK(m.pool() == "b");
  CHECK(m.places() == "b b");
  CHECK(m.spot()["reason"].get<std::string>().starts_with("goes to b: 1.00 an hour"));
}

TEST_CASE("a job that cannot wait runs on demand, until the deadline and after it") {
  market m(0.02, half_done);
  m.run(20);
  CHECK(m.pool() == "on-demand");
  CHECK(m.places() == "od od");
  m.c.now += hour;
  m.run(70);
  CHECK(m.places() == "od od");
}

TEST_CASE("a job with time waits for a cheap pool without pods, and goes on when it must") {
  market m(30, half_done);
  m.p->take_prices({{"a", 0.1}, {"b", 3.9}});
  m.c.lose_node("a");
  m.run(400);
  CHECK(m.pool() == "none");
  CHECK(says(m.c, "Admitted", "job") == "False WaitsForPool");
  CHECK(m.c.paths("/pods/").empty());
  CHECK(m.spot()["reason"].get<std::string>().starts_with("waits: "));
  double const spent = m.spot()["usd"];
  SUBCASE("the pool comes back") {
    m.c.add_node("a", 4, {{"pool", "a"}});
    m.run(900);
    CHECK(m.places() == "a a");
  }
  SUBCASE("time runs out") {
    m.c.now += 28.8 * hour;
    m.run(900);
    CHECK(m.places().size() > 0);
    CHECK(m.spot()["usd"].get<double>() < spent + 2);
  }
}

TEST_CASE("a job that waits when all of its records are done goes on to its end") {
  market m(2, R"({"progress": {"records": 9, "totalRecords": 9}, "spot": {"pool": "none"},
    "speeds": [{"workers": 2, "recordsPerSecond": 1}]})"_json);
  m.run(30);
  CHECK(m.places() == "a a");
}

TEST_CASE("a job without spec.spot forgets its pool, and its workers stay") {
  market m(10);
  m.run(20);
  m.c.change_spec("job", {{"spot", nullptr}});
  m.run(10);
  CHECK(m.spot().empty());
  CHECK(m.places() == "a a");
  for (auto const& path : m.c.paths("-master")) CHECK(k8s::pool_of(m.c.objects.at(path)) == "");
}

TEST_CASE("what is no list of prices is refused with the reason") {
  CHECK(read_prices(R"({"a": 0.5, "on-demand": 3})") == pool_prices{{"a", 0.5}, {"on-demand", 3}});
  for (auto const& [text, why] : {std::pair{"", "is not JSON"},
                                  {"[1]", "is no JSON object"},
                                  {R"({"a": "1"})", "has a: \"1\""},
                                  {R"({"a": -1})", "has a: -1"},
                                  {R"({"a": 1e300})", "has a: 1e+300"},
                                  {R"({"a": 1, "a": 2})", "twice"}}) {
    CAPTURE(text);
    try {
      read_prices(text);
      FAIL("not refused");
    } catch (edl::error const& e) {
      CHECK(std::string(e.what()).find(why) != std::string::npos);
    }
  }
}

}  // namespace pools_test

// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/client.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <latch>
#include <nlohmann/json.hpp>
#include <set>

#include "cluster/kubernetes/refusals.hpp"
#include "cluster/kubernetes/support.hpp"
#include "cluster/kubernetes/transcript.hpp"
#include "kubernetes/schema.hpp"

namespace client_test {

namespace k8s = edl::kubernetes;
using namespace refusals;
using namespace std::chrono_literals;
using test::issued, test::says, test::thrown, test::to;

TEST_CASE("each call sends what it says, and gives what is answered") {
  test::wire_server s(&issued().server, [](test::request const& r, test::wire& w) {
    w.json(200, json{{"method", r.method},
                     {"target", r.target},
                     {"type", r.field("Content-Type")},
                     {"authorization", r.field("Authorization")},
                     {"agent", r.field("User-Agent")},
                     {"body", r.body}}
                    .dump());
  });
  k8s::client c(to(s));
  auto const got = c.get("/api/v1/pods", {{"labelSelector", "a=b,c in (d)"}, {"limit", "5"}});
  CHECK(got["method"] == "GET");
  CHECK(got["target"] == "/api/v1/pods?labelSelector=a%3Db%2Cc%20in%20%28d%29&limit=5");
  CHECK(got["authorization"] == "Bearer secret");
  CHECK(got["agent"] == "edl");
  CHECK(got["body"] == "");
  auto const created = c.create("/api/v1/pods", pod);
  CHECK(created["method"] == "POST");
  CHECK(created["type"] == "application/json");
  CHECK(json::parse(created["body"].get<std::string>()) == pod);
  CHECK(c.patch("/x", pod)["type"] == "application/merge-patch+json");
  CHECK(c.patch("/x", pod, "strategic")["type"] == "application/strategic-merge-patch+json");
  CHECK(c.patch("/x", json::array(), "json")["type"] == "application/json-patch+json");
  CHECK(c.patch("/x", pod, "apply", {{"fieldManager", "edl"}})["type"] == "application/apply-patch+yaml");
  CHECK(c.replace("/x", pod)["method"] == "PUT");
  CHECK(c.remove("/x", {{"gracePeriodSeconds", 0}})["body"] == R"({"gracePeriodSeconds":0})");
  CHECK(c.remove("/x", {})["body"] == "");
  CHECK(s.connections() == 1);

  CHECK_THROWS_WITH_AS(c.patch("/x", pod, "other"),
                       "unknown kind of patch 'other': expected merge, strategic, json or apply", edl::error);
  CHECK_THROWS_AS(c.get("/x y"), edl::error);
  CHECK_THROWS_AS(c.get("/x\r\nHost: other"), edl::error);
  CHECK_THROWS_AS(c.get("/x?watch=1"), edl::error);
  CHECK_THROWS_AS(c.create("/x", json{{"name", "\xff"}}), edl::error);
  CHECK(s.requests() == 9);
}

TEST_CASE("a server's version decides on restart rules; one that tells none is taken for a new one") {
  std::string body;
  test::wire_server s(nullptr, [&](test::request const&, test::wire& w) { w.json(200, body); });
  k8s::client c(to(s));
  body = R"({"major": "1", "minor": "34+"})";
  auto v = k8s::ask_version(c);
  CHECK(v == k8s::server_version{1, 34});
  CHECK_FALSE(k8s::knows_restart_rules(v));
  CHECK(*v >= k8s::oldest_server);
  body = R"({"major": "1", "minor": "35"})";
  CHECK(k8s::knows_restart_rules(k8s::ask_version(c)));
  body = R"({"major": 1})";
  v = k8s::ask_version(c);
  CHECK_FALSE(v);
  CHECK(k8s::knows_restart_rules(v));
  auto const refuses = [](int code, char const* message) {
    return k8s::refuses_restart_rules({code, "", message, message});
  };
  CHECK(refuses(400, "strict decoding error: unknown field \"spec.containers[0].restartPolicyRules\""));
  CHECK(refuses(422, "spec.containers[0].restartPolicy: Forbidden: may not be set for non-init containers"));
  CHECK_FALSE(refuses(403, "restartPolicy"));
  CHECK_FALSE(refuses(422, "spec.containers[0].image: Required value"));
}

TEST_CASE("an address may have a path, and need not be https") {
  test::wire_server s(
      nullptr, [](test::request const& r, test::wire& w) { w.json(200, json{{"t", r.target}}.dump()); });
  auto a = to(s);
  a.server += "/k8s/clusters/one/";
  k8s::client c(a);
  CHECK(c.get("/api/v1/pods")["t"] == "/k8s/clusters/one/api/v1/pods");
}

TEST_CASE("recorded answers of a real server are read") {
  auto const folder = edl::testing::kubernetes::recordings();
  if (!folder) return;
  auto const all = test::read_transcripts(*folder / "transcripts");
  std::atomic<test::transcript const*> now{nullptr};
  test::wire_server s(&issued().server,
                      [&](test::request const&, test::wire& w) { w.send(now.load()->bytes()); });
  k8s::client c(to(s));
  int refusals = 0;
  for (auto const& t : all) {
    if (t.watch) continue;
    CAPTURE(t.name);
    now = &t;
    auto const path = t.target.substr(0, t.target.find('?'));
    auto const call = [&]() -> json {
      if (t.method == "GET") return c.get(path);
      if (t.method == "DELETE") return c.remove(path, {});
      json const object = json::parse(t.sent);
      return t.method == "POST"  ? c.create(path, object)
             : t.method == "PUT" ? c.replace(path, object)
                                 : c.patch(path, object);
    };
    json const expected = json::parse(t.body);
    if (t.code < 300) {
      CHECK(call() == expected);
      continue;
    }
    ++refusals;
    try {
      call();
      FAIL("a refusal was taken for success");
    } catch (k8s::api_error const& e) {
      CHECK(e.code() == t.code);
      CHECK(expected["reason"] == e.reason());
      CHECK(expected["message"] == e.message());
      CHECK(says(e.what(), {t.method.c_str(), path.c_str(), e.message().c_str()}));
    }
  }
  CHECK(refusals >= 10);
  CHECK(s.connections() == 1);
}

TEST_CASE("what a server cannot do now is asked again, and what it refuses is not") {
  std::atomic<int> times{0}, code{503}, bad{2};
  test::wire_server s(&issued().server, [&](test::request const& r, test::wire& w) {
    if (times++ < bad)
      w.json(code, status(code, "Busy", "not now"), code == 429 ? "Retry-After: 1\r\n" : "");
    else
      w.json(200, json{{"method", r.method}}.dump());
  });
  k8s::client c(to(s), {.retry_timeout = 20s});
  auto const again = [&](int with, int how_often) {
    times = 0;
    code = with;
    bad = how_often;
  };
  for (int with : {500, 502, 503, 504}) {
    again(with, 1);
    CHECK(c.get("/x")["method"] == "GET");
    CHECK(times == 2);
  }
  again(503, 2);
  CHECK(c.create("/x", pod)["method"] == "POST");
  CHECK(times == 3);
  again(503, 1);
  CHECK(c.remove("/x", {})["method"] == "DELETE");
  again(503, 1);
  CHECK(c.patch("/x", pod)["method"] == "PATCH");
  CHECK(times == 2);

  // Nobody knows whether a server that failed has done it already.
  again(500, 1);
  CHECK_THROWS_AS(c.patch("/x", json::array(), "json"), k8s::api_error);
  again(500, 1);
  CHECK_THROWS_AS(c.replace("/x", pod), k8s::api_error);
  again(500, 1);
  CHECK_THROWS_AS(c.create("/x", json{{"metadata", {{"generateName", "x"}}}}), k8s::api_error);
  CHECK(times == 1);

  again(429, 1);  // but this one has not
  auto const began = std::chrono::steady_clock::now();
  CHECK(c.replace("/x", pod)["method"] == "PUT");
  CHECK(std::chrono::steady_clock::now() - began >= 1s);
  CHECK(times == 2);

  for (int with : {400, 403, 404, 409, 410, 422, 501}) {
    again(with, 1);
    CHECK_THROWS_AS(c.get("/x"), k8s::api_error);
  }
}

TEST_CASE("the retry timeout ends") {
  test::wire_server s(&issued().server, [&](test::request const&, test::wire& w) {
    w.json(503, status(503, "ServiceUnavailable", "the server is currently unable to handle the request"));
  });
  k8s::client c(to(s), {.retry_timeout = 400ms});
  CHECK(says(thrown<k8s::api_error>([&] { c.get("/api"); }),
             {"GET https://127.0.0.1:", "503 ServiceUnavailable: the server is currently", "times in "}));
  CHECK(s.requests() > 1);
}

TEST_CASE("an answer that breaks off is asked for again where that does no harm") {
  std::atomic<int> times{0};
  test::wire_server s(&issued().server, [&](test::request const& r, test::wire& w) {
    if (++times == 1) {
      w.send("HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{\"half\":");
      return w.cut();
    }
    if (r.method == "POST") return w.json(409, status(409, "AlreadyExists", "pods \"x\" already exists"));
    w.json(200, "{}");
  });
  k8s::client c(to(s));
  CHECK(c.get("/x") == json::object());
  times = 0;
  try {
    c.create("/x", pod);
    FAIL("there was no error");
  } catch (k8s::api_error const& e) {
    CHECK(e.reason() == "AlreadyExists");
    CHECK(times == 2);
  }
  times = 0;
  CHECK(says(thrown<k8s::unreachable>([&] { c.replace("/x", pod); }),
             {"PUT /x: the API server https://", "broke off"}));
  CHECK(times == 1);
}

TEST_CASE("a connection that the server has closed meanwhile is replaced without a word") {
  test::wire_server s(&issued().server, [&](test::request const&, test::wire& w) {
    w.json(200, "{}");
    w.close();
  });
  k8s::client c(to(s), {.retry_timeout = 0ms});
  for (int i = 0; i < 5; ++i) CHECK(c.create("/x", pod) == json::object());
  CHECK(s.connections() == 5);
}

TEST_CASE("many calls at once have a connection each, which serve the next ones") {
  std::latch all(20);
  std::atomic<bool> together{true};
  test::wire_server s(&issued().server, [&](test::request const&, test::wire& w) {
    if (together) all.arrive_and_wait();  // none is answered before all are there
    w.json(200, "{}");
  });
  k8s::client c(to(s));
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) threads.emplace_back([&] { c.create("/x", pod); });
  for (auto& t : threads) t.join();
  CHECK(s.connections() == 20);
  together = false;
  for (int i = 0; i < 50; ++i) c.get("/x");
  CHECK(s.connections() == 20);
}

TEST_CASE("a token that is refused is got anew, once") {
  std::atomic<int> version{1}, renewals{0};
  test::wire_server s(&issued().server, [&](test::request const& r, test::wire& w) {
    if (r.field("Authorization") == "Bearer " + std::to_string(version))
      w.json(200, "{}");
    else
      w.json(401, status(401, "Unauthorized", "Unauthorized"));
  });
  auto a = to(s);
  std::atomic<int> held{1}, best{9};
  a.token = [&](bool refused) {
    if (refused) {
      ++renewals;
      held = best.load();
    }
    return std::to_string(held);
  };
  k8s::client c(a);
  CHECK(c.get("/x") == json::object());
  CHECK(renewals == 0);
  version = 2;
  best = 2;
  CHECK(c.create("/x", pod) == json::object());
  CHECK(renewals == 1);
  version = 3;
  CHECK(says(thrown<k8s::api_error>([&] { c.get("/x"); }),
             {"GET https://", ": 401: Unauthorized; the credentials of a test were rejected"}));
  CHECK(renewals == 2);

  best = 3;
  c.stream("/x", {}, [](std::string_view) { return true; }, 5s, {});
  CHECK(renewals == 3);
}

TEST_CASE("an authority that is replaced is trusted from the next call on") {
  test::authority const next;
  auto old_one = std::make_unique<test::wire_server>(
      &issued().server, [](test::request const&, test::wire& w) { w.json(200, R"({"by":"old"})"); });
  auto const port = old_one->port();
  auto a = to(*old_one);
  std::atomic<bool> replaced{false};
  a.renew = [&](k8s::access& now) {
    auto const& ca = replaced ? next.self.certificate : issued().self.certificate;
    return std::exchange(now.ca, ca) != ca;
  };
  k8s::client c(a, {.retry_timeout = 5s});
  CHECK(c.get("/x")["by"] == "old");
  old_one.reset();
  test::wire_server const new_one(
      &next.server, [](test::request const&, test::wire& w) { w.json(200, R"({"by":"new"})"); }, nullptr,
      port);
  CHECK_THROWS_AS(c.get("/x"), k8s::untrusted);
  replaced = true;
  CHECK(c.get("/x")["by"] == "new");
}

}  // namespace client_test

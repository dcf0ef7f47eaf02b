// SPDX-License-Identifier: Apache-2.0
#include "edl/platform/kubernetes/client.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "platform/kubernetes/wire_server.hpp"

namespace k8s = edl::platform::kubernetes;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

test::authority const& issued() {
  static test::authority const a;
  return a;
}

k8s::access to(test::wire_server const& s) {
  k8s::access a;
  a.server = s.url();
  a.ca = issued().self.certificate;
  a.origin = "a test";
  a.token = [](bool) { return std::string("secret"); };
  return a;
}

}  // namespace

TEST_CASE("each call sends what it says, and gives what is answered") {
  test::wire_server s(&issued().server, [](test::request const& r, test::wire& w) {
    w.json(200, json{{"method", r.method},
                     {"target", r.target},
                     {"type", r.field("Content-Type")},
                     {"authorization", r.field("Authorization")},
                     {"body", r.body}}
                    .dump());
  });
  k8s::client c(to(s));
  auto const got = c.get("/api/v1/pods", {{"labelSelector", "a=b,c in (d)"}, {"limit", "5"}});
  CHECK(got["method"] == "GET");
  CHECK(got["target"] == "/api/v1/pods?labelSelector=a%3Db%2Cc%20in%20%28d%29&limit=5");
  CHECK(got["authorization"] == "Bearer secret");
  CHECK(got["body"] == "");
  json const object{{"metadata", {{"name", "x"}}}};
  auto const created = c.create("/api/v1/pods", object);
  CHECK(created["method"] == "POST");
  CHECK(created["type"] == "application/json");
  CHECK(json::parse(created["body"].get<std::string>()) == object);
  CHECK(c.patch("/x", object)["type"] == "application/merge-patch+json");
  CHECK(c.patch("/x", object, "strategic")["type"] == "application/strategic-merge-patch+json");
  CHECK(c.patch("/x", json::array(), "json")["type"] == "application/json-patch+json");
  CHECK(c.patch("/x", object, "apply", {{"fieldManager", "edl"}})["type"] == "application/apply-patch+yaml");
  CHECK(c.replace("/x", object)["method"] == "PUT");
  CHECK(c.remove("/x", {{"gracePeriodSeconds", 0}})["body"] == R"({"gracePeriodSeconds":0})");
  CHECK(c.remove("/x", {})["body"] == "");
  CHECK(s.connections() == 1);
}

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "kubernetes/test/support.hpp"
#include "kubernetes/test/transcript.hpp"

namespace edl::testing::kubernetes {
namespace {

using std::chrono::milliseconds;

std::string const maps = "/api/v1/namespaces/default/configmaps";

json map(std::string const& name, json const& labels = json::object()) {
  return {{"metadata", {{"name", name}, {"labels", labels}}}};
}

std::string since_now(cluster& c, std::string const& more = "") {
  return maps + "?watch=1&resourceVersion=" + c.get(maps)["metadata"]["resourceVersion"].get<std::string>() +
         more;
}

std::vector<std::string> told(watching const& w) {
  std::vector<std::string> out;
  for (json const& e : w.events())
    out.push_back(e["type"].get<std::string>() + " " + e["object"]["metadata"].value("name", ""));
  return out;
}

}  // namespace

TEST_CASE("sixty watches see a change") {
  cluster c;
  std::vector<std::unique_ptr<watching>> all;
  std::string const path = since_now(c);
  for (int i = 0; i < 60; ++i) all.push_back(std::make_unique<watching>(c, path));
  REQUIRE(c.wait([&] { return c.watches() == 60; }));
  c.post(maps, map("a"));
  for (auto const& w : all) CHECK(c.wait([&] { return told(*w) == std::vector<std::string>{"ADDED a"}; }));
}

TEST_CASE("a watch begins with what is there, or behind a version, and tells what its selector sees") {
  cluster c;
  c.post(maps, map("old", {{"job", "j"}}));
  watching const begun(c, since_now(c, "&labelSelector=job%3Dj")),
      fresh(c, maps + "?watch=1&labelSelector=job%3Dj");
  REQUIRE(c.wait([&] { return c.watches() == 2; }));
  c.post(maps, map("other"));
  c.call("PATCH", maps + "/other", {{"metadata", {{"labels", {{"job", "j"}}}}}});
  c.call("PATCH", maps + "/other", {{"metadata", {{"labels", {{"job", nullptr}}}}}});
  c.remove(maps + "/old");
  std::vector<std::string> const changes{"ADDED other", "DELETED other", "DELETED old"};
  CHECK(c.wait([&] { return told(begun) == changes; }));
  CHECK(c.wait([&] { return told(fresh).size() == 4 && told(fresh).front() == "ADDED old"; }));
}

TEST_CASE("a watch ends after its timeout, with a bookmark where one is allowed") {
  cluster c;
  watching const w(c, since_now(c, "&timeoutSeconds=1&allowWatchBookmarks=true"));
  REQUIRE(c.wait([&] { return w.ended(); }));
  CHECK(told(w) == std::vector<std::string>{"BOOKMARK "});
}

TEST_CASE("watches expire: the open ones, and those from before") {
  cluster c;
  std::string const path = since_now(c);
  watching const open(c, path);
  REQUIRE(c.wait([&] { return c.watches() == 1; }));
  c.expire_watches();
  REQUIRE(c.wait([&] { return open.ended(); }));
  watching const late(c, path);
  REQUIRE(c.wait([&] { return late.ended(); }));
  for (auto const* w : {&open, &late}) {
    REQUIRE(w->events().size() == 1);
    CHECK(w->events()[0]["type"] == "ERROR");
    CHECK(w->events()[0]["object"]["code"] == 410);
  }
  watching const anew(c, since_now(c));
  REQUIRE(c.wait([&] { return c.watches() == 1; }));
  c.post(maps, map("a"));
  CHECK(c.wait([&] { return told(anew) == std::vector<std::string>{"ADDED a"}; }));
}

TEST_CASE("more changes than the history holds expire a watch that is behind") {
  cluster c({.history = 10});
  std::string const path = since_now(c);
  for (int i = 0; i < 20; ++i) c.post(maps, map("m" + std::to_string(i)));
  watching const w(c, path);
  REQUIRE(c.wait([&] { return w.ended(); }));
  CHECK(w.events().at(0)["object"]["reason"] == "Expired");
}

TEST_CASE("a closed server cuts its connections and comes back on the same port") {
  cluster c;
  auto const port = c.port();
  caller client(c);
  httplib::Headers const token{{"Authorization", "Bearer " + c.token()}};
  REQUIRE(client.Get(maps, token)->status == 200);
  watching const w(c, since_now(c));
  REQUIRE(c.wait([&] { return c.watches() == 1; }));
  c.close();
  CHECK(c.wait([&] { return w.ended(); }));
  CHECK(!client.Get(maps, token));
  c.open();
  CHECK(c.port() == port);
  CHECK(client.Get(maps, token)->status == 200);
}

TEST_CASE("a hanging server answers when it no longer does, and failures are as many as were ordered") {
  cluster c;
  caller client(c);
  client.set_read_timeout(0, 200'000);
  httplib::Headers const token{{"Authorization", "Bearer " + c.token()}};
  c.hang(true);
  CHECK(!client.Get(maps, token));
  watching const w(c, since_now(c));
  c.hang(false);
  REQUIRE(c.wait([&] { return c.watches() == 1; }));
  c.hang(true);
  c.post(maps, map("a"));
  c.hang(false);
  CHECK(c.wait([&] { return told(w) == std::vector<std::string>{"ADDED a"}; }));

  client.set_read_timeout(20);
  c.fail_next(2, 429, 7);
  for (int i = 0; i < 2; ++i) {
    auto const refused = client.Get(maps, token);
    CHECK(refused->status == 429);
    CHECK(refused->get_header_value("Retry-After") == "7");
  }
  CHECK(client.Get(maps, token)->status == 200);
  c.rotate_token("another");
  CHECK(client.Get(maps, token)->status == 401);
  CHECK(client.Get(maps, {{"Authorization", "Bearer another"}})->status == 200);
}

TEST_CASE("a watch whose client has gone is given up") {
  cluster c;
  {
    watching const w(c, since_now(c));
    REQUIRE(c.wait([&] { return c.watches() == 1; }));
  }
  CHECK(c.wait([&] { return c.watches() == 0; }));
}

TEST_CASE("a client's certificate says who it is") {
  cluster c;
  httplib::SSLClient client("127.0.0.1", c.port(), c.directory() + "/client.crt",
                            c.directory() + "/client.key");
  client.set_ca_cert_path(c.ca_file().c_str());
  client.enable_server_certificate_verification(true);
  CHECK(client.Get(maps)->status == 200);
  caller anonymous(c);
  CHECK(anonymous.Get(maps)->status == 403);
}

TEST_CASE("a log is followed until the container has ended") {
  cluster c;
  c.post(pods, pod("w", "echo one; sleep 0.2; echo two; sleep 0.1; echo three"));
  REQUIRE(c.wait([&] { return phase(c, "w") == "Running"; }));
  caller client(c);
  httplib::Headers const token{{"Authorization", "Bearer " + c.token()}};
  CHECK(client.Get(pods + "/w/log?follow=true", token)->body == "one\ntwo\nthree\n");
  CHECK(client.Get(pods + "/w/log?tailLines=2", token)->body == "two\nthree\n");
  CHECK(client.Get(pods + "/w/log?tailLines=0", token)->body.empty());
  CHECK(client.Get(pods + "/w/log?tailLines=9", token)->body == "one\ntwo\nthree\n");
  std::string const timed = client.Get(pods + "/w/log?tailLines=2&timestamps=true", token)->body;
  CHECK(timed.find(".000000001Z two\n") != timed.npos);
  CHECK(timed.find(".000000002Z three\n") != timed.npos);
  CHECK(client.Get(pods + "/v/log", token)->status == 404);
}

}  // namespace edl::testing::kubernetes

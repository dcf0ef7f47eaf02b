// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/watcher.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <random>

#include "cluster/kubernetes/support.hpp"
#include "cluster/kubernetes/transcript.hpp"
#include "eventually.hpp"
#include "kubernetes/schema.hpp"
#include "text.hpp"

namespace watcher_test {

namespace k8s = edl::kubernetes;
using namespace std::chrono_literals;
using nlohmann::json;
using test::issued, test::to;

namespace {

/// What a watcher has told, in words: "listed a b", "ADDED c".
struct seen {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> all;

  void add(std::string what) {
    std::lock_guard const lock(mutex);
    all.push_back(std::move(what));
    changed.notify_all();
  }
  bool wait(std::size_t n) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 20s, [&] { return all.size() >= n; });
  }
  k8s::watcher::callbacks sink() {
    return {[this](json const& items, std::string const&) {
              std::string text = "listed";
              for (auto const& i : items) text += " " + i["metadata"]["name"].get<std::string>();
              add(text);
            },
            [this](std::string const& type, json const& object) {
              add(type + " " + object["metadata"]["name"].get<std::string>());
            }};
  }
};

/// A log that can be read.
struct pipe_log {
  int ends[2];
  pipe_log() { REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0); }
  ~pipe_log() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  edl::logger log() const { return edl::logger(edl::severity::info, {}, ends[1]); }
  std::string text() const {
    std::string all;
    char buffer[4096];
    for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) all.append(buffer, std::size_t(n));
    return all;
  }
};

json pod(std::string const& name, int version) {
  return {{"kind", "Pod"}, {"metadata", {{"name", name}, {"resourceVersion", std::to_string(version)}}}};
}
std::string event(std::string const& type, json const& object) {
  return json{{"type", type}, {"object", object}}.dump() + "\n";
}
std::string list(int version, std::vector<json> const& items, std::string const& more = "") {
  json metadata{{"resourceVersion", std::to_string(version)}};
  if (!more.empty()) metadata["continue"] = more;
  return json{{"kind", "PodList"}, {"metadata", metadata}, {"items", items}}.dump();
}
json status(int code, std::string const& reason) {
  return {{"kind", "Status"}, {"status", "Failure"}, {"reason", reason}, {"message", "no"}, {"code", code}};
}

/// The value of a parameter of a request; "" where it is not there.
std::string parameter(test::request const& r, std::string const& name) {
  auto const query = "&" + r.target.substr(std::min(r.target.find('?') + 1, r.target.size()));
  auto const at = query.find("&" + name + "=");
  if (at == query.npos) return {};
  auto const begin = at + name.size() + 2;
  return query.substr(begin, query.find('&', begin) - begin);
}

/// A server whose lists and watches are answered by functions; each gets the number of its kind, from 1.
struct script {
  std::function<void(test::request const&, test::wire&, int)> on_list, on_watch;
  std::mutex mutex;
  std::vector<std::string> requests;  ///< "list", "watch 5"
  int lists = 0, watches = 0;

  void operator()(test::request const& r, test::wire& w) {
    bool const watch = parameter(r, "watch") == "1";
    int number;
    {
      std::lock_guard const lock(mutex);
      requests.push_back(watch ? "watch " + parameter(r, "resourceVersion") : "list");
      number = watch ? ++watches : ++lists;
    }
    (watch ? on_watch : on_list)(r, w, number);
  }
};

k8s::watcher::options const quick{.first_pause = 2ms, .longest_pause = 20ms};

/// Serves a script to a watcher until it has told `n` things, and returns them.
std::vector<std::string> told(script& s, std::size_t n, k8s::watcher::options const& o = quick,
                              std::string* log = nullptr) {
  test::wire_server server(&issued().server, std::ref(s));
  k8s::client c(to(server));
  seen v;
  pipe_log p;
  {
    k8s::watcher const w(c, "/api/v1/namespaces/default/pods", "job=x,role in (a)", v.sink(), p.log(), o);
    CHECK(v.wait(n));
  }
  if (log) *log = p.text();
  v.all.resize(std::min(n, v.all.size()));
  return v.all;
}

using words = std::vector<std::string>;

}  // namespace

TEST_CASE("objects are listed, page by page, and then followed") {
  script s;
  std::string first, second, watch;
  s.on_list = [&](auto& r, auto& w, int n) {
    (n == 1 ? first : second) = r.target;
    if (n == 1)
      w.json(200, list(7, {pod("a", 1), pod("b", 2)}, "next/="));
    else
      w.json(200, list(7, {pod("c", 3)}));
  };
  s.on_watch = [&](auto& r, auto& w, int) {
    watch = r.target;
    w.begin();
    w.piece(event("ADDED", pod("d", 8)));
    w.piece(event("MODIFIED", pod("d", 9)) + event("BOOKMARK", pod("", 10)) + event("DELETED", pod("a", 11)));
    w.stall();
  };
  CHECK(told(s, 4) == words{"listed a b c", "ADDED d", "MODIFIED d", "DELETED a"});
  CHECK(first == "/api/v1/namespaces/default/pods?limit=500&labelSelector=job%3Dx%2Crole%20in%20%28a%29");
  CHECK(second == first + "&continue=next%2F%3D");
  CHECK(watch.find("watch=1&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=") != watch.npos);
  CHECK(watch.find("&labelSelector=job%3Dx") != watch.npos);
}

TEST_CASE("recorded watches are told event by event, however their bytes arrive") {
  auto const folder = edl::testing::kubernetes::recordings();
  if (!folder) return;
  for (char const* name :
       {"02-pods-watch-life-of-six-pods.http", "37-pods-watch-preemption-and-kubectl-delete.http"}) {
    CAPTURE(name);
    auto const t = test::read_transcript(*folder / "transcripts" / name);
    auto const lines = t.lines();
    REQUIRE(lines.size() > 10);
    std::vector<json> events;
    std::string last;
    for (auto const& l : lines) {
      auto const e = json::parse(l);
      last = e["object"]["metadata"]["resourceVersion"];
      if (e["type"] != "BOOKMARK") events.push_back(e);
    }
    script s;
    s.on_list = [&](auto&, auto& w, int) { w.json(200, list(1, {})); };
    s.on_watch = [&](auto&, auto& w, int n) {
      if (n > 1) return w.stall();
      auto const bytes = t.bytes();
      std::minstd_rand random(1);
      for (std::size_t at = 0; at < bytes.size();) {
        auto const size = std::uniform_int_distribution<std::size_t>(1, 5000)(random);
        w.send(std::string_view(bytes).substr(at, size));
        at += size;
      }
    };
    test::wire_server server(&issued().server, std::ref(s));
    k8s::client c(to(server));
    std::vector<json> got;
    seen v;
    k8s::watcher const w(c, "/pods", "",
                         {[](json const&, std::string const&) {},
                          [&](std::string const& type, json const& object) {
                            got.push_back({{"type", type}, {"object", object}});
                            v.add(type);
                          }},
                         edl::logger(edl::severity::critical), quick);
    REQUIRE(v.wait(events.size()));
    // It goes on after the last of them, a bookmark or not.
    for (int i = 0; i < 2000; ++i) {
      std::lock_guard const lock(s.mutex);
      if (s.watches == 2) break;
      std::this_thread::sleep_for(1ms);
    }
    std::lock_guard const lock(s.mutex);
    CHECK(got == events);
    CHECK(s.requests == words{"list", "watch 1", "watch " + last});
  }
}

TEST_CASE("a watch that ends, or is cut in the middle of a line, goes on where it was") {
  script s;
  s.on_list = [](auto&, auto& w, int) { w.json(200, list(1, {})); };
  s.on_watch = [](auto& r, auto& w, int n) {
    auto const version = parameter(r, "resourceVersion");
    w.begin();
    if (n == 1) {  // as a server does after timeoutSeconds
      w.piece(event("ADDED", pod("a", 2)));
      return w.last_piece();
    }
    if (n == 2) {
      w.piece(event("ADDED", pod("b", 3)) + event("ADDED", pod("c", 4)).substr(0, 20));
      return w.cut();
    }
    if (n == 3) {  // only a bookmark says how far it was
      w.piece(event("BOOKMARK", pod("", 40)));
      w.piece(event("ADDED", pod("c", 50)).substr(0, 20));
      return w.last_piece();
    }
    w.piece(event("ADDED", pod("after-" + version, 60)));
    w.stall();
  };
  CHECK(told(s, 4) == words{"listed", "ADDED a", "ADDED b", "ADDED after-40"});
  CHECK(s.requests == words{"list", "watch 1", "watch 2", "watch 3", "watch 40"});
}

TEST_CASE("a place that has expired is listed anew") {
  auto const folder = edl::testing::kubernetes::recordings();
  if (!folder) return;
  auto const inside = test::read_transcript(*folder / "transcripts/17-pod-watch-expired.http").bytes();
  auto const outside = test::read_transcript(*folder / "transcripts/36-pods-list-expired.http").bytes();
  for (auto const& answer : {inside, outside}) {
    script s;
    s.on_list = [](auto&, auto& w, int n) { w.json(200, list(n * 10, {pod("p" + std::to_string(n), n)})); };
    s.on_watch = [&](auto&, auto& w, int n) {
      if (n == 1) return w.send(answer);
      w.begin();
      w.piece(event("ADDED", pod("a", 21)));
      w.stall();
    };
    std::string log;
    // No pause is made, however long pauses are.
    CHECK(told(s, 3, {.first_pause = 1h, .longest_pause = 1h}, &log) ==
          words{"listed p1", "listed p2", "ADDED a"});
    CHECK(s.requests == words{"list", "watch 10", "list", "watch 20"});
    CHECK(log == "");
  }
}

TEST_CASE("a server for which every place has expired is not asked without pause") {
  script s;
  s.on_list = [](auto&, auto& w, int n) { w.json(200, list(n, {})); };
  s.on_watch = [](auto&, auto& w, int) {
    w.begin();
    w.piece(event("ERROR", status(410, "Expired")));
    w.last_piece();
  };
  test::wire_server server(&issued().server, std::ref(s));
  k8s::client c(to(server));
  seen v, other;
  {
    edl::logger const silent(edl::severity::critical);
    k8s::watcher const w(c, "/pods", "", v.sink(), silent, {.first_pause = 1h, .longest_pause = 1h});
    REQUIRE(v.wait(2));
    k8s::watcher const impatient(c, "/pods", "", other.sink(), silent, quick);
    REQUIRE(other.wait(6));
  }
  CHECK(v.all.size() == 2);
}

TEST_CASE("what fails is tried again: refusals, a silent server, damaged events, events too long") {
  script s;
  std::string log;
  auto const then = [](test::wire& w) {
    w.begin();
    w.piece(event("ADDED", pod("a", 99)));
    w.stall();
  };
  s.on_list = [](auto&, auto& w, int n) { w.json(200, list(n * 10, {})); };
  SUBCASE("429 and 5xx of a list") {
    s.on_list = [](auto&, auto& w, int n) {
      if (n == 1) return w.json(429, status(429, "TooManyRequests").dump(), "Retry-After: 1\r\n");
      if (n == 2) return w.json(503, status(503, "ServiceUnavailable").dump());
      if (n == 3) return w.json(500, "oops");
      w.json(200, list(40, {}));
    };
    s.on_watch = [&](auto&, auto& w, int) { then(w); };
    auto const began = std::chrono::steady_clock::now();
    CHECK(told(s, 2, quick, &log) == words{"listed", "ADDED a"});
    CHECK(std::chrono::steady_clock::now() - began >= 1s);
    CHECK(count(log, "[WARNING]") == 3);
  }
  SUBCASE("5xx of a watch") {
    s.on_watch = [&](auto&, auto& w, int n) {
      if (n < 4) return w.json(504, status(504, "Timeout").dump());
      then(w);
    };
    CHECK(told(s, 2, quick, &log) == words{"listed", "ADDED a"});
    CHECK(s.requests == words{"list", "watch 10", "watch 10", "watch 10", "watch 10"});
    CHECK(count(log, "trying again") == 1);  // one line for many tries
  }
  SUBCASE("another ERROR than expiry") {
    s.on_watch = [&](auto&, auto& w, int n) {
      if (n > 1) return then(w);
      w.begin();
      w.piece(event("ERROR", status(500, "InternalError")));
      w.last_piece();
    };
    CHECK(told(s, 3, quick, &log) == words{"listed", "listed", "ADDED a"});
    CHECK(count(log, "500 InternalError: no") == 1);
  }
  SUBCASE("silence") {
    s.on_watch = [&](auto&, auto& w, int n) {
      if (n > 1) return then(w);
      w.begin();
      w.piece(event("ADDED", pod("first", 11)));
      w.stall();
    };
    auto o = quick;
    o.idle = 300ms;
    CHECK(told(s, 3, o, &log) == words{"listed", "ADDED first", "ADDED a"});
    CHECK(s.requests[2] == "watch 11");
    CHECK(count(log, "has not answered for 0.3 s") == 1);
  }
  SUBCASE("no event") {
    for (std::string const bad :
         {"nonsense\n", "{}\n", "[]\n", "{\"type\":1,\"object\":{}}\n", "{\"type\":\"ADDED\"}\n",
          "{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}\n"}) {
      CAPTURE(bad);
      script t;
      t.on_list = s.on_list;
      t.on_watch = [&](auto&, auto& w, int n) {
        if (n > 1) return then(w);
        w.begin();
        w.piece(bad);
        w.stall();
      };
      CHECK(told(t, 3, quick, &log) == words{"listed", "listed", "ADDED a"});
      CHECK(count(log, "[ERROR]") == 1);
    }
  }
  SUBCASE("no list") {
    s.on_list = [](auto&, auto& w, int n) {
      char const* const bad[] = {"nonsense", "[]", "{}", R"({"items":[]})", R"({"items":5,"metadata":{}})"};
      w.json(200, n <= 5 ? bad[n - 1] : list(60, {}));
    };
    s.on_watch = [&](auto&, auto& w, int) { then(w); };
    CHECK(told(s, 2, quick, &log) == words{"listed", "ADDED a"});
    CHECK(s.lists == 6);
  }
  SUBCASE("an event of 17 MiB") {
    s.on_watch = [&](auto&, auto& w, int n) {
      if (n > 1) return then(w);
      w.begin();
      std::string const piece(1 << 20, 'x');
      for (int i = 0; i < 20 && w.alive(); ++i) w.piece(piece);
      w.close();
    };
    CHECK(told(s, 3, quick, &log) == words{"listed", "listed", "ADDED a"});
    CHECK(count(log, "longer than 16 MiB") == 1);
  }
}

TEST_CASE("an event of many megabytes is told") {
  script s;
  auto big = pod("big", 2);
  big["metadata"]["annotations"]["x"] = std::string(8 << 20, 'x');
  s.on_list = [](auto&, auto& w, int) { w.json(200, list(1, {})); };
  s.on_watch = [&](auto&, auto& w, int) {
    w.begin();
    w.piece(event("ADDED", big));
    w.stall();
  };
  CHECK(told(s, 2) == words{"listed", "ADDED big"});
}

TEST_CASE("refusals that last are logged once, and what follows them, too") {
  script s;
  s.on_list = [](auto&, auto& w, int n) {
    if (n <= 5)
      w.json(403, status(403, "Forbidden").dump());
    else
      w.json(200, list(1, {}));
  };
  s.on_watch = [](auto&, auto& w, int) {
    w.begin();
    w.piece(event("ADDED", pod("a", 2)));
    w.last_piece();
  };
  std::string log;
  told(s, 3, quick, &log);
  CHECK(count(log, "[ERROR]") == 1);
  CHECK(count(log, "403 Forbidden: no") == 1);
  CHECK(count(log, "going on") == 1);
}

TEST_CASE("a server that is not there is waited for") {
  auto const answer = [](test::request const& r, test::wire& w) {
    if (parameter(r, "watch").empty()) return w.json(200, list(5, {}));
    w.begin();
    w.piece(event("ADDED", pod("after-" + parameter(r, "resourceVersion"), 6)));
    w.stall();
  };
  auto first = std::make_unique<test::wire_server>(&issued().server, answer);
  auto const port = first->port();
  k8s::client c(to(*first));
  seen v;
  pipe_log log;
  k8s::watcher const w(c, "/pods", "", v.sink(), log.log(), quick);
  REQUIRE(v.wait(2));
  first.reset();
  REQUIRE(eventually([&] { return !log.text().empty(); }));  // it has asked a server that is not there
  test::wire_server const second(&issued().server, answer, nullptr, port);
  REQUIRE(v.wait(3));
  CHECK(v.all == words{"listed", "ADDED after-5", "ADDED after-6"});
}

TEST_CASE("what a callback throws is logged, and the objects are listed anew") {
  script s;
  s.on_list = [](auto&, auto& w, int n) { w.json(200, list(n * 10, {})); };
  s.on_watch = [](auto&, auto& w, int n) {
    w.begin();
    w.piece(event("ADDED", pod("a", n * 10 + 1)));
    w.stall();
  };
  test::wire_server server(&issued().server, std::ref(s));
  k8s::client c(to(server));
  seen v;
  pipe_log p;
  {
    std::atomic<int> times{0};
    k8s::watcher const w(c, "/pods", "",
                         {v.sink().listed,
                          [&](std::string const& type, json const&) {
                            if (++times == 1) throw std::runtime_error("too much");
                            v.add(type);
                          }},
                         p.log(), quick);
    REQUIRE(v.wait(3));
  }
  CHECK(v.all == words{"listed", "listed", "ADDED"});
  CHECK(count(p.text(), "too much") == 1);
}

// Each of these would wait for an hour if it did not end when it is told to.
TEST_CASE("a watcher ends wherever it is") {
  std::atomic<bool> there{false};
  auto const stall = [&](test::wire& w) {
    there = true;
    w.stall();
  };
  script s;
  s.on_list = [](auto&, auto& w, int) { w.json(200, list(1, {})); };
  s.on_watch = [&](auto&, auto& w, int) { stall(w); };
  SUBCASE("while it waits for the answer to a watch") {}
  SUBCASE("in the middle of an event") {
    s.on_watch = [&](auto&, auto& w, int) {
      w.begin();
      w.piece(R"({"type":)");
      stall(w);
    };
  }
  SUBCASE("while events come without an end") {
    s.on_watch = [&](auto&, auto& w, int) {
      w.begin();
      there = true;
      for (int i = 2; w.alive(); ++i) w.piece(event("MODIFIED", pod("a", i)));
      w.close();
    };
  }
  SUBCASE("while it waits for a list") {
    s.on_list = [&](auto&, auto& w, int) { stall(w); };
  }
  SUBCASE("between two tries") {
    s.on_list = [&](auto&, auto& w, int) {
      w.json(500, "{}");
      there = true;
    };
  }
  test::wire_server server(&issued().server, std::ref(s));
  k8s::client c(to(server), {.timeout = 1h, .retry_timeout = 1h});
  seen v;
  k8s::watcher const w(c, "/pods", "", v.sink(), edl::logger(edl::severity::critical),
                       {.idle = 1h, .first_pause = 1h, .longest_pause = 1h, .page = 1h});
  while (!there) std::this_thread::sleep_for(1ms);
}

}  // namespace watcher_test

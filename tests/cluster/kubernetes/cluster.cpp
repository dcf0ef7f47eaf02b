// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/cluster.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/platform/quiet_observer.hpp"
#include "cluster/kubernetes/support.hpp"

namespace cluster_test {

namespace k8s = edl::kubernetes;
using namespace std::chrono_literals;
using nlohmann::json;
using test::to;

namespace {

/// Something that a test waits for.
class event {
 public:
  void set() {
    std::lock_guard const lock(mutex_);
    is_ = true;
    changed_.notify_all();
  }
  bool wait(std::chrono::seconds limit = 60s) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [this] { return is_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_ = false;
};

json master_pod(int version, json const& annotations) {
  return {{"kind", "Pod"},
          {"metadata",
           {{"name", "elasticdl-j-master"},
            {"uid", "m"},
            {"resourceVersion", std::to_string(version)},
            {"labels", {{"elasticdl-replica-type", "master"}, {"elasticdl-replica-index", "0"}}},
            {"annotations", annotations}}}};
}

json worker_pod(int id) {
  return {
      {"kind", "Pod"},
      {"metadata",
       {{"name", fmt::format("elasticdl-j-worker-{}", id)},
        {"uid", fmt::format("w{}", id)},
        {"ownerReferences", {{{"uid", "m"}}}},
        {"labels", {{"elasticdl-replica-type", "worker"}, {"elasticdl-replica-index", std::to_string(id)}}}}},
      {"status", {{"phase", "Running"}}}};
}

edl::net::node_options node_options() {
  return {.job = "j",
          .secret = edl::net::token("a secret of some length"),
          .log = edl::logger(edl::severity::critical)};
}

}  // namespace

TEST_CASE("a size request for another size is answered though more notes wait than are kept") {
  json const requested = master_pod(2, {{"elasticdl/num-workers", "3"}});
  event notes_wait, asked, answer_may_go, answered;
  test::wire_server server(nullptr, [&](test::request const& r, test::wire& w) {
    if (r.method == "PATCH") {
      answer_may_go.wait();
      w.json(200, requested.dump());
      if (r.body.find("elasticdl/scaled") != r.body.npos) answered.set();
    } else if (r.method == "POST") {
      w.json(201, r.body);
    } else if (r.target.find("/elasticdl-j-master") != r.target.npos) {
      w.json(200, requested.dump());
    } else if (r.target.find("watch=1") == r.target.npos) {
      w.json(200, json{{"kind", "PodList"},
                       {"metadata", {{"resourceVersion", "1"}}},
                       {"items", {master_pod(1, json::object())}}}
                      .dump());
    } else {
      w.begin();
      notes_wait.wait();
      w.piece(json{{"type", "MODIFIED"}, {"object", requested}}.dump() + "\n");
      w.stall();
    }
  });
  edl::net::node node(node_options());
  struct asked_for_size : quiet_observer {
    asked_for_size(edl::net::node& on, event& e) : node(on), asked(e) {}
    edl::net::node& node;
    event& asked;
    std::string scale(edl::platform::size_request const&) override {
      // After this call the answer has been noted, or is lost.
      node.post([this] { asked.set(); });
      return {};
    }
  } hears(node, asked);
  {
    k8s::cluster it(node, to(server), {.name = "j", .num_workers = 1}, {"elasticdl-j-master", "m"}, hears,
                    edl::logger(edl::severity::critical));
    for (int i = 0; i < 1'010; ++i) it.show("Running", fmt::format("line {}", i));
    notes_wait.set();
    CHECK(asked.wait());
    answer_may_go.set();
    CHECK(answered.wait());
    node.stop();
  }
}

TEST_CASE("a size request that is cut within a character when it is quoted is answered all the same") {
  json const requested =
      master_pod(2, {{"elasticdl/num-workers", "3"}, {"elasticdl/leave", std::string(49, 'x') + "ü"}});
  event answered;
  test::wire_server server(nullptr, [&](test::request const& r, test::wire& w) {
    if (r.method == "PATCH") {
      w.json(200, requested.dump());
      if (r.body.find("refused: leave=xxx") != r.body.npos) answered.set();
    } else if (r.method == "POST") {
      w.json(201, r.body);
    } else if (r.target.find("/elasticdl-j-master") != r.target.npos) {
      w.json(200, requested.dump());
    } else if (r.target.find("watch=1") == r.target.npos) {
      w.json(
          200,
          json{{"kind", "PodList"}, {"metadata", {{"resourceVersion", "1"}}}, {"items", {requested}}}.dump());
    } else {
      w.begin();
      w.stall();
    }
  });
  edl::net::node node(node_options());
  quiet_observer hears;
  {
    k8s::cluster it(node, to(server), {.name = "j", .num_workers = 1}, {"elasticdl-j-master", "m"}, hears,
                    edl::logger(edl::severity::critical));
    CHECK(answered.wait());
    node.stop();
  }
}

TEST_CASE("who was allowed to follow its pods goes on while that is refused, and ends when it lasts") {
  enum { allowed, refused, again } stage = allowed;
  bool resumed = false;
  SUBCASE("this master was allowed") {}
  SUBCASE("the master before this one was") { resumed = true; }
  std::mutex mutex;
  std::condition_variable changed;
  int refusals = 0, watches = 0;
  auto const reach = [&](int const& counter, int n) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 60s, [&] { return counter >= n; });
  };
  auto const set = [&](auto to) {
    std::lock_guard const lock(mutex);
    stage = to;
    changed.notify_all();
  };
  if (resumed) stage = refused;
  test::wire_server server(nullptr, [&](test::request const& r, test::wire& w) {
    if (r.method != "GET") return w.json(200, "{}");
    std::unique_lock lock(mutex);
    changed.notify_all();
    if (stage == refused) {
      ++refusals;
      return w.json(403, json{{"kind", "Status"}, {"reason", "Forbidden"}, {"message", "no"}}.dump());
    }
    if (r.target.find("watch=1") == r.target.npos)
      return w.json(200, json{{"kind", "PodList"},
                              {"metadata", {{"resourceVersion", "1"}}},
                              {"items", {master_pod(1, json::object())}}}
                             .dump());
    ++watches;
    w.begin();
    w.piece(json{{"type", "MODIFIED"}, {"object", master_pod(2, json::object())}}.dump() + "\n");
    auto const now = stage;
    changed.wait_for(lock, 60s, [&] { return stage != now; });
    w.close();
  });
  edl::net::node node(node_options());
  struct : quiet_observer {
    std::atomic<int> told{0};
    event gone;
    std::string why;
    void failed(std::string const& text) override {
      if (++told == 1) why = text;
      gone.set();
    }
  } hears;
  {
    auto const follow = [&](std::chrono::milliseconds outage) {
      return std::make_unique<k8s::cluster>(
          node, to(server), k8s::job_spec{.name = "j", .num_workers = 1},
          k8s::owner{"elasticdl-j-master", "m"}, hears, edl::logger(edl::severity::critical),
          k8s::retry_limits{.allowed_before = resumed, .right = 0ms, .outage = outage, .pause = 100ms});
    };
    auto it = follow(1h);
    if (!resumed) {
      CHECK(reach(watches, 1));
      set(refused);
    }
    CHECK(reach(refusals, 1));
    CHECK(hears.told == 0);
    set(again);
    CHECK(reach(watches, resumed ? 1 : 2));
    CHECK(hears.told == 0);
    it.reset();
    it = follow(300ms);
    if (!resumed) CHECK(reach(watches, 3));
    set(refused);
    CHECK(hears.gone.wait());
    CHECK(hears.why.find("has no permission to manage its pods: refused for ") != hears.why.npos);
    CHECK(hears.why.find("edl rbac --apply") != hears.why.npos);
    set(allowed);
    node.stop();
  }
}

TEST_CASE("a worker that says within the grace that it leaves by itself is not deleted") {
  std::mutex mutex;
  std::vector<std::string> deleted;
  test::wire_server server(nullptr, [&](test::request const& r, test::wire& w) {
    if (r.method == "DELETE") {
      std::lock_guard const lock(mutex);
      deleted.push_back(r.target.substr(r.target.rfind('/') + 1, 20));
    }
    if (r.method != "GET") return w.json(200, "{}");
    if (r.target.find("watch=1") == r.target.npos)
      return w.json(200, json{{"kind", "PodList"},
                              {"metadata", {{"resourceVersion", "1"}}},
                              {"items", {master_pod(1, json::object()), worker_pod(0), worker_pod(1)}}}
                             .dump());
    w.begin();
    w.stall();
  });
  edl::net::node node(node_options());
  struct : quiet_observer {
    event listed;
    std::chrono::steady_clock::time_point asked;
    void found(edl::platform::findings const&) override { listed.set(); }
    std::vector<edl::process_id> left() override {
      asked = std::chrono::steady_clock::now();
      return {{edl::role::worker, 0}};
    }
  } hears;
  k8s::cluster it(node, to(server), {.name = "j", .num_workers = 2}, {"elasticdl-j-master", "m"}, hears,
                  edl::logger(edl::severity::critical));
  REQUIRE(hears.listed.wait());
  auto const began = std::chrono::steady_clock::now();
  auto const grace = 200ms;
  it.stop_all(grace);
  CHECK(hears.asked - began >= grace);
  std::lock_guard const lock(mutex);
  CHECK(deleted == std::vector<std::string>{"elasticdl-j-worker-1"});
  node.stop();
}

}  // namespace cluster_test

// SPDX-License-Identifier: Apache-2.0
// The controller as a cluster runs it: replicas that share a lease, and what they tell of themselves.
#include <httplib.h>

#include <csignal>
#include <memory>

#include "cluster_job.hpp"
#include "kubernetes/yaml.hpp"

namespace controllers_test {

using namespace cluster_job;

namespace {

/// A process of the controller with short times of the lease.
class replica {
 public:
  replica(lab::cluster& of, std::string const& name, std::vector<std::string> more = {})
      : run_(line(name, std::move(more)),
             {.env = {{"KUBECONFIG", of.kubeconfig()}}, .program = EDL_CONTROLLER}) {}

  void signal(int number) { ::kill(run_.pid(), number); }
  int wait() { return run_.wait(30s); }
  bool says(std::string const& text) {
    return job::eventually([&] { return job::has(run_.log(), text); }, 60s);
  }
  std::string log() const { return run_.log(); }

  /// What a path of its port answers; the code and the text.
  std::pair<int, std::string> get(std::string const& path) {
    REQUIRE(says("probes and metrics on port "));
    std::string const said = run_.log(), mark = "on port ";
    httplib::Client http("127.0.0.1", std::stoi(said.substr(said.find(mark) + mark.size())));
    auto const got = http.Get(path);
    if (!got) return {0, ""};
    return {got->status, got->body};
  }
  bool leads() { return job::has(get("/metrics").second, "edl_controller_leader 1"); }

 private:
  static std::vector<std::string> line(std::string const& name, std::vector<std::string> more) {
    for (char const* usual : {"--metrics_address=127.0.0.1:0", "--lease_duration=4",
                              "--lease_renew_deadline=3", "--lease_retry=0.2"})
      more.push_back(usual);
    more.push_back("--identity=" + name);
    return more;
  }

  job::run run_;
};

lab::options with_room_for_leases() {
  auto o = usual();
  o.namespaces = {"default", "edl-system"};
  return o;
}

class controllers : public laboratory {
 public:
  controllers() : laboratory(with_room_for_leases()) {
    cluster.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                 lab::read_yaml(std::string(EDL_MANIFESTS) + "/trainingjob-crd.yaml").at(0));
  }
  std::string holder(std::string const& lease = "edl-controller") {
    return cluster.get("/apis/coordination.k8s.io/v1/namespaces/edl-system/leases/" + lease)
        .value("/spec/holderIdentity"_json_pointer, "");
  }
  bool holds(std::string const& who) {
    return job::eventually([&] { return holder() == who; }, 60s);
  }
};

}  // namespace

TEST_CASE("of two controllers one acts; the other follows it, whether it ends, is killed or sleeps") {
  controllers it;
  auto a = std::make_unique<replica>(it.cluster, "a");
  REQUIRE(it.holds("a"));
  replica b(it.cluster, "b");
  REQUIRE(b.says("probes and metrics on port "));
  CHECK(a->leads());
  CHECK_FALSE(b.leads());

  a->signal(SIGTERM);
  CHECK(a->wait() == 0);
  CHECK(it.holds("b"));  // given back, and not waited for
  CHECK(job::eventually([&] { return b.leads(); }, 60s));

  replica c(it.cluster, "c");
  REQUIRE(c.says("probes and metrics on port "));
  b.signal(SIGSTOP);
  CHECK(it.holds("c"));
  b.signal(SIGCONT);
  CHECK(b.says("no longer leads"));
  CHECK_FALSE(b.leads());
  CHECK(it.holder() == "c");

  c.signal(SIGKILL);
  CHECK(it.holds("b"));
  CHECK(job::eventually([&] { return b.leads(); }, 60s));
}

TEST_CASE("a controller tells that it is healthy and ready, and what it has done") {
  controllers it;
  replica a(it.cluster, "a");
  REQUIRE(it.holds("a"));
  CHECK(job::eventually([&] { return a.get("/readyz").first == 200; }, 60s));
  CHECK(a.get("/healthz").first == 200);
  auto const [code, text] = a.get("/metrics");
  CHECK(code == 200);
  for (char const* metric : {"# TYPE edl_controller_leader gauge", "# TYPE edl_controller_plans counter",
                             "edl_controller_nodes 1", "# TYPE edl_controller_api_requests counter"}) {
    CAPTURE(text);
    CHECK_MESSAGE(job::has(text, metric), metric);
  }
  CHECK(a.get("/no-such").first == 404);
}

TEST_CASE("controllers of two namespaces have a lease each, and both act") {
  controllers it;
  replica a(it.cluster, "a", {"--namespace=default"}), b(it.cluster, "b", {"--namespace=edl-system"});
  CHECK(job::eventually([&] { return it.holder("edl-controller-default") == "a"; }, 60s));
  CHECK(job::eventually([&] { return it.holder("edl-controller-edl-system") == "b"; }, 60s));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // both want all addresses
TEST_CASE("a controller whose later threads cannot start says so, and ends those that run") {
  laboratory it;
  job::run starved({"-c",
                    "ulimit -s 524288; ulimit -v 8000000; exec \"$0\" --workers=64 "
                    "--metrics_address=127.0.0.1:0",
                    EDL_CONTROLLER},
                   {.env = {{"KUBECONFIG", it.cluster.kubeconfig()}}, .program = "/bin/sh"});
  CHECK(starved.wait() == 1);
  CHECK(job::has(starved.log(), "cannot start a thread: "));
}
#endif

}  // namespace controllers_test

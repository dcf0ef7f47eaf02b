// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kueue/podgroup.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cluster/autoscaler/world.hpp"

namespace podgroup_test {

using namespace edl::controller;
using namespace edl::kueue;
using nlohmann::json;

namespace {
edl::kubernetes::training_job mnist() {
  edl::kubernetes::training_job j{.space = "team", .name = "mnist", .uid = "0123456789"};
  j.spec.servers = 2;
  j.spec.workers = {3, 8};
  j.spec.worker = R"({"spec":{"containers":[{"name":"main"}]}})";
  return j;
}
}  // namespace

TEST_CASE("a cluster serves PodGroups when it lists them") {
  CHECK(serves_pod_groups(R"({"resources": [{"name": "priorityclasses"}, {"name": "podgroups"}]})"_json));
  CHECK_FALSE(serves_pod_groups(R"({"resources": [{"name": "priorityclasses"}]})"_json));
  CHECK_FALSE(serves_pod_groups(json()));
}

TEST_CASE("the group of a job: servers and the least workers, not the master that makes them") {
  CHECK(pod_group(mnist(), pod_group_api_called("v1beta1")) ==
        R"({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
            "metadata": {"name": "elasticdl-mnist-01234567", "namespace": "team", "ownerReferences": [
              {"apiVersion": "elasticdl.org/v1alpha1", "kind": "TrainingJob", "name": "mnist", "uid": "0123456789",
               "controller": true}]},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 5}}}})"_json);
  json const t = json::parse(in_pod_group(mnist().spec.worker, mnist()));
  CHECK(t["spec"]["schedulingGroup"] == json{{"podGroupName", "elasticdl-mnist-01234567"}});
  CHECK(t["spec"]["containers"][0]["name"] == "main");
  CHECK(in_pod_group("", mnist()).empty());
}

TEST_CASE(
    "a controller makes the group before the pods, opens it once it is placed, and closes it for a new "
    "start") {
  world::cluster c;
  c.add_node("n", 20);
  c.add_job("a", 2, 3, 1);
  std::vector<std::string> asked;
  std::uint32_t count = 0;
  struct api : api_requests {
    world::cluster& to;
    std::vector<std::string>& asked;
    std::uint32_t& count;
    api(world::cluster& c, std::vector<std::string>& a, std::uint32_t& n) : to(c), asked(a), count(n) {}
    json get(std::string const& path) override { return to.get(path); }
    json create(std::string const& path, json const& object) override {
      asked.push_back("create " + object.value("kind", ""));
      if (object.value("kind", "") != "PodGroup") return to.create(path, object);
      CHECK(path == "/apis/scheduling.k8s.io/v1beta1/namespaces/team/podgroups");
      if (count > 0) throw edl::kubernetes::api_error(409, "AlreadyExists", "", "");
      count = object["spec"]["schedulingPolicy"]["gang"]["minCount"];
      return object;
    }
    json patch(std::string const& path, json const& change, std::string const& kind) override {
      if (path.find("/podgroups/") == path.npos) return to.patch(path, change, kind);
      CHECK(kind == "merge");
      count = change["spec"]["schedulingPolicy"]["gang"]["minCount"];
      return change;
    }
    json remove(std::string const& path, json const& how) override { return to.remove(path, how); }
  } requests(c, asked, count);
  control k({.max_load = 1, .move = false}, {.pod_groups = true});
  execute_options options{.pod_groups = "v1beta1"};
  std::uint32_t most = 0;
  auto const rounds = [&](int n) {
    for (int i = 0; i < n; ++i) {
      for (auto const& [kind, with] : {std::pair{object_kind::node, "/nodes/"},
                                       {object_kind::pod, "/pods/"},
                                       {object_kind::job, "/trainingjobs/"}}) {
        k.known().begin(kind);
        for (auto const& path : c.paths(with)) k.known().put(kind, c.objects.at(path));
        k.known().end(kind);
      }
      k.take(make_plan(k.view(c.now), k.planning()));
      auto const t = k.decide("team/a", c.now);
      k.learn(t, execute(requests, t.job, t.decision, options), c.now);
      most = std::max(most, count);
      c.step();
    }
  };
  rounds(3);
  CHECK(count == 3);
  auto const first = [&](std::string const& what) { return std::find(asked.begin(), asked.end(), what); };
  CHECK(first("create PodGroup") < first("create Pod"));
  rounds(12);
  CHECK(count == 1);
  json const member = c.objects.at(world::cluster::pod_path("elasticdl-a-worker-0"));
  CHECK(member["spec"]["schedulingGroup"]["podGroupName"].get<std::string>().starts_with("elasticdl-a-"));
  CHECK_FALSE(
      c.objects.at(world::cluster::pod_path("elasticdl-a-master"))["spec"].contains("schedulingGroup"));
  // A master that is replaced finds its members placed.
  most = 0;
  c.ends("elasticdl-a-master", 137);
  rounds(12);
  CHECK(most == 1);
  // An attempt that failed is started anew.
  c.ends("elasticdl-a-master", 1);
  rounds(40);
  CHECK(most == 3);
  CHECK(count == 1);
}

}  // namespace podgroup_test

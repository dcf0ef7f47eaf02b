// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/controller/inventory.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace inventory_test {

using namespace edl::autoscaler;
using namespace edl::controller;
using nlohmann::json;
using weight = inventory_change::weight;

namespace {

json pod_object(std::string const& name, std::string const& uid, std::string const& version,
                std::string const& node = "n") {
  return {{"kind", "Pod"},
          {"metadata", {{"name", name}, {"namespace", "team"}, {"uid", uid}, {"resourceVersion", version}}},
          {"spec",
           {{"nodeName", node},
            {"containers", {{{"name", "c"}, {"resources", {{"requests", {{"cpu", "1"}}}}}}}}}},
          {"status", {{"phase", "Running"}}}};
}

json member(std::string const& name, std::string const& owner, char const* role, int id) {
  json p = pod_object(name, name + "-uid", "5");
  p["metadata"]["labels"] = {{"elasticdl-replica-type", role},
                             {"elasticdl-replica-index", std::to_string(id)}};
  p["metadata"]["ownerReferences"] = {{{"apiVersion", "elasticdl.org/v1alpha1"},
                                       {"kind", "TrainingJob"},
                                       {"name", "a"},
                                       {"uid", owner},
                                       {"controller", true}}};
  return p;
}

json job_object(std::string const& uid, std::string const& version = "3") {
  json const like =
      R"({"spec": {"priorityClassName": "high", "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "2"}}}]}})"_json;
  return {{"metadata",
           {{"name", "a"},
            {"namespace", "team"},
            {"uid", uid},
            {"resourceVersion", version},
            {"generation", 1},
            {"creationTimestamp", "2026-11-22T10:00:00Z"}}},
          {"spec",
           {{"model", "m"},
            {"master", {{"template", like}}},
            {"servers", {{"replicas", 2}, {"template", like}}},
            {"workers", {{"min", 1}, {"max", 4}, {"template", like}}}}}};
}

json node_object(bool ready = true) {
  return {{"metadata", {{"name", "n"}}},
          {"status",
           {{"allocatable", {{"cpu", "8"}}},
            {"conditions", {{{"type", "Ready"}, {"status", ready ? "True" : "Unknown"}}}}}}};
}

void list(inventory& to, object_kind k, std::vector<json> const& all) {
  to.begin(k);
  for (json const& o : all) to.put(k, o);
  to.end(k);
}

}  // namespace

TEST_CASE("everything is known when each kind was listed once, and a list says what has gone") {
  inventory i;
  list(i, object_kind::node, {node_object()});
  list(i, object_kind::pod, {pod_object("p", "u1", "1"), pod_object("q", "u2", "2")});
  list(i, object_kind::priority_class, {});
  CHECK_FALSE(i.complete());
  list(i, object_kind::job, {});
  CHECK(i.complete());
  CHECK(i.pods() == 2);
  CHECK(i.shapes() == 1);
  list(i, object_kind::pod, {pod_object("q", "u2", "2")});
  CHECK(i.pod("team/p") == nullptr);
  CHECK(i.pod("team/q") != nullptr);
  list(i, object_kind::pod, {});
  CHECK(i.shapes() == 0);
}

TEST_CASE(
    "old news changes nothing: an older version, a removal of a predecessor, what was removed already") {
  inventory i;
  i.put(object_kind::pod, pod_object("p", "u1", "10"));
  CHECK(i.put(object_kind::pod, pod_object("p", "u1", "9", "other")).plan == weight::none);
  CHECK(i.pod("team/p")->node == "n");
  CHECK(i.put(object_kind::pod, pod_object("p", "u2", "20")).plan == weight::hard);
  i.remove(object_kind::pod, pod_object("p", "u1", "15"));
  CHECK(i.pod("team/p") != nullptr);
  i.remove(object_kind::pod, pod_object("p", "u2", "21"));
  CHECK(i.pod("team/p") == nullptr);
  // The answer to a request may come after the watch has told of the object's end.
  i.answered(object_kind::pod, pod_object("p", "u2", "20"));
  CHECK(i.pod("team/p") == nullptr);
  i.answered(object_kind::pod, pod_object("p", "u3", "words"));
  CHECK(i.pod("team/p") == nullptr);
  i.answered(object_kind::pod, pod_object("p", "u3", "22"));
  CHECK(i.pod("team/p") != nullptr);
  i.put(object_kind::pod, pod_object("p", "u2", "19"));
  CHECK(i.pod("team/p")->uid == "u3");
}

TEST_CASE(
    "an answer beside a list: what is older than the list and not in it has gone, what is newer has not") {
  inventory i;
  i.answered(object_kind::pod, pod_object("before", "u1", "10"));
  i.begin(object_kind::pod);
  i.answered(object_kind::pod, pod_object("amid", "u2", "11"));
  i.put(object_kind::pod, pod_object("other", "u3", "5"));
  i.answered(object_kind::pod, pod_object("after", "u4", "13"));
  i.end(object_kind::pod, "12");
  CHECK(i.pod("team/before") == nullptr);
  CHECK(i.pod("team/amid") == nullptr);
  CHECK(i.pod("team/other") != nullptr);
  CHECK(i.pod("team/after") != nullptr);
}

TEST_CASE("who waits for something to go is looked at when it goes") {
  inventory i;
  i.put(object_kind::pod, member("elasticdl-a-worker-0", "u", "worker", 0));
  // The job is gone, and its Workload waits for the last pod.
  CHECK(i.remove(object_kind::pod, member("elasticdl-a-worker-0", "u", "worker", 0)).jobs ==
        std::vector<std::string>{"team/a"});
  json lingers = member("elasticdl-a-master", "u", "master", 0);
  lingers["status"] = {{"phase", "Running"},
                       {"containerStatuses",
                        {{{"name", "elasticdl-a-master"}, {"state", {{"terminated", {{"exitCode", 0}}}}}},
                         {{"name", "side"}, {"state", {{"running", json::object()}}}}}}};
  i.put(object_kind::pod, lingers);
  REQUIRE(i.pod("team/elasticdl-a-master")->outlived);
  CHECK(i.remove(object_kind::pod, lingers).plan == weight::hard);
  i.put(object_kind::job, job_object("v"));
  CHECK(i.put(object_kind::priority_class, {{"metadata", {{"name", "high"}}}, {"value", 7}}).jobs ==
        std::vector<std::string>{"team/a"});
}

TEST_CASE("what is the same to a plan asks for none") {
  inventory i;
  i.put(object_kind::pod, pod_object("p", "u1", "10"));
  CHECK(i.put(object_kind::pod, pod_object("p", "u1", "11")).plan == weight::none);
  i.put(object_kind::node, node_object());
  CHECK(i.put(object_kind::node, node_object()).plan == weight::none);
  CHECK(i.put(object_kind::node, node_object(false)).plan == weight::hard);
  CHECK(i.state_of("n") == inventory::node_state::lost);
  CHECK(i.state_of("m") == inventory::node_state::gone);
  json over = pod_object("p", "u1", "12");
  over["status"]["phase"] = "Succeeded";
  CHECK(i.put(object_kind::pod, over).plan == weight::hard);
  CHECK(i.pods() == 0);
}

TEST_CASE("a node that is short of something asks for no plan, and jobs with pods there are looked at") {
  inventory i;
  i.put(object_kind::job, job_object("u"));
  i.put(object_kind::node, node_object());
  i.put(object_kind::pod, member("w", "u", "worker", 0));
  json n = node_object();
  n["status"]["conditions"].push_back({{"type", "DiskPressure"}, {"status", "True"}});
  auto const c = i.put(object_kind::node, n);
  CHECK(c.plan == weight::none);
  CHECK(c.jobs == std::vector<std::string>{"team/a"});
  CHECK(i.pressure_of("n") == "DiskPressure");
  CHECK(i.put(object_kind::node, n).jobs.empty());
  i.put(object_kind::node, node_object());
  CHECK(i.pressure_of("n").empty());
  CHECK(i.pressure_of("m").empty());
}

TEST_CASE("a job's view: what it still lacks, its priority, and workers that were told to leave") {
  inventory i;
  list(i, object_kind::node, {node_object()});
  i.put(object_kind::priority_class, {{"metadata", {{"name", "high"}}}, {"value", 7}});
  i.put(object_kind::job, job_object("u"));
  auto v = i.view(100, {});
  REQUIRE(v.jobs.size() == 1);
  CHECK(v.jobs[0].priority == 7);
  CHECK(v.jobs[0].fixed.size() == 3);
  CHECK_FALSE(v.jobs[0].admitted);

  json const master = member("elasticdl-a-master", "u", "master", 0),
             server = member("elasticdl-a-ps-0", "u", "ps", 0);
  CHECK(i.put(object_kind::pod, master).jobs == std::vector<std::string>{"team/a"});
  i.put(object_kind::pod, server);
  for (int w = 0; w < 3; ++w)
    i.put(object_kind::pod, member("elasticdl-a-worker-" + std::to_string(w), "u", "worker", w));
  json let_in = job_object("u", "8");
  let_in["status"] = {{"conditions",
                       {{{"type", "Admitted"},
                         {"status", "True"},
                         {"reason", "Admitted"},
                         {"message", ""},
                         {"lastTransitionTime", "2026-11-22T10:00:00Z"}}}},
                      {"workers", {{"desired", 2}}}};
  i.put(object_kind::job, let_in);
  i.job("team/a")->memo.leave = {1};
  v = i.view(100, {});
  CHECK(v.jobs[0].admitted);
  CHECK(v.jobs[0].workers == 2);
  CHECK(v.jobs[0].fixed.size() == 1);
  std::vector<std::string> leaving, workers;
  for (pod const& p : v.pods) {
    if (p.leaving) leaving.push_back(p.name);
    if (!p.job.empty()) workers.push_back(p.name);
  }
  CHECK(leaving == std::vector<std::string>{"team/elasticdl-a-worker-1"});
  CHECK(workers.size() == 3);

  // Made again under its name it is another job, and the pods are nobody's.
  i.remove(object_kind::job, let_in);
  i.put(object_kind::job, job_object("w", "30"));
  CHECK(i.pods_of("w").empty());
  CHECK(i.pods_of("u").size() == 5);
  CHECK_FALSE(i.knows("u"));
}

TEST_CASE("a job that cannot be read is known with the reason") {
  inventory i;
  json bad = job_object("u");
  bad["spec"]["workers"]["min"] = 9;
  i.put(object_kind::job, bad);
  REQUIRE(i.job("team/a") != nullptr);
  CHECK(i.job("team/a")->invalid.find("workers") != std::string::npos);
  CHECK(i.view(0, {}).jobs.empty());
}

TEST_CASE("a pod that names the uid of a job of another namespace does not belong to it") {
  inventory i;
  i.put(object_kind::job, job_object("u"));
  json elsewhere = member("elasticdl-a-worker-0", "u", "worker", 0);
  elsewhere["metadata"]["namespace"] = "other";
  CHECK(i.put(object_kind::pod, elsewhere).jobs.empty());
  CHECK(i.pods_of("u").empty());
  i.put(object_kind::pod, member("elasticdl-a-worker-0", "u", "worker", 0));
  CHECK(i.pods_of("u").size() == 1);
}

TEST_CASE("a job whose status cannot be read goes on by what is known of it, and is told in the log") {
  inventory i;
  json damaged = job_object("u");
  damaged["status"] = {{"conditions", "none"}};
  CHECK(i.put(object_kind::job, damaged).trouble.find("team/a") != std::string::npos);
  CHECK(i.job("team/a") == nullptr);
  i.put(object_kind::job, job_object("u"));
  damaged["metadata"]["resourceVersion"] = "999";
  auto const c = i.put(object_kind::job, damaged);
  CHECK(c.jobs == std::vector<std::string>{"team/a"});
  CHECK_FALSE(c.trouble.empty());
  CHECK(i.job("team/a")->job.resource_version == "999");
}

TEST_CASE("affinities between pods are read from pods and templates, and mark those that they select") {
  inventory i;
  list(i, object_kind::node, {node_object()});
  list(i, object_kind::priority_class, {});
  json web = pod_object("web", "w", "1"), shy = pod_object("shy", "s", "1"),
       far = pod_object("far", "f", "1");
  web["metadata"]["labels"] = {{"app", "web"}};
  far["metadata"]["labels"] = {{"app", "web"}};
  far["metadata"]["namespace"] = "other";
  json const term = R"({"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"})"_json;
  shy["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
      json::array({term});
  list(i, object_kind::pod, {web, shy, far});
  json job = job_object("u");
  json const own =
      R"({"labelSelector": {"matchLabels": {"elasticdl-job-name": "a", "elasticdl-replica-type": "worker"}},
                       "topologyKey": "zone"})"_json;
  job["spec"]["workers"]["template"]["spec"]["affinity"]["podAffinity"]
     ["requiredDuringSchedulingIgnoredDuringExecution"] = json::array({own});
  list(i, object_kind::job, {job});
  auto const v = i.view(0, {});
  auto const shape = [&](std::string const& name) {
    for (pod const& p : v.pods)
      if (p.name == name) return *p.shape;
    return pod_shape{};
  };
  REQUIRE(shape("team/shy").apart.size() == 1);
  CHECK(shape("team/shy").apart[0].topology == "zone");
  CHECK(shape("team/web").marks == std::vector<std::string>{shape("team/shy").apart[0].mark});
  CHECK(shape("team/shy").marks.empty());
  CHECK(shape("other/far").marks.empty());
  REQUIRE(v.jobs.size() == 1);
  REQUIRE(v.jobs[0].worker.together.size() == 1);
  CHECK(v.jobs[0].worker.marks == std::vector<std::string>{v.jobs[0].worker.together[0].mark});
  CHECK(v.jobs[0].fixed.at(0).marks.empty());
}

TEST_CASE("a pod whose labels change is another one to a plan") {
  inventory i;
  list(i, object_kind::pod, {pod_object("p", "u", "1")});
  json other = pod_object("p", "u", "2");
  CHECK(i.put(object_kind::pod, other).plan == weight::none);
  other = pod_object("p", "u", "3");
  other["metadata"]["labels"] = {{"app", "web"}};
  CHECK(i.put(object_kind::pod, other).plan == weight::hard);
}

}  // namespace inventory_test

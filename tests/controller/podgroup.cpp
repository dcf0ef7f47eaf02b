// SPDX-License-Identifier: Apache-2.0
#include "edl/controller/podgroup.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace edl::controller;
using nlohmann::json;

namespace {
training_job mnist() {
  training_job j{.space = "team", .name = "mnist", .uid = "0123456789"};
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

TEST_CASE("once the gang is placed nobody waits for others; a new start is a gang again") {
  auto const api = pod_group_api_called("v1beta1");
  auto const count = [&](std::uint32_t there, std::uint32_t placed, std::uint32_t now) {
    return gang_count(mnist(), api, {there, placed}, now).value_or(now);
  };
  CHECK(count(0, 0, 5) == 5);
  CHECK(count(5, 4, 5) == 5);
  CHECK(count(5, 5, 5) == 1);
  CHECK(count(5, 2, 1) == 1);  // three were lost
  CHECK(count(0, 0, 1) == 5);
  // Where the count cannot change, it stays.
  CHECK_FALSE(gang_count(mnist(), pod_group_api_called("v1alpha2"), {5, 5}, 5));
}

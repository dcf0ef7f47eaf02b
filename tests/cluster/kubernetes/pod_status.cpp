// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/pod_status.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace pod_status_test {

namespace {

using namespace edl::platform;
using namespace edl::kubernetes;
using edl::process_id;
using edl::role;
using nlohmann::json;

json pod(json status) {
  return {
      {"metadata",
       {{"name", "elasticdl-j-worker-7"},
        {"uid", "u"},
        {"ownerReferences", {{{"uid", "master"}}}},
        {"labels",
         {{"elasticdl-replica-type", "worker"},
          {"elasticdl-replica-index", "7"},
          {"elasticdl-original-index", "2"}}}}},
      {"spec",
       {{"restartPolicy", "Never"}, {"containers", {{{"resources", {{"limits", {{"memory", "1Gi"}}}}}}}}}},
      {"status", std::move(status)}};
}

json ended(int code, std::string const& reason, std::string const& message = {}) {
  json end{{"exitCode", code}, {"reason", reason}};
  if (!message.empty()) end["message"] = message;
  return {{"phase", "Failed"}, {"containerStatuses", {{{"state", {{"terminated", end}}}}}}};
}

}  // namespace

TEST_CASE("A pod's labels, owner and limits are read") {
  auto const s = read_pod(pod({{"phase", "Running"}}));
  REQUIRE(s);
  CHECK(s->who == process_id{role::worker, 7});
  CHECK(s->index == 2);
  CHECK(s->owner == "master");
  CHECK(s->memory == "1Gi");
  CHECK(s->at == pod_status::phase::running);
  CHECK_FALSE(s->over());
}

TEST_CASE("What is no pod of ours, or of other types than promised, is nothing or as if empty") {
  CHECK_FALSE(read_pod(json()));
  CHECK_FALSE(read_pod(json::array({1, 2})));
  CHECK_FALSE(read_pod({{"metadata", {{"labels", {{"elasticdl-replica-type", "worker"}}}}}}));
  CHECK_FALSE(read_pod(
      {{"metadata", {{"labels", {{"elasticdl-replica-type", "cook"}, {"elasticdl-replica-index", "1"}}}}}}));
  CHECK_FALSE(read_pod(
      {{"metadata", {{"labels", {{"elasticdl-replica-type", "ps"}, {"elasticdl-replica-index", "-1"}}}}}}));
  auto odd = pod({{"phase", 3}, {"conditions", "none"}, {"containerStatuses", {{{"state", 1}}}}});
  odd["spec"] = 5;
  auto const s = read_pod(odd);
  REQUIRE(s);
  CHECK(s->at == pod_status::phase::unknown);
}

TEST_CASE("How a pod ended") {
  auto const how = [](json const& p) { return ending_of(*read_pod(p)); };
  CHECK(describe(how(pod(ended(3, "Error")))) == "exited with code 3");
  CHECK(how(pod(ended(3, "Error"))).failed());
  CHECK(how(pod(ended(137, "Error"))).signal == 9);
  auto const memory = how(pod(ended(137, "OOMKilled")));
  CHECK(memory.signal == 0);
  CHECK(describe(memory) == "used more memory than its limit of 1Gi");
  CHECK(describe(how(pod(ended(128, "StartError", "exec: \"mnist\": not found in $PATH")))) ==
        "exited with code 128: StartError: exec: \"mnist\": not found in $PATH");
  CHECK(describe(how(pod(ended(1, "Error", "[2026-11-20 13:00:00,123] [INFO] [worker-0] all is well\n")))) ==
        "exited with code 1");
  CHECK(describe(how(pod(ended(1, "Error", "one\nmnist: data/train: there is no such file\n")))) ==
        "exited with code 1: mnist: data/train: there is no such file");

  auto evicted = pod(ended(137, "Error"));
  evicted["status"]["reason"] = "Evicted";
  evicted["status"]["message"] = "The node was low on resource: memory.";
  CHECK(how(evicted).outside);
  CHECK(describe(how(evicted)) == "was taken away: Evicted: The node was low on resource: memory.");

  auto deleted = pod(ended(143, "Error"));
  deleted["metadata"]["deletionTimestamp"] = "2026-11-20T10:39:10Z";
  CHECK(how(deleted).outside);
  CHECK(describe(how(deleted)) == "was deleted");

  CHECK(how(pod(ended(137, "ContainerStatusUnknown"))).outside);
}

TEST_CASE("A container that is started again in place has not ended") {
  auto again = pod(ended(1, "Error"));
  again["status"]["phase"] = "Running";
  CHECK(read_pod(again)->over());
  again["spec"]["restartPolicy"] = "OnFailure";
  CHECK_FALSE(read_pod(again)->over());
}

TEST_CASE("Why a pod does not run yet; coming up is no trouble") {
  auto const waits = [](char const* reason, char const* message) {
    return *read_pod(pod(
        {{"phase", "Pending"},
         {"containerStatuses", {{{"state", {{"waiting", {{"reason", reason}, {"message", message}}}}}}}}}));
  };
  CHECK(trouble(waits("ContainerCreating", "")).empty());
  CHECK(trouble(waits("ImagePullBackOff", "Back-off pulling")) == "ImagePullBackOff: Back-off pulling");
  CHECK(hopeless(waits("InvalidImageName", "")));
  CHECK_FALSE(hopeless(waits("ErrImagePull", "")));
}

}  // namespace pod_status_test

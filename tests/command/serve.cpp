// SPDX-License-Identifier: Apache-2.0
#include "submit/serve.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "edl/core/error.hpp"

namespace serve_test {

using nlohmann::json;

std::vector<json> objects(edl::tool::words line) {
  line.insert(line.begin(), {"--image_name=registry.example.com/team/mnist:1", "--model_path=/d/ck"});
  return edl::tool::serve_objects({"serve", edl::tool::serve_flags(), line});
}

TEST_CASE("what serves a model is a Deployment and a Service that find each other") {
  auto const all = objects({"--namespace=team", "--volume=claim_name=c,mount_path=/d,sub_path=s",
                            "--replicas=3", "--cpu=2", "--memory=3Gi"});
  REQUIRE(all.size() == 2);
  json const &deployment = all[0], &service = all[1], &pod = deployment["spec"]["template"]["spec"];
  CHECK(deployment["metadata"]["namespace"] == "team");
  CHECK(deployment["spec"]["replicas"] == 3);
  CHECK(deployment["spec"]["template"]["metadata"]["labels"]["app"] == "mnist-serve");
  CHECK(deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]);
  CHECK(service["metadata"]["name"] == "mnist-serve");
  CHECK(pod["containers"][0]["image"] == "registry.example.com/team/mnist:1");
  CHECK(pod["containers"][0]["command"] ==
        json{"mnist", "serve", "--model_path=/d/ck", "--host=0.0.0.0", "--port=8080"});
  CHECK(pod["terminationGracePeriodSeconds"] == 30);
  CHECK(pod["containers"][0]["volumeMounts"][0]["mountPath"] == "/d");
  CHECK(pod["containers"][0]["volumeMounts"][0]["subPath"] == "s");
  CHECK(pod["containers"][0]["resources"] ==
        json{{"requests", {{"cpu", "2"}, {"memory", "3Gi"}}}, {"limits", {{"memory", "3Gi"}}}});
  CHECK(pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == "c");
  CHECK(pod["containers"][0]["readinessProbe"]["httpGet"]["path"] == "/v2/health/ready");
}

TEST_CASE("a model in a bucket needs no claim, but room for its copy and credentials") {
  auto const of = [](edl::tool::words line) {
    line.insert(line.begin(), {"--image_name=mnist:1", "--model_path=s3://box/m"});
    return edl::tool::serve_objects({"serve", edl::tool::serve_flags(), line});
  };
  json const pod =
      of({"--service_account=reader", "--envs=AWS_REGION=eu-west-1"})[0]["spec"]["template"]["spec"];
  json const& container = pod["containers"][0];
  CHECK(container["command"][2] == "--model_path=s3://box/m");
  CHECK(pod["serviceAccountName"] == "reader");
  CHECK(pod["volumes"] == json::parse(R"([{"name": "cache", "emptyDir": {}}])"));
  CHECK(container["volumeMounts"] == json::parse(R"([{"name": "cache", "mountPath": "/cache"}])"));
  CHECK(container["env"] == json::parse(R"([{"name": "AWS_REGION", "value": "eu-west-1"},
                                             {"name": "XDG_CACHE_HOME", "value": "/cache"}])"));
  CHECK_THROWS_WITH_AS(of({"--volume=claim_name=c,mount_path=/d"}), doctest::Contains("needs no claim"),
                       edl::usage_error);
}

TEST_CASE("names may be told, and are checked") {
  auto const all = objects({"--model_def=digits", "--name=n"});
  CHECK(all[0]["spec"]["template"]["spec"]["containers"][0]["command"][0] == "digits");
  CHECK(all[1]["metadata"]["name"] == "n");
  CHECK_FALSE(all[1]["metadata"].contains("namespace"));
  CHECK_THROWS_AS(objects({"--name=N_"}), edl::usage_error);
  for (std::string const wrong : {"--volume=host_path=/d,mount_path=/d",
                                  "--volume=claim_name=c,mount_path=/d;claim_name=e,mount_path=/e"})
    CHECK_THROWS_WITH_AS(objects({wrong}), doctest::Contains("expected one claim"), edl::usage_error);
}

}  // namespace serve_test

// SPDX-License-Identifier: Apache-2.0
// Objects that the tool makes itself.
#include <nlohmann/json.hpp>

#include "cluster/audit.hpp"
#include "cluster/rbac.hpp"
#include "command/tool.hpp"
#include "common/yaml.hpp"
#include "kubernetes/schema.hpp"
#include "submit/plain_job.hpp"
#include "submit/submission.hpp"

namespace objects_test {

using namespace edl::tool;
using nlohmann::json;

namespace {

std::vector<std::string> documents(std::string const& text) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < text.size();) {
    auto const end = std::min(text.find("\n---\n", at), text.size());
    all.push_back(text.substr(at, end - at));
    at = end + 5;
  }
  return all;
}

json master() {
  return objects_of(
      read_submission("train",
                      {"--job_name=j", "--image_name=i:1", "--model_def=m", "--training_data=/d",
                       "--checkpoint_dir=/data/c", "--volume=claim_name=c,mount_path=/data"},
                      "now")
          .spec,
      "token")[2];
}

}  // namespace

TEST_CASE("rbac says what the file of the repository says") {
  json file = json::array();
  for (std::string const& d : documents(support::read(std::string(EDL_MANIFESTS) + "/rbac.yaml")))
    file.push_back(from_yaml(d, "rbac.yaml"));
  CHECK(rbac_objects("", "edl") == file);
  json const team = rbac_objects("team", "default", true);
  REQUIRE(team.size() == 3);  // every namespace has the account default
  for (json const& o : team) CHECK(o["metadata"]["namespace"] == "team");
  CHECK(team[1]["subjects"][0] ==
        json{{"kind", "ServiceAccount"}, {"name", "default"}, {"namespace", "team"}});
  CHECK(team[2]["metadata"]["name"] == "edl-user");
}

TEST_CASE("an audit's pod has the job's image and volumes, and nothing of its rights") {
  json from = master();
  // What an API server adds to a pod.
  from["spec"]["volumes"].push_back({{"name", "kube-api-access-x7k2p"}, {"projected", json::object()}});
  from["spec"]["containers"][0]["volumeMounts"].push_back(
      {{"name", "kube-api-access-x7k2p"}, {"mountPath", "/var/run/secrets/kubernetes.io/serviceaccount"}});
  CHECK(checkpoint_dir_of(from) == "/data/c");
  json const pod = audit_pod(from, "j", "/data/c");
  json const& container = pod["spec"]["containers"][0];
  CHECK(container["command"] == json{"m", "audit", "/data/c"});
  CHECK(container["image"] == "i:1");
  CHECK_FALSE(container.contains("env"));
  CHECK_FALSE(
      pod["metadata"]["labels"].contains("elasticdl-job-name"));  // the master takes it for none of its own
  CHECK(pod["spec"]["automountServiceAccountToken"] == false);
  CHECK(pod["spec"]["securityContext"]["runAsNonRoot"] == true);
  CHECK(support::has(pod.dump(), "\"claimName\":\"c\""));
  CHECK_FALSE(support::has(pod.dump(), "kube-api-access"));
}

TEST_CASE("a bucket is audited with the job's own credentials, and not with its place in the job") {
  json from = master();
  json& container = from["spec"]["containers"][0];
  container["command"].push_back("--data_cache=/scratch");
  container["env"] = json{{{"name", "AWS_ROLE_ARN"}, {"value", "arn"}},
                          {{"name", "EDL_ROLE"}, {"value", "master"}},
                          {{"name", "EDL_JOB_TOKEN"}, {"value", "secret"}}};
  container["envFrom"] = json{{{"secretRef", {{"name", "keys"}}}}};
  from["spec"]["serviceAccountName"] = "reader";
  json const pod = audit_pod(from, "j", "s3://box/c");
  json const& one = pod["spec"]["containers"][0];
  CHECK(one["command"] == json{"m", "audit", "s3://box/c"});
  CHECK(one["env"] == json{{{"name", "AWS_ROLE_ARN"}, {"value", "arn"}},
                           {{"name", "XDG_CACHE_HOME"}, {"value", "/scratch"}}});
  CHECK(one["envFrom"] == container["envFrom"]);
  CHECK(pod["spec"]["serviceAccountName"] == "reader");
  CHECK(pod["spec"]["automountServiceAccountToken"] == false);
  CHECK_FALSE(audit_pod(from, "j", "/data/c")["spec"].contains("serviceAccountName"));
}

TEST_CASE("objects are as the published schemas want them") {
  auto const folder = edl::testing::kubernetes::recordings();
  if (!folder) return;
  edl::testing::kubernetes::schema const published(*folder / "openapi");
  json all = rbac_objects("team", "edl", true);
  all.push_back(audit_pod(master(), "j", "/data/c"));
  for (json const& o : all) {
    CAPTURE(o.dump(2));
    CHECK(published.errors(o).empty());
  }
}

}  // namespace objects_test

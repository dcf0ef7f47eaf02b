// SPDX-License-Identifier: Apache-2.0
#include "submit/training_job.hpp"

#include <nlohmann/json.hpp>

#include "command/tool.hpp"
#include "common/yaml.hpp"
#include "submit/training_job_check.hpp"

namespace training_job_test {

using namespace edl::tool;
using nlohmann::json;
using support::has;
using tool_test::refusal;

namespace {

json made(words const& more, std::string const& command = "train") {
  words line{"--job_name=j", "--image_name=i:1", "--model_def=m"};
  if (command == "train")
    line.push_back("--training_data=/d");
  else
    line.insert(line.end(), {"--validation_data=/d", "--checkpoint_dir_for_init=/c"});
  line.insert(line.end(), more.begin(), more.end());
  training_job_line const job = read_training_job_line(command, line, "now");
  json const object = training_job_of(job.submission, job.options);
  check_training_job(object, "made");
  return object;
}

std::string refused(words const& more) {
  return refusal([&] { made(more); });
}

/// A change of a good job, as a user may have written it.
std::string wrong(json const& change) {
  json job = made({"--num_ps_pods=1", "--max_workers=4"});
  job.merge_patch(change);
  return refusal([&] { check_training_job(job, "job.yaml"); });
}

}  // namespace

TEST_CASE("flags of edl train make a TrainingJob") {
  json const job =
      made({"--num_ps_pods=2",
            "--min_workers=2",
            "--max_workers=8",
            "--num_epochs=3",
            "--worker_resource_request=cpu=2,memory=1Gi,gpu=1",
            "--worker_image=w:2",
            "--volume=claim_name=c,mount_path=/a,sub_path=s;claim_name=c,mount_path=/b,read_only=true;"
            "host_path=/h,mount_path=/h,type=Directory",
            "--envs=A=$x",
            "--worker_pod_priority=low",
            "--service_account=s",
            "--grace_seconds=60",
            "--image_pull_secrets=p,q",
            "--cluster_spec_json={\"worker_pod_spec\": {\"labels\": {\"l\": "
            "\"v\"}, \"nodeSelector\": {\"d\": \"e\"}}}",
            "-n",
            "team",
            "--backoff_limit=5",
            "--active_deadline_seconds=60",
            "--ttl_seconds_after_finished=0",
            "--changing_batch",
            "--suspend"});
  CHECK(job["apiVersion"] == "elasticdl.org/v1alpha1");
  CHECK(job["metadata"] == json{{"name", "j"}, {"namespace", "team"}});
  json const& spec = job["spec"];
  CHECK(spec["strategy"] == "ParameterServerStrategy");
  CHECK(spec["model"] == "m");
  CHECK(spec["flags"] == json{"--training_data=/d", "--num_epochs=3"});
  CHECK(spec["servers"]["replicas"] == 2);
  CHECK(spec["workers"]["min"] == 2);
  CHECK(spec["workers"]["max"] == 8);
  CHECK_FALSE(spec["workers"].contains("replicas"));
  CHECK(spec["backoffLimit"] == 5);
  CHECK(spec["activeDeadlineSeconds"] == 60);
  CHECK(spec["ttlSecondsAfterFinished"] == 0);
  CHECK(spec["changingBatch"] == true);
  CHECK(spec["suspend"] == true);
  json const& worker = spec["workers"]["template"];
  CHECK(worker["metadata"]["labels"] == json{{"l", "v"}});
  CHECK(worker["spec"]["nodeSelector"] == json{{"d", "e"}});
  CHECK(worker["spec"]["priorityClassName"] == "low");
  CHECK(worker["spec"]["terminationGracePeriodSeconds"] == 60);
  CHECK(worker["spec"]["imagePullSecrets"] == json{{{"name", "p"}}, {{"name", "q"}}});
  CHECK(worker["spec"]["volumes"].size() == 2);
  json const& container = worker["spec"]["containers"][0];
  CHECK(container["image"] == "w:2");
  CHECK(container["resources"]["limits"]["nvidia.com/gpu"] == "1");
  CHECK(container["env"] == json{{{"name", "A"}, {"value", "$$x"}}});  // as the API server reads it
  CHECK(container["volumeMounts"].size() == 3);
  CHECK(container["volumeMounts"][0]["name"] == container["volumeMounts"][1]["name"]);
  CHECK(container["volumeMounts"][0]["subPath"] == "s");
  CHECK(container["volumeMounts"][1]["readOnly"] == true);
  CHECK_FALSE(container.contains("command"));
  json const& master = spec["master"]["template"]["spec"];
  CHECK(master["serviceAccountName"] == "s");
  CHECK(master["containers"][0]["image"] == "i:1");
  CHECK_FALSE(master.contains("nodeSelector"));
}

TEST_CASE("numbers of workers: bounds, and a fixed size") {
  auto const workers = [](words const& more) {
    json w = made(more)["spec"]["workers"];
    w.erase("template");
    return w;
  };
  CHECK(workers({}) == json{{"min", 1}, {"max", 2}});
  CHECK(workers({"--num_workers=4"}) == json{{"min", 1}, {"max", 4}, {"replicas", 4}});
  CHECK(workers({"--num_workers=auto", "--max_workers=3"}) == json{{"min", 1}, {"max", 3}});
  CHECK(workers({"--min_workers=5"}) == json{{"min", 5}, {"max", 5}});
  CHECK(workers({"--distribution_strategy=Local"}) == json{{"min", 1}, {"max", 1}});
  CHECK(has(refused({"--min_workers=3", "--max_workers=2"}), "--min_workers=3 is above --max_workers=2"));
  CHECK(has(refused({"--num_workers=9", "--max_workers=8"}), "from --min_workers=1 to --max_workers=8"));
  CHECK(has(refused({"--distribution_strategy=Local", "--max_workers=2"}), "Local has one worker"));
  CHECK(has(refused({"--max_workers=0"}), "--max_workers=0"));
}

TEST_CASE("a strategy is as with edl train, and Local stays what it is called") {
  CHECK(made({})["spec"]["strategy"] == "AllreduceStrategy");
  CHECK(made({"--distribution_strategy=Local"})["spec"]["strategy"] == "Local");
  json const servers = made({"--distribution_strategy=ParameterServerStrategy"})["spec"]["servers"];
  CHECK(servers["replicas"] == 1);
  CHECK(made({}, "evaluate")["spec"]["command"] == "evaluate");
  CHECK_FALSE(made({})["spec"].contains("command"));
}

TEST_CASE("what a TrainingJob has no place for is refused") {
  CHECK(has(refused({"--worker_pod_priority=0.5", "--max_workers=4"}), "have one class"));
  CHECK(made({"--worker_pod_priority=1"})["spec"]["workers"]["template"]["spec"]["priorityClassName"] ==
        "high");
  CHECK(has(refused({"--aux_params=disable_relaunch=True"}), "leave it out"));
  CHECK(has(refused({"--populate_env_names=A.*"}), "give --envs"));
  CHECK(has(refused({"--cluster_spec_json={\"service_spec\": {\"type\": \"NodePort\"}}"}), "service_spec"));
}

TEST_CASE("a manifest is checked before a cluster sees it") {
  CHECK(wrong(json::object()) == "accepted");
  CHECK(has(wrong({{"spec", {{"workers", {{"min", 5}}}}}}),
            "spec.workers.min is 5: expected at most spec.workers.max, which is 4"));
  CHECK(has(wrong({{"spec", {{"workers", {{"replicas", 9}}}}}}), "spec.workers.replicas is 9"));
  CHECK(has(wrong({{"spec", {{"servers", {{"replicas", 0}}}}}}), "spec.servers.replicas"));
  CHECK(has(wrong({{"spec", {{"strategy", "AllreduceStrategy"}}}}), "has no servers"));
  CHECK(has(wrong({{"metadata", {{"name", "Big"}}}}), "metadata.name is 'Big'"));
  CHECK(has(wrong({{"metadata", {{"name", std::string(41, 'a')}}}}), "at most 40"));
  CHECK(has(wrong({{"spec", {{"flags", {"--training_data=/d", "--num_epoch=2"}}}}}),
            "did you mean --num_epochs?"));
  CHECK(has(wrong({{"spec", {{"flags", {"--training_data=/d", "--num_workers=2"}}}}}),
            "spec.flags[1]: --num_workers follows"));
  CHECK(has(wrong({{"spec", {{"flags", json::array()}}}}), "--training_data"));
  CHECK(has(wrong({{"spec", {{"flags", {"--help"}}}}}), "start no job"));
  CHECK(has(wrong({{"spec", {{"workers", {{"template", nullptr}}}}}}), "spec.workers.template"));
  CHECK(has(wrong({{"apiVersion", "elasticdl.org/v1"}}), "expected elasticdl.org/v1alpha1"));
  json job = made({});
  job["spec"]["workers"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1500m";
  CHECK(
      has(refusal([&] { check_training_job(job, "f"); }),
          "f: spec.workers.template.spec.containers[0].resources.requests.cpu: 1500m is above its limit, 1"));
  job["spec"]["workers"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "much";
  CHECK(has(refusal([&] { check_training_job(job, "f"); }), "resources.requests.cpu: \"much\": expected"));
  job = made({});
  job["spec"]["workers"]["template"]["spec"]["containers"][0]["resources"]["requests"]["memory"] = "512m";
  CHECK(has(refusal([&] { check_training_job(job, "f"); }), "requests.memory: '512m' is 1 byte, too little"));
}

}  // namespace training_job_test

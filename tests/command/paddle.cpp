// SPDX-License-Identifier: Apache-2.0
#include "submit/paddle.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "command/paddle_examples.hpp"
#include "command/tool.hpp"
#include "common/yaml.hpp"
#include "submit/convert.hpp"
#include "submit/paddle_line.hpp"

namespace paddle_test {

using namespace edl::tool;
using nlohmann::json;
using support::has;
using tool_test::refusal;

namespace {

json example() { return from_yaml(paddle::example_job, "f"); }

/// The example with something else in it, by RFC 7386.
json with(json const& change) {
  json job = example();
  job.merge_patch(change);
  return job;
}

std::string value_of(paddle_job const& job, std::string const& flag) {
  for (std::string const& word : job.line)
    if (word.starts_with("--" + flag + "=")) return word.substr(flag.size() + 3);
  return "none";
}

bool noted(words const& notes, std::string const& part) {
  return std::ranges::any_of(notes, [&](std::string const& n) { return has(n, part); });
}

std::string refused(json const& change) {
  return refusal([&] { read_paddle_job(with(change), "f"); });
}

training_job_line converted(json const& job, words const& more = {},
                            without_program program = without_program::guessed) {
  words line{"f"};
  line.insert(line.end(), more.begin(), more.end());
  return from_paddle(job, "f", command_line("convert", convert_job_flags(), line, 1, 1), program);
}

}  // namespace

TEST_CASE("the published example means the same here") {
  REQUIRE(is_paddle_job(example()));
  paddle_job const job = read_paddle_job(example(), "f");
  CHECK(value_of(job, "job_name") == "example");
  CHECK(value_of(job, "image_name") == "paddlepaddle/paddlecloud-job");
  CHECK(value_of(job, "num_ps_pods") == "2");
  CHECK(value_of(job, "num_epochs") == "50");
  CHECK(value_of(job, "worker_resource_request") == "cpu=200m,memory=200Mi");
  CHECK(value_of(job, "ps_resource_request") == "cpu=500m,memory=600Mi");
  CHECK(value_of(job, "ps_resource_limit") == "cpu=800m,memory=1Gi");
  CHECK(value_of(job, "master_resource_request") == "cpu=500m,memory=600Mi");
  CHECK(job.min == 2);
  CHECK(job.max == 10);
  CHECK(job.entrypoint == "python train_ft.py");
  for (char const* field : {"spec.port:", "spec.ports_num:", "spec.ports_num_for_sparse:",
                            "spec.trainer.workspace:", "spec.trainer.passes:"})
    CHECK(noted(job.notes, field));
}

TEST_CASE("fields of both generations, in any case, have counterparts or say that they have none") {
  json const job = with(from_yaml(paddle::later_fields, "f"));
  paddle_job const read = read_paddle_job(job, "f");
  CHECK(value_of(read, "namespace") == "paddlecloud");
  CHECK(value_of(read, "num_epochs") == "5");  // and not what stands in the trainer
  CHECK_FALSE(noted(read.notes, "passes"));
  CHECK(value_of(read, "image_pull_secrets") == "one,two");
  json const customs = json::parse(value_of(read, "cluster_spec_json"));
  CHECK(customs["pod_spec"]["nodeSelector"] == json{{"disk", "ssd"}});
  CHECK(customs["pod_spec"]["volumes"][0]["hostPath"]["path"] == "/data");
  CHECK(customs["pod_spec"]["volumeMounts"][0]["mountPath"] == "/data");
  CHECK(value_of(read, "worker_resource_request") == "cpu=1,memory=1536Mi,nvidia.com/gpu=1");
  CHECK(value_of(read, "worker_resource_limit") == "cpu=2,memory=1536Mi,nvidia.com/gpu=1");
  CHECK(read.labels == json{{"team", "vision"}});
  CHECK(read.annotations == json::object());
  for (char const* field :
       {"spec.host_network:", "spec.HostNetwork:", "spec.trainer.etcd-endpoint:", "spec.trainer.replicaSpec:",
        "spec.master.etcd-endpoint:", "limits.alpha.kubernetes.io/nvidia-gpu:", "limits.rdma/hca:",
        "spec.pserver.max-instance:"})
    CHECK(noted(read.notes, field));
}

TEST_CASE("what PaddlePaddle's resource has no field for is refused, with what was meant") {
  CHECK(has(refused({{"spec", {{"trainer", {{"min_instance", 2}}}}}}),
            "f: spec.trainer.min_instance: PaddlePaddle's TrainingJob has no such field; did you mean "
            "min-instance?"));
  CHECK(has(refused({{"spec", {{"fault_tolerance", true}}}}), "did you mean fault_tolerant?"));
  CHECK(has(refused({{"specs", 1}}), "specs"));
  CHECK(has(refused({{"spec", {{"trainer", {{"resources", {{"request", json::object()}}}}}}}}),
            "did you mean requests?"));
  CHECK(has(refused({{"spec", {{"trainer", {{"min-instance", 11}}}}}}),
            "spec.trainer.max-instance: 10 is below"));
  CHECK(has(refused({{"spec", {{"trainer", {{"min-instance", 0}}}}}}), "from 1 to 10000"));
  CHECK(has(refused({{"spec", {{"trainer", {{"min-instance", "2"}}}}}}), "expected a whole number"));
  CHECK(
      has(refused({{"spec", {{"trainer", {{"max-instance", 18446744073709551615u}}}}}}), "from 1 to 10000"));
  CHECK(has(refused({{"spec", {{"trainer", nullptr}}}}), "spec.trainer: is missing"));
  CHECK(has(refused({{"spec", {{"trainer", {{"resources", {{"limits", {{"cpu", "two"}}}}}}}}}}),
            "spec.trainer.resources.limits.cpu: 'two' is not an amount"));
  CHECK(has(refused({{"spec", {{"trainer", {{"resources", {{"limits", {{"memory", "512m"}}}}}}}}}}),
            "spec.trainer.resources.limits.memory: '512m' is 1 byte, too little"));
  CHECK(has(refused({{"spec", {{"fault_tolerant", "yes"}}}}), "expected true or false"));
  CHECK(has(refused({{"spec", {{"Image", "x"}}}}), "different cases"));
  CHECK(has(refused({{"metadata", {{"name", nullptr}}}}), "metadata.name"));
  CHECK(has(refused({{"apiVersion", "paddlepaddle.org/v2"}}), "expected paddlepaddle.org/v1"));
}

TEST_CASE("a job that was not fault tolerant, or had no servers, is said to be otherwise") {
  paddle_job const fixed = read_paddle_job(with({{"spec", {{"fault_tolerant", nullptr}}}}), "f");
  CHECK(noted(fixed.notes, "spec.trainer.max-instance"));
  CHECK(noted(read_paddle_job(with({{"spec", {{"fault_tolerant", false}}}}), "f").notes,
              "spec.fault_tolerant"));
  paddle_job const none = read_paddle_job(with({{"spec", {{"pserver", nullptr}}}}), "f");
  CHECK(noted(none.notes, "AllreduceStrategy"));
  CHECK(value_of(none, "num_ps_pods") == "none");
}

TEST_CASE("the entry point names the program where nothing else does, and no job is submitted so") {
  auto const guessed = converted(example());
  json const job = training_job_of(guessed.submission, guessed.options);
  CHECK(job["spec"]["model"] == "train_ft");
  CHECK(job["spec"]["flags"] == json{"--num_epochs=50"});
  CHECK(noted(guessed.submission.notes, "spec.trainer.entrypoint: 'python train_ft.py' is not run"));
  CHECK(noted(guessed.submission.notes, "--training_data is missing"));
  CHECK(noted(guessed.submission.notes, "spec.image: is kept"));
  auto const other = converted(example(), {"--image_name=other:2"});
  CHECK_FALSE(noted(other.submission.notes, "is kept"));
  CHECK(noted(other.submission.notes,
              "spec.image: --image_name=other:2 replaces 'paddlepaddle/paddlecloud-job'"));
  CHECK(job["spec"]["workers"]["min"] == 2);
  CHECK(job["spec"]["workers"]["max"] == 10);
  CHECK_FALSE(job["spec"]["workers"].contains("replicas"));
  CHECK(has(refusal([&] { converted(example(), {"--training_data=/d"}, without_program::refused); }),
            "--model_def names it"));
  CHECK(has(refusal([&] { converted(with({{"spec", {{"trainer", {{"entrypoint", "paddle train"}}}}}})); }),
            "--model_def is needed"));
  CHECK(program_of_entrypoint("python -u /workspace/fit/train.py --x=y.py") == "train");
}

TEST_CASE("the command line wins over the file") {
  auto const job = converted(example(), {"--model_def=fit", "--training_data=/d", "--num_ps_pods=1",
                                         "--max_workers=4", "--num_epochs=3", "--job_name=other"});
  json const made = training_job_of(job.submission, job.options);
  CHECK(made["metadata"]["name"] == "other");
  CHECK(made["spec"]["model"] == "fit");
  CHECK(made["spec"]["servers"]["replicas"] == 1);
  CHECK(made["spec"]["workers"]["min"] == 2);
  CHECK(made["spec"]["workers"]["max"] == 4);
  CHECK(made["spec"]["flags"] == json{"--training_data=/d", "--num_epochs=3"});
  CHECK(has(refusal([&] {
              converted(with(from_yaml(paddle::later_fields, "f")),
                        {"--model_def=m", "--training_data=/d", "--cluster_spec_json={}"});
            }),
            "its volumes and selectors"));
}

}  // namespace paddle_test

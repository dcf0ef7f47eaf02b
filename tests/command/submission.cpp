// SPDX-License-Identifier: Apache-2.0
#include "submit/submission.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "command/tool.hpp"
#include "command/tutorials.hpp"
#include "edl/cluster/kubernetes/objects.hpp"
#include "submit/plain_job.hpp"
#include "submit/submission_flags.hpp"

namespace submission_test {

using nlohmann::json;
using namespace edl::tool;
using support::has;
using tool_test::refusal;
using namespace tutorials;
namespace k8s = edl::kubernetes;

namespace {

/// The least that each command needs.
words least(std::string const& command) {
  words line{"--job_name=j", "--image_name=i:1", "--model_def=m"};
  if (command == "train")
    line.push_back("--training_data=/d");
  else
    line.insert(line.end(), {command == "evaluate" ? "--validation_data=/d" : "--prediction_data=/d",
                             "--checkpoint_dir_for_init=/c"});
  if (command == "predict") line.push_back("--prediction_outputs=/o");
  return line;
}

submission with(std::string const& command, words const& more) {
  words line = least(command);
  line.insert(line.end(), more.begin(), more.end());
  return read_submission(command, line, "now");
}

std::string refused(words const& more) {
  return refusal([&] { with("train", more); });
}

bool commanded(submission const& s, std::string const& word) {
  return std::ranges::find(s.spec.command, word) != s.spec.command.end();
}

/// What a published flag does here.
enum class effect {
  program,  ///< reaches the program's command line as it is
  cluster,  ///< changes what the cluster is told
  said,     ///< does nothing, which a note says
  tool,     ///< is about this very command
};

struct published {
  char const* name;
  char const* value;
  effect does;
  char const* commands = "tep";
  words also{};  ///< what it needs beside it
};

/// Every flag of the published command line tool, of all versions.
std::vector<published> const& every_flag() {
  using enum effect;
  static std::vector<published> const all{
      // For all three commands.
      {"minibatch_size", "32", program},
      {"model_zoo", "model_zoo", said},
      {"log_level", "INFO", program},
      {"feed", "feed", said},
      {"loss", "loss", said},
      {"optimizer", "optimizer", said},
      {"callbacks", "callbacks", said},
      {"eval_metrics_fn", "eval_metrics_fn", said},
      {"custom_data_reader", "custom_data_reader", said},
      {"get_model_steps", "2", program, "t"},
      {"data_reader_params", "a=1; b=2", said},
      {"distribution_strategy", "ParameterServerStrategy", cluster},
      {"set", "a=1", program, "tep"},  // by its other name, --model_params
      {"checkpoint_steps", "5", program, "t", {"--checkpoint_dir=/c"}},
      {"checkpoint_dir", "/c", program, "t"},
      {"keep_checkpoint_max", "3", program, "t"},
      {"output", "/o", program, "t"},
      {"worker_image", "w:1", cluster},
      {"master_resource_request", "cpu=0.2,memory=1024Mi", cluster},
      {"master_resource_limit", "cpu=1,memory=2048Mi", cluster},
      {"worker_resource_request", "cpu=0.4,memory=1024Mi", cluster},
      {"worker_resource_limit", "cpu=1,memory=8192Mi", cluster},
      {"ps_resource_request", "cpu=0.2,memory=1024Mi", cluster},
      {"ps_resource_limit", "cpu=1,memory=8192Mi", cluster},
      {"num_workers", "3", cluster},
      {"num_ps_pods", "1", cluster},
      {"master_pod_priority", "high", cluster},
      {"ps_pod_priority", "high", cluster},
      {"worker_pod_priority", "0.5", cluster},
      {"volume", "host_path=/data,mount_path=/data", cluster},
      {"image_pull_policy", "Never", cluster},
      {"restart_policy", "OnFailure", cluster},
      {"envs", "a=1,b=x,y", cluster},
      {"populate_env_names", "EDL_.*", cluster},
      {"extra_pypi_index", "mirror", said},
      {"namespace", "team", cluster},
      {"num_minibatches_per_task", "2", program},
      {"cluster_spec_json", R"({"pod_spec": {"labels": {"a": "b"}}})", cluster},
      {"yaml", "-", tool},
      {"force_use_kube_config_file", "true", tool},
      {"aux_params", "disable_relaunch=True", cluster},
      {"log_file_path", "/data/log", program},
      // For training.
      {"num_epochs", "2", program, "t"},
      {"grads_to_wait", "2", program, "t"},
      {"validation_data", "/v", program, "t"},
      {"evaluation_steps", "50", program, "t", {"--validation_data=/v"}},
      {"checkpoint_dir_for_init", "/c/version-3", program, "t"},
      {"sync_version_tolerance", "1", program, "t"},
      {"log_loss_steps", "10", program, "t"},
      {"max_step", "100", program, "t"},
      {"use_async", "true", program, "t"},
      {"lr_staleness_modulation", "true", program, "t", {"--use_async=true"}},
      {"need_elasticdl_job_service", "true", said},
      {"need_task_manager", "true", said},
      {"need_pod_manager", "true", said},
      {"task_fault_tolerance", "true", said},
      {"relaunch_timeout_worker", "true", said},
      {"job_command", "python x.py", said},
      {"need_tf_config", "true", said},
      {"relaunch_on_worker_failure", "2", program},
      {"prediction_outputs_processor", "P", said},
      // Of one role.
      {"port", "50001", said},
      {"worker_id", "1", said},
      {"master_addr", "localhost:50001", said},
      {"ps_addrs", "a:1", said},
      {"ps_id", "0", said},
      {"job_type", "training_only", said},
      // Gone or renamed.
      {"codec_type", "tf_example", said},
      {"records_per_task", "128", program, "t"},
      {"docker_image_prefix", "gcr.io/p", cluster, "tep", {"--image_name="}},
      {"docker_image_repository", "gcr.io/p", cluster, "tep", {"--image_name="}},
      {"image_base", "elasticdl:ci", tool},
      {"docker_base_url", "unix:///var/run/docker.sock", tool},
      {"docker_tlscert", "c", said},
      {"docker_tlskey", "k", said},
      {"use_go_ps", "true", said},
      {"dataset_fn", "f", said},
      {"tensorboard_log_dir", "/t", program, "t"},
      {"evaluation_start_delay_secs", "100", said},
      {"evaluation_throttle_secs", "0", said},
  };
  return all;
}

char const* command_of(char letter) {
  return letter == 't' ? "train" : letter == 'e' ? "evaluate" : "predict";
}

/// A published command line, without what is the program's name in it.
submission published_line(std::string const& text) {
  words all = tool_test::shell_words(text);
  auto const train = std::ranges::find(all, "train");
  REQUIRE(train != all.end());
  return read_submission("train", {train + 1, all.end()}, "now");
}

}  // namespace

TEST_CASE(
    "every published flag is read by every command that had it, and does what it says or says that it does "
    "not") {
  for (published const& f : every_flag())
    for (char const letter : std::string(f.commands)) {
      std::string const command = command_of(letter), word = std::string("--") + f.name + "=" + f.value;
      CAPTURE(command);
      CAPTURE(word);
      words line = least(command);
      for (std::string const& more : f.also) {
        if (more == "--image_name=") std::erase(line, "--image_name=i:1");
        if (!more.ends_with('=')) line.push_back(more);
      }
      auto const before = [&]() -> std::string {
        try {
          return k8s::to_json(read_submission(command, line, "now").spec);
        } catch (edl::usage_error const&) {
          return "refused";
        }
      }();
      line.push_back(word);
      submission const s = read_submission(command, line, "now");
      bool const noted = std::ranges::any_of(
          s.notes, [&](std::string const& n) { return n.starts_with("--" + std::string(f.name) + ":"); });
      switch (f.does) {
        case effect::program:
          CHECK(commanded(s, word));
          break;
        case effect::cluster:
          CHECK(k8s::to_json(s.spec) != before);
          break;
        case effect::said:
          CHECK(noted);
          CHECK(k8s::to_json(s.spec) == before);
          break;
        case effect::tool:
          CHECK(s.line.given(f.name));
          break;
      }
      if (f.does != effect::said) CHECK_FALSE(noted);
      // The name and the value as two words, as the published tool took them.
      line.pop_back();
      if (auto const known = submission_flags(command); std::ranges::any_of(
              known, [&](flag const& k) { return k.name == f.name && k.type == flag::value_type::text; })) {
        line.insert(line.end(), {std::string("--") + f.name, f.value});
        CHECK(k8s::to_json(read_submission(command, line, "now").spec) == k8s::to_json(s.spec));
      }
    }
}

TEST_CASE("predictions go to a volume where no place is named") {
  words line = least("predict");
  line.pop_back();
  auto const command_of = [&](std::string const& volume) {
    words with = line;
    with.push_back("--volume=" + volume);
    return read_submission("predict", with, "now");
  };
  auto const s = command_of("host_path=/a,mount_path=/a,read_only=true;claim_name=c,mount_path=/data");
  CHECK(commanded(s, "--prediction_outputs=/data/predictions/j"));
  CHECK(std::ranges::count(s.notes,
                           "--prediction_outputs is not given: predictions go to /data/predictions/j") == 1);
  CHECK(has(refusal([&] { command_of("host_path=/a,mount_path=/a,read_only=true"); }),
            "--prediction_outputs is needed: a directory of a --volume"));
  CHECK(has(refusal([&] { read_submission("predict", line, "now"); }), "--prediction_outputs is needed"));
}

TEST_CASE("what is not given is as published") {
  auto const s = with("train", {}).spec;
  CHECK(s.space == "default");
  CHECK(s.image_pull_policy == "Always");
  CHECK(s.restart_policy == "Never");
  CHECK(s.master.request == k8s::resources{{"cpu", "0.1"}, {"memory", "1024Mi"}});
  CHECK(s.worker.request == k8s::resources{{"cpu", "1"}, {"memory", "4096Mi"}});
  CHECK(s.server.request == s.worker.request);
  CHECK(s.worker.limit == s.worker.request);
  CHECK(s.num_workers == 2);
  CHECK(s.relaunch);
  CHECK(s.grace_seconds == 30);
}

TEST_CASE(
    "without servers workers train with all-reduce, and it is said; with the strategy given there is one") {
  auto const s = with("train", {});
  CHECK(s.spec.num_servers == 0);
  CHECK(commanded(s, "--distribution_strategy=AllreduceStrategy"));
  REQUIRE(s.notes.size() == 1);
  CHECK(has(s.notes[0], "--num_ps_pods=0"));
  auto const given = with("train", {"--distribution_strategy=ParameterServerStrategy"});
  CHECK(given.spec.num_servers == 1);
  CHECK(commanded(given, "--num_ps_pods=1"));
  CHECK(given.notes.empty());
  auto const servers = with("train", {"--num_ps_pods=2"});
  CHECK(commanded(servers, "--distribution_strategy=ParameterServerStrategy"));
  CHECK(servers.spec.num_servers == 2);
  auto const local = with("train", {"--distribution_strategy=Local"});
  CHECK(local.spec.num_workers == 1);
  CHECK(commanded(local, "--distribution_strategy=AllreduceStrategy"));
  CHECK(has(local.notes.at(0), "Local"));
}

TEST_CASE("the tutorials' command lines make the tutorials' pods") {
  SUBCASE("one node, parameter servers") {
    auto const s = published_line(minikube_ps);
    CHECK(s.spec.command ==
          words{"mnist_functional_api", "train", "--job_name=test-mnist",
                "--distribution_strategy=ParameterServerStrategy", "--num_workers=1", "--num_ps_pods=1",
                "--training_data=/data/mnist/train", "--validation_data=/data/mnist/test", "--num_epochs=2",
                "--minibatch_size=64", "--num_minibatches_per_task=2", "--evaluation_steps=50"});
    json const objects = objects_of(s.spec, "t");
    REQUIRE(objects.size() == 3);
    CHECK(objects[0]["kind"] == "Secret");
    CHECK(objects[1]["kind"] == "Service");
    json const& pod = objects[2];
    CHECK(pod["metadata"]["name"] == "elasticdl-test-mnist-master");
    json const& container = pod["spec"]["containers"][0];
    CHECK(container["image"] == "elasticdl:mnist_ps");
    CHECK(container["imagePullPolicy"] == "Never");
    CHECK(container["resources"]["requests"]["cpu"] == "0.2");
    CHECK(container["resources"]["limits"]["memory"] == "2048Mi");
    CHECK(container["command"] == json(s.spec.command));
    CHECK(container["volumeMounts"].dump().find("\"/data\"") != std::string::npos);
    CHECK(has(pod["spec"]["volumes"].dump(), "hostPath"));
    CHECK(s.spec.worker.limit.at("memory") == "2048Mi");
    CHECK_FALSE(s.build);
  }
  SUBCASE("one node, all-reduce") {
    auto const s = published_line(minikube_allreduce);
    CHECK(s.spec.num_servers == 0);
    CHECK(s.spec.num_workers == 2);
    CHECK(commanded(s, "--distribution_strategy=AllreduceStrategy"));
  }
  SUBCASE("a cloud, 2020: the image is built and pushed at submission") {
    auto const s = published_line(gke_2020);
    REQUIRE(s.build);
    CHECK(s.build->zoo == "model_zoo");
    CHECK(s.build->base == "elasticdl:ci");
    CHECK(s.build->push);
    CHECK(s.spec.image == "gcr.io/project_id/test-mnist:now");
    CHECK(s.spec.command[0] == "mnist_functional_api");
    CHECK(s.spec.master.priority == "high");
    CHECK(s.spec.worker.priority == "low");
    CHECK(s.spec.num_workers == 4);
    CHECK(s.spec.num_servers == 2);
    CHECK(s.spec.volumes.at(0).claim_name == "fileserver-claim");
  }
  SUBCASE("a cloud, 2019: the model is named by its directory") {
    auto const s = published_line(gke_2019);
    REQUIRE(s.build);
    CHECK(s.build->zoo == "elasticdl/python/examples");
    CHECK(s.spec.command[0] == "mnist_subclass");
    CHECK(s.spec.image == "gcr.io/project_id/low-prio-job:now");
    CHECK(commanded(s, "--training_data=mnist_data_dir/train"));
    CHECK(commanded(s, "--records_per_task=100"));
    CHECK(s.spec.worker.priority == "low-priority");
    CHECK(std::ranges::any_of(s.notes, [](std::string const& n) { return has(n, "--checkpoint_dir"); }));
  }
}

TEST_CASE("each command line that the tutorials print is taken as it is printed") {
  auto const folder = tool_test::shared("tutorials");
  if (folder.empty()) return;
  int lines = 0;
  for (auto const& file : std::filesystem::directory_iterator(folder)) {
    std::string const text = support::read(file.path().string());
    for (char const* program : {"elasticdl train", "elasticdl.client train"})
      for (auto at = text.find(program); at != text.npos; at = text.find(program, at + 1)) {
        auto end = at;
        do end = text.find('\n', end + 1);
        while (end != text.npos && text[end - 1] == '\\');
        CAPTURE(text.substr(at, end - at));
        CHECK_NOTHROW(published_line(text.substr(at, end - at)));
        ++lines;
      }
  }
  CHECK(lines == 7);
}

TEST_CASE("the model's definition names the program") {
  for (char const* def : {"m", "a.m.Symbol", "m.m.custom_model", "m.Symbol", "zoo/m", "zoo/m/", "./m",
                          "zoo/m.py", "m.py", "src/m.cpp"})
    CHECK(program_of(def) == "m");
  CHECK(has(refusal([] { program_of(""); }), "--model_def is needed"));
  CHECK(has(refusal([] { program_of("a b"); }), "--model_def=a b"));
  CHECK(has(refusal([] { program_of("..m"); }), "--model_def=..m"));
  CHECK(has(refusal([] { program_of("/"); }), "--model_def=/"));
  CHECK(has(refusal([] { program_of("x;rm"); }), "--model_def=x;rm"));
}

TEST_CASE("what cannot be ends in one line that says what to change") {
  struct bad {
    char const *word, *part;
  };
  for (auto const& [word, part] : std::vector<bad>{
           {"--minibach_size=3", "did you mean --minibatch_size?"},
           {"--worker_resource_requests=cpu=1", "did you mean --worker_resource_request?"},
           {"--minibatch_size=zero", "--minibatch_size"},
           {"--minibatch_size=0", "--minibatch_size"},
           {"--num_workers=-1", "--num_workers"},
           {"--num_workers=99999", "--num_workers"},
           {"--num_ps_pods=x", "--num_ps_pods"},
           {"--distribution_strategy=Ring", "Ring"},
           {"--log_level=LOUD", "LOUD"},
           {"--use_async=maybe", "--use_async"},
           {"--need_tf_config=maybe", "--need_tf_config=maybe: expected true or false"},
           {"--image_pull_policy=Sometimes",
            "--image_pull_policy=Sometimes: expected Always, IfNotPresent, Never"},
           {"--restart_policy=Perhaps", "--restart_policy=Perhaps"},
           {"--worker_resource_request=cpu=2x", "--worker_resource_request"},
           {"--worker_resource_request=cpu", "--worker_resource_request"},
           {"--worker_resource_request=cores=2", "cores"},
           {"--worker_resource_request=cpu=1,cpu=2", "cpu"},
           {"--worker_resource_request=memory=0Mi", "memory"},
           {"--worker_resource_limit=cpu=0.1", "limit"},
           {"--master_resource_request=memory=1Q", "--master_resource_request"},
           {"--ps_resource_limit=gpu=half", "--ps_resource_limit"},
           {"--volume=mount_path=/d", "--volume"},
           {"--volume=claim_name=c", "mount_path"},
           {"--volume=claim_name=c,host_path=/h,mount_path=/d", "--volume"},
           {"--volume=claim_name=c,mount_path=/d,size=3", "size"},
           {"--volume=claim_name=c,mount_path=d", "--volume"},
           {"--envs=novalue", "--envs"},
           {"--envs=EDL_ROLE=worker", "EDL_ROLE"},
           {"--populate_env_names=(", "--populate_env_names"},
           {"--worker_pod_priority=1.5", "--worker_pod_priority"},
           {"--worker_pod_priority=high=x", "--worker_pod_priority"},
           {"--worker_pod_priority=Not A Class", "--worker_pod_priority"},
           {"--master_pod_priority=Not_A_Class", "master_pod_priority"},
           {"--aux_params=relaunch=no", "--aux_params"},
           {"--aux_params=disable_relaunch=perhaps", "disable_relaunch"},
           {"--cluster_spec=/no/such/file", "--cluster_spec=/no/such/file"},
           {"--cluster_spec=/cluster_spec/spec.py", "Python"},
           {"--cluster_spec_json={", "--cluster_spec_json"},
           {"--cluster_spec_json=[1]", "--cluster_spec_json"},
           {R"(--cluster_spec_json={"podspec": {}})", "podspec"},
           {"--grace_seconds=-1", "--grace_seconds"},
           {"--start_timeout=soon", "--start_timeout"},
           {"--checkpoint_dir_for_init", "--checkpoint_dir_for_init needs a value"},
           {"--evaluation_steps=5", "--validation_data"},
           {"--dry_run=maybe", "--dry_run=maybe: expected client, server"},
           {"--file=/no/such.yaml", "--file=/no/such.yaml"},
           {"extra", "unexpected argument 'extra'"},
           {"--image_name=j:2", "--image_name is given twice"},
       }) {
    std::string const said = refused({word});
    CAPTURE(word);
    CAPTURE(said);
    CHECK(said != "accepted");
    CHECK(has(said, part));
    CHECK_FALSE(has(said, "\n"));
  }
  auto const lacks = [](words const& line) {
    return refusal([&] { read_submission("train", line, "now"); });
  };
  CHECK(has(lacks({"--image_name=i", "--model_def=m", "--training_data=d"}), "--job_name is needed"));
  CHECK(has(lacks({"--job_name=j", "--model_def=m", "--training_data=d"}), "--image_name is needed"));
  CHECK(has(lacks({"--job_name=j", "--image_name=i", "--training_data=d"}), "--model_def is needed"));
  CHECK(has(lacks({"--job_name=j", "--image_name=i", "--model_def=m"}), "--training_data"));
  CHECK(has(lacks({"--job_name=J_1", "--image_name=i", "--model_def=m", "--training_data=d"}),
            "--job_name=J_1"));
  CHECK(has(
      lacks({"--job_name=" + std::string(60, 'j'), "--image_name=i", "--model_def=m", "--training_data=d"}),
      "--job_name="));
  CHECK(has(
      refusal([] { read_submission("evaluate", {"--job_name=j", "--image_name=i", "--model_def=m"}, "n"); }),
      "--checkpoint_dir_for_init"));
  CHECK(has(refused({"--detach", "--follow"}), "--detach"));
  CHECK(has(refused({"--yaml=-", "--dry_run=client"}), "--yaml"));
}

TEST_CASE("flags may stand in a file; the command line wins") {
  support::scratch const dir;
  std::string const file = dir / "job.yaml";
  support::write(file,
                 "job_name: from-file\n"
                 "image_name: i:1\n"
                 "model_def: m\n"
                 "training_data_dir: /d\n"
                 "num_workers: 3\n"
                 "use_async: true\n"
                 "worker_resource_request: {cpu: 2, memory: 1Gi}\n"
                 "volume: ['claim_name=c,mount_path=/c', {host_path: /h, mount_path: /h}]\n"
                 "envs: {A: 1, B: two, C: 1.10, D: 0755, E: 1e3}\n"
                 "cluster_spec_json: {pod_spec: {labels: {team: x}}}\n");
  auto const s = read_submission("train", {"-f", file, "--num_workers=5"}, "now");
  CHECK(s.spec.name == "from-file");
  CHECK(s.spec.num_workers == 5);
  CHECK(commanded(s, "--use_async=true"));
  CHECK(commanded(s, "--training_data=/d"));
  CHECK(s.spec.worker.request == k8s::resources{{"cpu", "2"}, {"memory", "1Gi"}});
  CHECK(s.spec.volumes.size() == 2);
  CHECK(s.spec.variables ==
        edl::platform::environment{{"A", "1"}, {"B", "two"}, {"C", "1.10"}, {"D", "0755"}, {"E", "1e3"}});
  CHECK(has(s.spec.cluster_spec, "team"));

  auto const bad = [&](std::string const& content) {
    support::write(file, content);
    return refusal([&] { read_submission("train", {"-f", file}, "now"); });
  };
  CHECK(has(bad("num_worker: 3"), "did you mean --num_workers?"));
  CHECK(has(bad("num_worker: 3"), file));
  CHECK(has(bad("- a\n- b"), "name: value"));
  CHECK(has(bad("a: [1"), "line"));
  CHECK(has(bad("job_name: a\njob_name: b"), "twice"));
  CHECK(has(bad("file: other.yaml"), "no other file"));
  CHECK(has(bad("envs: {a: {b: c}}"), "nested"));
}

TEST_CASE("the cluster's changes to pods may be JSON or YAML") {
  support::scratch const dir;
  support::write(dir / "spec.yaml", "worker_pod_spec:\n  tolerations:\n    - {key: gpu, operator: Exists}\n");
  auto const s = with("train", {"--cluster_spec=" + (dir / "spec.yaml")});
  CHECK(json::parse(s.spec.cluster_spec)["worker_pod_spec"]["tolerations"][0]["key"] == "gpu");
  CHECK(has(refused({"--cluster_spec=" + (dir / "spec.yaml"), "--cluster_spec_json={}"}), "leave one out"));
}

}  // namespace submission_test

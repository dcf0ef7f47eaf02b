// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/job_spec.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "edl/core/error.hpp"

namespace job_spec_test {

using namespace edl::platform;
using namespace edl::kubernetes;
using edl::role;
using nlohmann::json;

namespace {

/// The one line that `what` ends in.
template <class F>
std::string refusal(F&& what) {
  try {
    what();
  } catch (edl::error const& e) {
    CHECK(std::string(e.what()).find('\n') == std::string::npos);
    return e.what();
  }
  return "(taken)";
}

job_spec small() {
  job_spec s;
  s.name = "test-mnist";
  s.image = "mnist:1";
  s.command = {"/mnist", "train", "--training_data=/data/mnist/train"};
  s.num_workers = 4;
  s.num_servers = 2;
  return s;
}

}  // namespace

TEST_CASE("resources are read by name") {
  struct {
    char const* text;
    resources expected;
  } const all[] = {
      {"", {}},
      {"cpu=0.2,memory=1024Mi", {{"cpu", "0.2"}, {"memory", "1024Mi"}}},
      {" cpu = 250m , memory = 32Mi ", {{"cpu", "250m"}, {"memory", "32Mi"}}},
      {"cpu=250m,memory=32Mi,disk=64Mi,gpu=1,ephemeral-storage=32Mi",
       {{"cpu", "250m"}, {"memory", "32Mi"}, {"ephemeral-storage", "64Mi"}, {"nvidia.com/gpu", "1"}}},
      {"disk=1Gi,ephemeral-storage=2Gi", {{"ephemeral-storage", "2Gi"}}},
      {"amd.com/gpu=2", {{"amd.com/gpu", "2"}}},
      {"gpu=0", {{"nvidia.com/gpu", "0"}}},
      {"nvidia.com/gpu=1", {{"nvidia.com/gpu", "1"}}},
      {"nvidia.com/mig-1g.5gb=3", {{"nvidia.com/mig-1g.5gb", "3"}}},
      {"cpu=1", {{"cpu", "1"}}},
      {"cpu=.5", {{"cpu", ".5"}}},
      {"cpu=1e1", {{"cpu", "1e1"}}},
      {"memory=7E", {{"memory", "7E"}}},
      {"memory=100000k", {{"memory", "100000k"}}},
      {"memory=1.5Gi", {{"memory", "1.5Gi"}}},
      {"memory=1e9", {{"memory", "1e9"}}},
      {"memory=1073741824", {{"memory", "1073741824"}}},
      {"memory=10000Ki", {{"memory", "10000Ki"}}}};
  for (auto const& [text, expected] : all) {
    CAPTURE(text);
    CHECK(parse_resources("--worker_resource_request", text) == expected);
  }
}

TEST_CASE("a resource that is none is quoted with what is expected") {
  struct {
    char const *text, *quote;
  } const all[] = {{"cpu", "'cpu': expected NAME=AMOUNT"},
                   {"cpu=", "'cpu=': expected NAME=AMOUNT"},
                   {"=1", "'=1': expected NAME=AMOUNT"},
                   {"cpu=1,", "'': expected NAME=AMOUNT"},
                   {"cpu=1;memory=1Gi", "cpu=1;memory=1Gi: expected processors"},
                   {"cpu=250a", "cpu=250a: expected processors"},
                   {"cpu=-1", "cpu=-1: expected processors"},
                   {"cpu=0m", "cpu=0m: expected processors"},
                   {"cpu=0.5m", "cpu=0.5m: expected processors"},
                   {"cpu=m", "cpu=m: expected processors"},
                   {"cpu=inf", "cpu=inf: expected processors"},
                   {"cpu=nan", "cpu=nan: expected processors"},
                   {"cpu=0x1", "cpu=0x1: expected processors"},
                   {"cpu=1e30", "cpu=1e30: '1e30' is more than any machine has"},
                   {"memory=4096", "memory=4096: '4096' is 4096 bytes, too little for a pod"},
                   {"memory=512m", "memory=512m: '512m' is 1 byte"},
                   {"memory=4096K", "memory=4096K: '4096K' is not an amount"},
                   {"memory=Mi", "memory=Mi: 'Mi' is not an amount"},
                   {"memory=0Mi", "memory=0Mi: expected a size"},
                   {"memory=-1Mi", "memory=-1Mi: '-1Mi' is not an amount"},
                   {"memory=1024mb", "memory=1024mb: '1024mb' is not an amount"},
                   {"memory=8Ei", "memory=8Ei: '8Ei' is more than any machine has"},
                   {"disk=64", "disk=64: '64' is 64 bytes, too little"},
                   {"ephemeral-storage=x", "ephemeral-storage=x: 'x' is not an amount"},
                   {"gpu=0.5", "gpu=0.5: expected a whole number"},
                   {"gpu=1@#", "gpu=1@#: expected a whole number"},
                   {"gpu=99999999999999999999", "gpu=99999999999999999999: expected a whole number"},
                   {"amd.com/gpu=half", "amd.com/gpu=half: expected a whole number"},
                   {"_amd/gpu=1", "_amd/gpu=1: is unknown"},
                   {"/gpu=1", "/gpu=1: is unknown"},
                   {"amd.com/npu=1", "amd.com/npu=1: is unknown"},
                   {"nvidia.com/=1", "nvidia.com/=1: is unknown"},
                   {"foo=1", "foo=1: is unknown"},
                   {"CPU=1", "CPU=1: is unknown"},
                   {"cpu=1,cpu=2", "cpu=2: is given twice"},
                   {"gpu=1,nvidia.com/gpu=1", "nvidia.com/gpu=1: is given twice"},
                   {"nvidia.com/gpu=1,gpu=1", "gpu=1: is given twice"},
                   {"disk=1Gi,disk=2Gi", "disk=2Gi: is given twice"}};
  for (auto const& [text, quote] : all) {
    CAPTURE(text);
    auto const why = refusal([&, t = text] { parse_resources("--ps_resource_limit", t); });
    CAPTURE(why);
    CHECK(why.find(std::string("--ps_resource_limit: ") + quote) == 0);
  }
}

TEST_CASE("a limit is the request where none is given, and gpus are always limited") {
  CHECK(limit_of({{"cpu", "1"}}, {}) == resources{{"cpu", "1"}});
  CHECK(limit_of({{"cpu", "1"}, {"memory", "1Gi"}}, {{"cpu", "2"}}) == resources{{"cpu", "2"}});
  CHECK(limit_of({{"nvidia.com/gpu", "1"}}, {{"cpu", "2"}}) ==
        resources{{"cpu", "2"}, {"nvidia.com/gpu", "1"}});
  CHECK(limit_of({{"nvidia.com/gpu", "1"}}, {{"nvidia.com/gpu", "2"}}) == resources{{"nvidia.com/gpu", "2"}});
}

TEST_CASE("volumes are claims and host paths, mounted once or more") {
  CHECK(parse_volumes("").empty());
  auto const v = parse_volumes(
      "host_path=/data,mount_path=/data,type=Directory;claim_name=c-1, mount_path=/out, "
      "sub_path=a/b,read_only=true;volume_name=data-volume,mount_path=/d,claim_name=fileserver-claim;");
  REQUIRE(v.size() == 3);
  CHECK(v[0].host_path == "/data");
  CHECK(v[0].mount_path == "/data");
  CHECK(v[0].type == "Directory");
  CHECK(v[0].claim_name.empty());
  CHECK_FALSE(v[0].read_only);
  CHECK(v[1].claim_name == "c-1");
  CHECK(v[1].sub_path == "a/b");
  CHECK(v[1].read_only);
  CHECK(v[2].claim_name == "fileserver-claim");

  struct {
    char const *text, *quote;
  } const bad[] = {
      {"mount_path=/data", "'mount_path=/data': expected one of host_path=PATH and claim_name"},
      {"host_path=/a,claim_name=b,mount_path=/c", "expected one of host_path=PATH and claim_name"},
      {"host_path=/a", "add mount_path=PATH"},
      {"host_path=a,mount_path=/c", "host_path=a: expected a path from the root"},
      {"host_path=/a/../b,mount_path=/c", "host_path=/a/../b: a path may contain neither"},
      {"host_path=/a,mount_path=c", "mount_path=c: expected a path from the root"},
      {"host_path=/a,mount_path=/c:d", "mount_path=/c:d: a path may contain neither"},
      {"host_path=/a,mount_path=/c,type=directory", "type=directory: expected Directory"},
      {"claim_name=a,mount_path=/c,type=Directory", "type= is only for a host_path"},
      {"claim_name=A_b,mount_path=/c", "claim_name=A_b: no claim has such a name"},
      {"claim_name=a,mount_path=/c,sub_path=/d", "sub_path=/d: expected a path inside"},
      {"claim_name=a,mount_path=/c,sub_path=d/..", "sub_path=d/..: expected a path inside"},
      {"claim_name=a,mount_path=/c,read_only=yes", "read_only=yes: expected true or false"},
      {"claim_name=a,mount_path=/c,mountpath=/d", "mountpath=/d: is unknown"},
      {"claim_name=a,mount_path=/c,claim_name=b,mount_path=/d", "claim_name=b: is given twice; separate"},
      {"claim_name=a,mount_path=/c;claim_name=b,mount_path=/c", "mount_path=/c: is given twice"},
      {"/data", "'/data': expected host_path=PATH"}};
  for (auto const& [text, quote] : bad) {
    CAPTURE(text);
    auto const why = refusal([&, t = text] { parse_volumes(t); });
    CAPTURE(why);
    CHECK(why.find("--volume: ") == 0);
    CHECK(why.find(quote) != std::string::npos);
  }
}

TEST_CASE("a comma inside of a variable's value stays with it") {
  struct {
    char const* text;
    edl::platform::environment expected;
  } const all[] = {{"", {}},
                   {"a=1,b=hello", {{"a", "1"}, {"b", "hello"}}},
                   {"k1=v1,v2,k2=v3,v4", {{"k1", "v1,v2"}, {"k2", "v3,v4"}}},
                   {"k1=,k2=b", {{"k1", ""}, {"k2", "b"}}},
                   {"A=x=y", {{"A", "x=y"}}},
                   {"A=1,,B=2", {{"A", "1,"}, {"B", "2"}}},
                   {"A=1,", {{"A", "1,"}}},
                   {"A=1, B=2", {{"A", "1"}, {"B", "2"}}},
                   {"URL=http://h/?a=1,2&b=3,D=4", {{"URL", "http://h/?a=1,2&b=3"}, {"D", "4"}}},
                   {"A=1,2x=3", {{"A", "1,2x=3"}}}};
  for (auto const& [text, expected] : all) {
    CAPTURE(text);
    CHECK(parse_environment("--envs", text) == expected);
  }
  CHECK(refusal([] {
          parse_environment("--envs", "nothing");
        }).find("--envs: 'nothing': expected NAME=VALUE") == 0);
  CHECK(refusal([] { parse_environment("--envs", "=1"); }).find("--envs: '=1': expected NAME=VALUE") == 0);
  CHECK(refusal([] { parse_environment("--envs", "a b=1"); }).find("--envs: 'a b=1': expected") == 0);
  CHECK(refusal([] { parse_environment("--envs", "A=1,B=2,A=3"); }) == "--envs: A is given twice");
}

TEST_CASE("the master's variables go to the others by an expression that matches the whole name") {
  edl::platform::environment const mine{
      {"PATH", "/bin"}, {"NCCL_DEBUG", "INFO"}, {"X_NCCL_", "1"}, {"EDL_JOB_TOKEN", "secret"}};
  CHECK(populated("", mine).empty());
  CHECK(populated("NCCL_.*", mine) == environment{{"NCCL_DEBUG", "INFO"}});
  CHECK(populated(".*", mine) == environment{{"PATH", "/bin"}, {"NCCL_DEBUG", "INFO"}, {"X_NCCL_", "1"}});
  CHECK(refusal([&] {
          populated("NCCL_(", mine);
        }).find("--populate_env_names=NCCL_(: is not a regular expr") == 0);
}

TEST_CASE("a share of the workers has the high priority") {
  auto const high = [](char const* value, std::uint32_t n) {
    std::set<std::uint32_t> ids;
    for (std::uint32_t id = 0; id < n; ++id) {
      auto const c = worker_priority(value, id, n);
      CHECK((c == "high" || c == "low"));
      if (c == "high") ids.insert(id);
    }
    return ids;
  };
  using ids = std::set<std::uint32_t>;
  CHECK(high("0.5", 10) == ids{0, 1, 2, 8, 9});
  CHECK(high("0.5", 1) == ids{0});
  CHECK(high("0.5", 3) == ids{0, 2});
  CHECK(high("0", 4) == ids{});
  CHECK(high("1", 4) == ids{0, 1, 2, 3});
  CHECK(high("1.0", 5) == ids{0, 1, 2, 3, 4});
  CHECK(high(".1", 10) == ids{0});
  CHECK(high("0.07", 100) == ids{0, 1, 2, 3, 99, 98, 97});
  CHECK(high("high=0.5", 10) == ids{0, 1, 2, 3, 4});
  CHECK(high("high=0.5", 3) == ids{0});
  CHECK(high("high=0.5", 1) == ids{});
  CHECK(high("high=1", 2) == ids{0, 1});
  CHECK(high("high=0.29", 100).size() == 29);
  CHECK(worker_priority("0.5", 4, 4) == "low");
  CHECK(worker_priority("1", 4, 4) == "low");
  CHECK(worker_priority("0.5", 0, 0) == "low");
}

TEST_CASE("any other priority is a class's name") {
  for (char const* name : {"high", "low", "high-priority", "system-node-critical", "team.a", "1st"}) {
    CAPTURE(name);
    CHECK(worker_priority(name, 1, 4) == name);
  }
  CHECK(worker_priority("", 1, 4) == "");
  for (char const* bad :
       {"1.5", "-0.5", "+2", "high=", "high=x", "high=1.5", "high=-1", "low=0.5", "50%", "High", "a b"}) {
    CAPTURE(bad);
    CHECK(refusal([&] {
            worker_priority(bad, 0, 4);
          }).find(std::string("--worker_pod_priority=") + bad + ": expected high, low, a share") == 0);
  }
}

TEST_CASE("pods are named as the tutorials name them") {
  CHECK(pod_name("test-mnist", {role::master, 0}) == "elasticdl-test-mnist-master");
  CHECK(pod_name("test-mnist", {role::server, 1}) == "elasticdl-test-mnist-ps-1");
  CHECK(pod_name("test-mnist", {role::worker, 4}) == "elasticdl-test-mnist-worker-4");
  CHECK(job_selector("test-mnist") == "elasticdl-job-name=test-mnist");
  std::string const longest(longest_job_name, 'x');
  CHECK(pod_name(longest, {role::worker, 99'999}).size() == 63);
}

TEST_CASE("a job comes back from its JSON as it was") {
  job_spec s = small();
  CHECK(to_json(job_spec{}) == "{}");
  CHECK(json::parse(to_json(s)).size() == 5);
  s.space = "team-a";
  s.worker_image = "mnist:gpu";
  s.master = {{{"cpu", "0.1"}}, {}, "high"};
  s.server = {{{"cpu", "1"}}, {{"cpu", "2"}, {"memory", "1Gi"}}, "high"};
  s.worker = {{{"nvidia.com/gpu", "1"}}, {}, "high=0.5"};
  s.image_pull_policy = "IfNotPresent";
  s.restart_policy = "OnFailure";
  s.image_pull_secrets = {"registry", "other"};
  s.service_account = "edl";
  s.volumes = parse_volumes(
      "host_path=/data,type=Directory,mount_path=/d;claim_name=c,mount_path=/e,sub_path=f,read_only=true");
  s.variables = {{"Z", "1,2"}, {"A", "$(MY_POD_IP) $$ \"quoted\" \xc3\xa4"}, {"EMPTY", ""}};
  s.populate_env_names = "NCCL_.*";
  s.cluster_spec = R"({"pod_spec": {"labels": {"a": "b"}}})";
  s.relaunch = false;
  s.grace_seconds = 0;
  auto const text = to_json(s);
  job_spec const back = job_from_json(text);
  CHECK(to_json(back) == text);
  CHECK(back.name == s.name);
  CHECK(back.space == s.space);
  CHECK(back.image == s.image);
  CHECK(back.worker_image == s.worker_image);
  CHECK(back.command == s.command);
  CHECK(back.num_workers == s.num_workers);
  CHECK(back.num_servers == s.num_servers);
  CHECK(back.master.request == s.master.request);
  CHECK(back.master.limit == s.master.request);
  CHECK(back.master.priority == s.master.priority);
  CHECK(back.server.limit == s.server.limit);
  CHECK(back.worker.priority == s.worker.priority);
  CHECK(back.image_pull_policy == s.image_pull_policy);
  CHECK(back.restart_policy == s.restart_policy);
  CHECK(back.image_pull_secrets == s.image_pull_secrets);
  CHECK(back.service_account == s.service_account);
  REQUIRE(back.volumes.size() == 2);
  CHECK(back.volumes[0].host_path == "/data");
  CHECK(back.volumes[0].type == "Directory");
  CHECK(back.volumes[1].claim_name == "c");
  CHECK(back.volumes[1].sub_path == "f");
  CHECK(back.volumes[1].read_only);
  CHECK(back.variables == s.variables);
  CHECK(back.populate_env_names == s.populate_env_names);
  CHECK(back.cluster_spec == s.cluster_spec);
  CHECK_FALSE(back.relaunch);
  CHECK(back.grace_seconds == 0);
}

TEST_CASE("a job keeps whose it is and how its pods are made") {
  job_spec s = small();
  s.by = {"mnist", "0123", "elasticdl.org/v1alpha1", "TrainingJob"};
  s.secret = "elasticdl-mnist-0123";
  s.initial_workers = 2;
  s.server_template = R"({"spec":{"containers":[{"image":"a","name":"ps"}]}})";
  s.worker_template = R"({"spec":{"containers":[{"image":"b","name":"worker"}]}})";
  auto const text = to_json(s);
  CHECK(json::parse(text)["worker_template"].is_object());
  job_spec const back = job_from_json(text);
  CHECK(to_json(back) == text);
  CHECK(back.by.name == "mnist");
  CHECK(back.by.uid == "0123");
  CHECK(back.by.api_version == "elasticdl.org/v1alpha1");
  CHECK(back.by.kind == "TrainingJob");
  CHECK(back.secret == s.secret);
  CHECK(back.initial_workers == 2);
  CHECK(back.server_template == s.server_template);
  CHECK(back.worker_template == s.worker_template);
}

TEST_CASE("limits that are not said are there once a job has been read") {
  job_spec const s =
      job_from_json(R"({"ps": {"request": {"memory": "1Gi"}}, "worker": {"limit": {"cpu": "2"}}})");
  CHECK(s.server.limit == resources{{"memory", "1Gi"}});
  CHECK(s.worker.limit == resources{{"cpu", "2"}});
  CHECK(s.worker.request.empty());
  CHECK(s.master.limit.empty());
}

TEST_CASE("what is no job is refused") {
  for (char const* bad : {"",
                          "{",
                          "[]",
                          "null",
                          R"({"job_name": 1})",
                          R"({"command": "x"})",
                          R"({"command": [1]})",
                          R"({"num_workers": -1})",
                          R"({"num_workers": 1.5})",
                          R"({"num_workers": 4294967296})",
                          R"({"num_ps_pods": "2"})",
                          R"({"master": []})",
                          R"({"ps": {"request": {"cpu": 1}}})",
                          R"({"ps": {"limits": {}}})",
                          R"({"volumes": [{"mount": "/x"}]})",
                          R"({"volumes": {}})",
                          R"({"envs": {"a": "b"}})",
                          R"({"envs": [["a"]]})",
                          R"({"relaunch": "true"})",
                          R"({"owner": {"name": "a", "kind": "TrainingJob"}})",
                          R"({"owner": {"name": "a", "uid": 1}})",
                          R"({"owner": "mnist"})",
                          R"({"secret": 1})",
                          R"({"initial_workers": "2"})",
                          R"({"ps_template": "{}"})",
                          R"({"worker_template": []})",
                          R"({"priority": "high"})"}) {
    CAPTURE(bad);
    CHECK(refusal([&] { job_from_json(bad); }).find("this is not a job: ") == 0);
  }
  CHECK(refusal([] { job_from_json(std::string(2 << 20, ' ')); }).find("this is not a job: 2097152 bytes") ==
        0);
  CHECK(refusal([] {
          job_from_json(R"({"new_flag": 1})");
        }).find("'new_flag' is unknown here: build the image") != std::string::npos);
  job_spec s = small();
  s.command.push_back("--output=\xff\xfe");
  CHECK(refusal([&] { to_json(s); }).find("not UTF-8") != std::string::npos);
}

TEST_CASE("a job that no server would take is refused with what to change") {
  check(small());
  struct {
    std::function<void(job_spec&)> change;
    char const* why;
  } const all[] = {
      {[](job_spec& s) { s.name = ""; }, "--job_name is missing: give the job a name"},
      {[](job_spec& s) { s.name = "Test_mnist"; }, "--job_name=Test_mnist: expected lower case letters"},
      {[](job_spec& s) { s.name = "a.b"; }, "--job_name=a.b: expected"},
      {[](job_spec& s) { s.name = "a-"; }, "--job_name=a-: expected"},
      {[](job_spec& s) { s.name = std::string(41, 'a'); },
       "--job_name=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: has 41 characters; its pods' names have room "
       "for 40"},
      {[](job_spec& s) { s.space = "Team"; }, "--namespace=Team: expected"},
      {[](job_spec& s) { s.image = ""; }, "--image_name is missing: name the image"},
      {[](job_spec& s) { s.image = "a b"; }, "--image_name=a b: an image's name has no spaces"},
      {[](job_spec& s) { s.worker_image = "a\nb"; }, "--worker_image=a?b: an image's"},
      {[](job_spec& s) { s.command = {}; }, "--model_def is missing"},
      {[](job_spec& s) { s.image_pull_policy = "always"; },
       "--image_pull_policy=always: expected Always or IfNotPresent or Never"},
      {[](job_spec& s) { s.restart_policy = "Sometimes"; },
       "--restart_policy=Sometimes: expected Never or OnFailure or Always"},
      {[](job_spec& s) { s.image_pull_secrets = {"A"}; }, "--image_pull_secrets=A: expected"},
      {[](job_spec& s) { s.service_account = "a b"; }, "--service_account=a b: expected"},
      {[](job_spec& s) { s.grace_seconds = 86'401; }, "--grace_seconds=86401: expected at most"},
      {[](job_spec& s) { s.worker = {{{"memory", "2Gi"}}, {{"memory", "1024Mi"}}, ""}; },
       "--worker_resource_limit: memory=1024Mi is less than the 2Gi of --worker_resource_request"},
      {[](job_spec& s) { s.server = {{{"cpu", "1"}}, {{"cpu", "900m"}}, ""}; },
       "--ps_resource_limit: cpu=900m is less than the 1 of --ps_resource_request"},
      {[](job_spec& s) { s.master = {{{"nvidia.com/gpu", "1"}}, {{"nvidia.com/gpu", "2"}}, ""}; },
       "--master_resource_limit: nvidia.com/gpu=2 is not the 1 of"},
      {[](job_spec& s) {
         s.master.priority = "0.5";
         s.server.priority = "High";
       },
       "--ps_pod_priority=High: expected"},
      {[](job_spec& s) { s.worker.priority = "1.5"; }, "--worker_pod_priority=1.5: expected"},
      {[](job_spec& s) { s.variables = {{"a b", "1"}}; }, "--envs=a b: expected"},
      {[](job_spec& s) { s.variables = {{"EDL_ROLE", "ps"}}; }, "--envs=EDL_ROLE: is set by the job itself"},
      {[](job_spec& s) { s.populate_env_names = "*"; }, "--populate_env_names=*: is not a regular"},
      {[](job_spec& s) { s.cluster_spec = "{"; }, "--cluster_spec: is not JSON"},
      {[](job_spec& s) { s.command.emplace_back(200'000, 'x'); }, "the description of the job has "}};
  for (auto const& [change, why] : all) {
    job_spec s = small();
    change(s);
    auto const said = refusal([&] { check(s); });
    CAPTURE(why);
    CAPTURE(said);
    CHECK(said.find(why) == 0);
  }
}

}  // namespace job_spec_test

// SPDX-License-Identifier: Apache-2.0
// Jobs whose pods another object owns, as a TrainingJob's controller makes them: masters come and go.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "cluster_job.hpp"
#include "edl/cluster/kubernetes/objects.hpp"

namespace owned_test {

using namespace cluster_job;
namespace k8s = edl::kubernetes;

namespace {

struct shape {
  bool replicas = false;
  std::uint32_t workers = 2;
  int epochs = 6, slow = 500;  // microseconds for each record
  bool checkpoints = false;
  std::vector<std::string> more = {};
};

class owned_job : public laboratory {
 public:
  explicit owned_job(shape s) : shape_(std::move(s)) {
    // Any object can own others: what it is makes no difference to the job.
    json const by =
        cluster.post(space + "configmaps",
                     {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "j-owner"}}}});
    spec_.name = "j";
    spec_.by = {"j-owner", by.at("metadata").at("uid"), "v1", "ConfigMap"};
    spec_.secret = k8s::secret_name(spec_.by);
    spec_.num_workers = 8;
    spec_.initial_workers = shape_.workers;
    spec_.num_servers = shape_.replicas ? 0 : 2;
    spec_.command = {"tiny",
                     "train",
                     "--training_data=/data/train",
                     "--minibatch_size=32",
                     "--num_minibatches_per_task=4",
                     "--num_workers=8",
                     "--num_epochs=" + std::to_string(shape_.epochs)};
    auto const add = [&](std::string flag) { spec_.command.push_back(std::move(flag)); };
    add(shape_.replicas ? "--distribution_strategy=AllreduceStrategy"
                        : "--distribution_strategy=ParameterServerStrategy");
    if (!shape_.replicas) add("--num_ps_pods=2");
    if (shape_.checkpoints) add("--checkpoint_dir=/kept/checkpoints");
    for (std::string const& flag : shape_.more) add(flag);
    spec_.server_template = spec_.worker_template = like().dump();
    k8s::check(spec_);
    made(cluster.post(space + "secrets", k8s::token_secret(spec_, "0123456789abcdef0123456789abcdef")));
    made(cluster.post(space + "services", k8s::master_service(spec_)));
    begin();
  }

  /// A master, as the controller makes one.
  void begin() { made(cluster.post(space + "pods", k8s::master_pod(spec_, like()))); }

  void annotate(json const& annotations) {
    made(cluster.call("PATCH", master, {{"metadata", {{"annotations", annotations}}}}));
  }

  /// The master's pod is deleted; `at_once`: as one whose node is lost.
  void lose_master(bool at_once) {
    cluster.call("DELETE", master, at_once ? json{{"gracePeriodSeconds", 0}} : json::object());
    REQUIRE(cluster.wait([&] { return !pods().contains("master"); }, 20s));
  }

  /// The processes of members that run.
  std::map<std::string, std::vector<pid_t>> members() {
    std::map<std::string, std::vector<pid_t>> all;
    for (auto const& [name, phase] : pods())
      if (name != "master" && phase == "Running")
        all[name] = cluster.processes("default", "elasticdl-j-" + name);
    return all;
  }

  bool trains() {
    bool all = true;
    for (std::uint32_t id = 0; id < shape_.workers; ++id)
      all &= says("worker-" + std::to_string(id), "Loss = ");
    return all;
  }

  int exit_code() {
    return pod("elasticdl-j-master")
        .value("/status/containerStatuses/0/state/terminated/exitCode"_json_pointer, -1);
  }

  /// What the pods of a suspended job are for: nothing.
  void remove_pods() {
    for (auto const& [name, phase] : pods())
      cluster.call("DELETE", space + "pods/elasticdl-j-" + name, {{"gracePeriodSeconds", 0}});
    REQUIRE(cluster.wait([&] { return pods().empty(); }, 20s));
  }

  std::string checkpoints() const { return kept_ / "checkpoints"; }

  answer audit() {
    job::run command({"audit", checkpoints()}, {.program = EDL_TINY});
    int const code = command.wait(60s);
    return {code, command.log()};
  }

 private:
  inline static std::string const space = "/api/v1/namespaces/default/",
                                  master = space + "pods/elasticdl-j-master";

  static void made(json const& answer) {
    INFO(answer.dump(1));
    REQUIRE(answer.value("kind", "") != "Status");
  }

  json like() const {
    json const mounts = {{{"name", "data"}, {"mountPath", "/data"}},
                         {{"name", "kept"}, {"mountPath", "/kept"}}};
    json const volumes = {
        {{"name", "data"},
         {"hostPath", {{"path", std::filesystem::path(job::data().training).parent_path().string()}}}},
        {{"name", "kept"}, {"hostPath", {{"path", kept_ / ""}}}}};
    return {{"spec",
             {{"volumes", volumes},
              {"containers",
               {{{"name", "train"},
                 {"image", "tiny:1"},
                 {"imagePullPolicy", "Never"},
                 {"volumeMounts", mounts},
                 {"env", {{{"name", "TINY_DELAY_US"}, {"value", std::to_string(shape_.slow)}}}}}}}}}};
  }

  shape shape_;
  job::scratch kept_;
  k8s::job_spec spec_;
};

bool replicas_or_servers() {
  bool replicas = false;
  SUBCASE("with servers") { replicas = false; }
  SUBCASE("all-reduce") { replicas = true; }
  return replicas;
}

}  // namespace

TEST_CASE(
    "a master whose node is lost, or that is drained: the next goes on with the members that it finds") {
  bool at_once = false;
  SUBCASE("lost") { at_once = true; }
  SUBCASE("drained") { at_once = false; }
  CAPTURE(at_once);
  owned_job it({.replicas = replicas_or_servers()});
  REQUIRE(it.trains());
  auto const before = it.members();
  CHECK(before.size() >= 2);
  it.lose_master(at_once);
  CHECK(it.members() == before);
  it.begin();
  CHECK(it.says("master", "this master has no journal: it goes on with 2 workers"));
  CHECK(job::eventually(
      [&] {
        return job::has(it.log("master"), "Going on at version") ||
               job::has(it.log("master"), ": 2 workers (");
      },
      60s));
  CHECK(it.members() == before);
  it.check_exact(6);
  CHECK_FALSE(job::has(it.log("master"), "Going back"));
  std::string names;
  for (auto const& [name, phase] : it.pods()) names += name + " ";
  CHECK(names == (before.size() == 2 ? "master worker-0 worker-1 " : "master ps-0 ps-1 worker-0 worker-1 "));
}

namespace {

/// What a master of another machine, which does not see that it was replaced, goes on to write.
class distant_holder {
 public:
  explicit distant_holder(std::string const& directory)
      : fd_(::open((directory + "/.edl-lock").c_str(), O_WRONLY | O_CLOEXEC)), beats_([this](auto stop) {
          for (int beat = 0; !stop.stop_requested(); ++beat) {
            write(fmt::format(R"({{"job":"j","process":7,"host":"far","since":"then","owner":"0123",)"
                              R"("machine":"another","beat":{}}})",
                              beat));
            std::this_thread::sleep_for(20ms);
          }
        }) {
    REQUIRE(fd_ >= 0);
  }
  ~distant_holder() {
    beats_.request_stop();
    beats_.join();
    write("");
    ::close(fd_);
  }
  distant_holder(distant_holder const&) = delete;

 private:
  void write(std::string text) const {
    text.resize(1024, ' ');
    CHECK(::pwrite(fd_, text.data(), text.size(), 0) == 1024);
  }

  int fd_;
  std::jthread beats_;
};

}  // namespace

TEST_CASE("a master waits for the directory of one that its node still runs, and no member notices") {
  owned_job it({.epochs = 12, .checkpoints = true});
  REQUIRE(it.trains());
  auto const before = it.members();
  it.lose_master(true);
  {
    distant_holder const last(it.checkpoints());
    it.begin();
    CHECK(it.says("master", "is in use by job 'j' (process 7 on far"));
    CHECK(it.says("master", "it may be the previous master of this job"));
  }
  CHECK(it.says("master", "this master has no journal: it goes on with 2 workers"));
  CHECK(it.members() == before);
  it.check_exact(12);
}

TEST_CASE("a suspended job goes on where it was") {
  owned_job it({.replicas = replicas_or_servers(), .checkpoints = true});
  REQUIRE(it.trains());
  it.annotate({{"elasticdl/suspend", "true"}});
  REQUIRE(it.cluster.wait([&] { return it.exit_code() == 79; }, 60s));
  INFO(it.log("master"));
  CHECK(job::has(it.log("master"), "job 'j' is suspended; the same command goes on from "));
  CHECK(job::eventually([&] { return it.members().empty(); }, 20s));
  CHECK(it.pod("elasticdl-j-master")["metadata"]["labels"]["status"] == "Suspended");
  auto const half = it.audit();
  INFO(half.text);
  CHECK(half.code == 0);
  it.remove_pods();
  it.begin();
  CHECK(it.says("master", "going on from "));
  it.check_exact(6);
  auto const whole = it.audit();
  INFO(whole.text);
  CHECK(whole.code == 0);
}

TEST_CASE("a job without checkpoints that is suspended says that it begins anew") {
  owned_job it({.replicas = true});
  REQUIRE(it.trains());
  it.annotate({{"elasticdl/suspend", "true"}});
  REQUIRE(it.cluster.wait([&] { return it.exit_code() == 79; }, 60s));
  CHECK(job::has(it.log("master"), "nothing was kept, because --checkpoint_dir is not given"));
}

TEST_CASE("a job is suspended whatever its masters live to see of it") {
  owned_job it({.replicas = replicas_or_servers(), .checkpoints = true});
  REQUIRE(it.trains());
  it.lose_master(true);
  it.begin();
  it.annotate({{"elasticdl/suspend", "true"}});  // before it knows who runs
  REQUIRE(it.cluster.wait([&] { return it.exit_code() == 79; }, 90s));
  INFO(it.log("master"));
  CHECK(job::has(it.log("master"), "the same command goes on from "));
  it.remove_pods();
  it.begin();
  it.check_exact(6);
}

TEST_CASE("workers that are named leave first, and programs are told how the job does") {
  owned_job it({.replicas = true, .workers = 3, .epochs = 60});
  REQUIRE(it.trains());
  auto before = it.members();
  it.annotate({{"elasticdl/num-workers", "2"}, {"elasticdl/leave", "0"}});
  CHECK(it.cluster.wait([&] { return !it.members().contains("worker-0"); }, 30s));
  before.erase("worker-0");
  CHECK(it.members() == before);
  auto const annotations = [&] { return it.pod("elasticdl-j-master")["metadata"]["annotations"]; };
  CHECK(it.cluster.wait([&] { return annotations().value("elasticdl/scaled", "") == "workers=2,servers="; }));
  CHECK_FALSE(annotations().contains("elasticdl/leave"));
  CHECK(annotations().value("elasticdl/size", "") == "workers=2,servers=0");
  json report;
  CHECK(it.cluster.wait(
      [&] {
        report = json::parse(annotations().value("elasticdl/report", "{}"));
        return report.value("workers", 0) == 2 && !report.value("speeds", json::array()).empty();
      },
      60s));
  INFO(report.dump());
  CHECK(report["speeds"].back()[1].get<double>() > 0);
  CHECK(report["total_records"] == 60 * job::data_set::records);
  CHECK(report["standstill_s"].get<double>() > 0);
  it.check_exact(60);
  report = json::parse(annotations().value("elasticdl/report", "{}"));
  CHECK(report["records"] == report["total_records"]);  // its last word
}

}  // namespace owned_test

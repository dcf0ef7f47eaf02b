// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/job.hpp"
#include "kubernetes/double.hpp"

/// Jobs in a cluster: the `edl` command submits them to a double of the API server, whose pods are real
/// processes of the small model.
namespace cluster_job {

namespace lab = edl::testing::kubernetes;
using namespace std::chrono_literals;
using nlohmann::json;

/// Where TrainingJobs lie.
inline std::string const jobs = "/apis/elasticdl.org/v1alpha1/namespaces/default/trainingjobs";

inline lab::options usual() {
  return {.images = {{"tiny:1", {.programs = {{"tiny", EDL_TINY}}, .entrypoint = {}}}}};
}

/// Microseconds for each record, until `check_exact` releases the job; ten times as many after the first
/// thousand of each process: long enough to act on a busy machine.
constexpr int held = 3000;

/// What the command says and how it ends.
struct answer {
  int code = -1;
  std::string text;
};

class laboratory {
 public:
  explicit laboratory(lab::options o = usual()) : cluster(std::move(o)) { std::filesystem::remove(gate()); }

  lab::cluster cluster;

  answer edl(std::vector<std::string> const& line, std::chrono::milliseconds limit = 60s) {
    job::run command(line, {.env = {{"KUBECONFIG", cluster.kubeconfig()}}, .program = EDL_TOOL});
    int const code = command.wait(limit);
    return {code, command.log()};
  }

  /// `edl train` on the common records, as job `j`; `slow`: microseconds for each record until the job is
  /// released.
  answer train(std::vector<std::string> const& more, int slow = 0) {
    std::vector<std::string> line{
        "train",
        "--job_name=j",
        "--image_name=tiny:1",
        "--model_def=tiny",
        "--image_pull_policy=Never",
        "--training_data=/data/train",
        "--minibatch_size=32",
        "--num_minibatches_per_task=4",
        "--volume=host_path=" + std::filesystem::path(job::data().training).parent_path().string() +
            ",mount_path=/data",
        "--envs=TINY_GATE=/data/gate,TINY_SLOWER_AFTER=1000,TINY_DELAY_US=" + std::to_string(slow)};
    for (std::string const& one : more) {
      std::erase_if(line, [&](std::string const& usual) {
        return usual.starts_with("--") && usual.substr(0, usual.find('=')) == one.substr(0, one.find('='));
      });
      line.push_back(one);
    }
    return edl(line);
  }

  json pod(std::string const& name) { return cluster.get("/api/v1/namespaces/default/pods/" + name); }

  /// Of a TrainingJob.
  json status(std::string const& name) {
    return cluster.get(jobs + "/" + name).value("status", json::object());
  }
  int running(std::string const& name) { return status(name).value("/workers/running"_json_pointer, 0); }
  std::string phase(std::string const& name) { return status(name).value("phase", ""); }

  /// Names of the job's pods, without "elasticdl-j-", with their phases; "Terminating" for those that end.
  std::map<std::string, std::string> pods() {
    std::map<std::string, std::string> all;
    json const list = cluster.get("/api/v1/namespaces/default/pods?labelSelector=elasticdl-job-name=j");
    for (json const& p : list.at("items")) {
      std::string const name = p.at("metadata").at("name");
      bool const ending = p.at("metadata").contains("deletionTimestamp");
      all[name.substr(std::string("elasticdl-j-").size())] =
          ending ? "Terminating" : p.at("status").value("phase", "");
    }
    return all;
  }

  bool reaches(std::string const& pod, std::string const& phase, std::chrono::milliseconds limit = 60s) {
    bool there = false;
    cluster.wait(
        [&] {
          auto now = pods();
          there = now.contains(pod) && now.at(pod) == phase;
          return there || now["master"] == "Failed";
        },
        limit);
    return there;
  }

  std::string log(std::string const& pod) const { return cluster.log("default", "elasticdl-j-" + pod); }

  /// Whether a pod's log holds a text before the limit.
  bool says(std::string const& pod, std::string const& text, std::chrono::milliseconds limit = 60s) {
    job::eventually([&] { return job::has(log(pod), text) || pods()["master"] == "Failed"; }, limit);
    return job::has(log(pod), text);
  }

  /// Records take no time of their own from here on.
  static void release() { std::ofstream(gate()).put('\n'); }

  /// The job, released, ends well, with every record of so many epochs counted once.
  void check_exact(int epochs = 1) {
    release();
    INFO(log("master"));
    INFO(log("worker-0"));
    CHECK(reaches("master", "Succeeded", 120s));
    std::string const each = std::to_string(job::data_set::records);
    for (int e = 0; e < epochs; ++e)
      CHECK(job::accounts(log("master"), e, each + " records in the data set, " + each + " counted once"));
    CHECK(pod("elasticdl-j-master")["metadata"]["labels"]["status"] == "Finished");
  }

  /// Reasons of the Events that the master has written.
  std::vector<std::string> reasons() {
    std::vector<std::string> all;
    json const list = cluster.get("/api/v1/namespaces/default/events");
    for (json const& e : list.at("items"))
      if (e.value("/source/component"_json_pointer, "") == "edl-master") all.push_back(e.at("reason"));
    return all;
  }
  bool has_reason(std::string const& reason) {
    return job::eventually([&] { return std::ranges::count(reasons(), reason) > 0; }, 20s);
  }

 private:
  /// Beside the records, which every pod mounts.
  static std::filesystem::path gate() {
    return std::filesystem::path(job::data().training).parent_path() / "gate";
  }
};

}  // namespace cluster_job

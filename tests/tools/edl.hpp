// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/job.hpp"
#include "kubernetes/double.hpp"

/// The `edl` command as a user has it: a process that talks to a double of the API server, whose pods are
/// real processes of the small model.
namespace edl_command {

namespace lab = edl::testing::kubernetes;
using namespace std::chrono_literals;
using nlohmann::json;
using lines = std::vector<std::string>;

inline std::string const pods = "/api/v1/namespaces/default/pods";

inline lab::options usual() {
  return {.images = {{"tiny:1", {.programs = {{"tiny", EDL_TINY}}, .entrypoint = {}}}}};
}

struct answer {
  int code = -1;
  std::string text;  ///< both of its outputs
};

class shell {
 public:
  explicit shell(lab::options o = usual()) : cluster(std::move(o)) {}

  lab::cluster cluster;

  job::options with() const { return {.env = {{"KUBECONFIG", cluster.kubeconfig()}}, .program = EDL_TOOL}; }

  answer edl(lines const& line, std::chrono::milliseconds limit = 60s) const {
    job::run command(line, with());
    int const code = command.wait(limit);
    return {code, command.log()};
  }

  /// A command line that submits job `j` of the small model; `more` in the place of what is usual.
  static lines train(lines const& more = {}, int delay = 0) {
    std::string const data = std::filesystem::path(job::data().training).parent_path().string();
    lines line{"train"};
    for (std::string const& word :
         lines{"--job_name=j", "--image_name=tiny:1", "--model_def=tiny", "--image_pull_policy=Never",
               "--training_data=/data/train", "--minibatch_size=32", "--num_minibatches_per_task=4",
               "--num_workers=2", "--num_ps_pods=1", "--use_async",
               "--worker_resource_request=cpu=1,memory=128Mi", "--ps_resource_request=cpu=1,memory=128Mi",
               "--volume=host_path=" + data + ",mount_path=/data",
               "--envs=TINY_DELAY_US=" + std::to_string(delay)}) {
      auto const same = [&](std::string const& m) {
        return m.substr(0, m.find('=')) == word.substr(0, word.find('='));
      };
      if (std::ranges::none_of(more, same)) line.push_back(word);
    }
    line.insert(line.end(), more.begin(), more.end());
    return line;
  }

  /// The names of what is there of a kind.
  lines names(std::string const& kind) {
    lines all;
    json const list = cluster.get("/api/v1/namespaces/default/" + kind);
    for (json const& o : list.at("items")) all.push_back(o.at("metadata").at("name"));
    return all;
  }

  bool runs(std::string const& pod) {
    return cluster.wait(
        [&] { return cluster.get(pods + "/" + pod).value("/status/phase"_json_pointer, "") == "Running"; });
  }
};

}  // namespace edl_command

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster_jobs/cluster_job.hpp"

/// The `edl` command as a user has it. It is a process that talks to a double of the API server, whose pods
/// are real processes of the small model.
namespace edl_command {

namespace lab = edl::testing::kubernetes;
using namespace std::chrono_literals;
using cluster_job::usual;
using nlohmann::json;
using lines = std::vector<std::string>;

inline std::string const pods = "/api/v1/namespaces/default/pods";

struct shell : cluster_job::laboratory {
  using laboratory::laboratory;

  job::options with() const { return {.env = {{"KUBECONFIG", cluster.kubeconfig()}}, .program = EDL_TOOL}; }

  /// Submits job `j` with two workers and a server that ask for little; `more` in the place of what is usual.
  cluster_job::answer submit(lines more = {}, int slow = 0) {
    for (std::string const& word :
         lines{"--num_workers=2", "--num_ps_pods=1", "--use_async=true",
               "--worker_resource_request=cpu=1,memory=128Mi", "--ps_resource_request=cpu=1,memory=128Mi"}) {
      auto const same = [&](std::string const& m) {
        return m.substr(0, m.find('=')) == word.substr(0, word.find('='));
      };
      if (std::ranges::none_of(more, same)) more.push_back(word);
    }
    return train(more, slow);
  }

  /// The names of what is there of a kind.
  lines names(std::string const& kind) {
    lines all;
    json const list = cluster.get("/api/v1/namespaces/default/" + kind);
    for (json const& o : list.at("items")) all.push_back(o.at("metadata").at("name"));
    return all;
  }

  bool runs(std::string const& who) { return reaches(who, "Running"); }
};

}  // namespace edl_command

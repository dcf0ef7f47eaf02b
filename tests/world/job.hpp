// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "world/world.hpp"

namespace world {

/// A job whose roles are started as somebody by hand would: each on a host of its own, which is called as the
/// process ("master", "ps-0", "worker-1"). The job's directory is a volume that all share, "storage".
struct job {
  std::string name = "tally";
  std::string token = "0123456789abcdef0123456789abcdef";
  std::vector<std::string> flags;                  ///< of the command, which all roles get
  std::map<std::string, std::string> environment;  ///< of all roles
  int (*main)(int, char**);                        ///< the model's program

  /// "master", "ps", "worker". On a host that is up; the process before should have ended.
  pid start_role(std::string const& role, int id = 0) const {
    std::string const called = role == "master" ? role : role + "-" + std::to_string(id);
    program p{.name = called, .main = main, .arguments = {"tally", "train"}, .environment = environment};
    p.arguments.insert(p.arguments.end(), flags.begin(), flags.end());
    auto& e = p.environment;
    e["EDL_ROLE"] = role;
    e["EDL_JOB_NAME"] = name;
    e["EDL_JOB_TOKEN"] = token;
    e["MY_POD_IP"] = address_of(called);
    e["TZ"] = "UTC0";
    if (role == "master") {
      e["EDL_PORT"] = "7000";
      e["EDL_JOURNAL"] = "/storage/journal.json";
    } else {
      e["MASTER_ADDR"] = "master:7000";
      e[role == "ps" ? "PS_ID" : "WORKER_ID"] = std::to_string(id);
    }
    return start(std::move(p));
  }
};

}  // namespace world

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "edl/cluster/kubernetes/pods.hpp"

namespace driven_pods {

using namespace edl::platform;
using namespace edl::kubernetes;
using edl::process_id;
using edl::role;
using namespace std::chrono_literals;
using phase = pod_status::phase;

struct drive {
  pods all{{.job = "j",
            .server = {.request = {{"memory", "1Gi"}}, .limit = {{"memory", "1Gi"}}, .priority = {}},
            .worker = {
                .request = {{"cpu", "1"}, {"memory", "1Gi"}}, .limit = {{"memory", "2Gi"}}, .priority = {}}}};
  edl::time_point now{};
  int made = 0;

  template <class Command>
  std::vector<Command> take() {
    std::vector<Command> of;
    for (auto& c : all.take_commands())
      if (auto* one = std::get_if<Command>(&c)) of.push_back(std::move(*one));
    return of;
  }
  /// Asked for, made, and running.
  pod_status run(process_id who) {
    all.start(who, std::nullopt, now);
    return come_up(who);
  }
  pod_status come_up(process_id who) {
    pod_status s{.who = who, .index = who.id, .name = pod_name("j", who), .uid = fmt::format("u{}", made++)};
    all.created(who, s.uid);
    all.changed(s, now);
    s.at = phase::running;
    all.changed(s, now);
    return s;
  }
  void exit(pod_status& s, int code, std::string const& reason = "Error") {
    s.ended = {code, reason, {}};
    all.changed(s, now);
    s.at = code == 0 ? phase::succeeded : phase::failed;
    all.changed(s, now);
  }
};

inline process_id worker(std::uint32_t id) { return {role::worker, id}; }
inline process_id server(std::uint32_t id) { return {role::server, id}; }

pods::refusal const no_right{403, "Forbidden",
                             "pods is forbidden: User \"u\" cannot create resource \"pods\""};

}  // namespace driven_pods

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "edl/core/counted.hpp"
#include "edl/core/inline.hpp"
#include "edl/master/coordinator.hpp"

namespace edl::master {

EDL_INLINE std::string coordinator::scale(scale_request const& r, time_point now) {
  if (over()) return "the job is over";
  if (suspending_) return "the job is being suspended";
  if (r.workers && (*r.workers == 0 || *r.workers > most_workers))
    return fmt::format("--num_workers={}: expected 1 to {}", *r.workers, most_workers);
  if (r.servers && options_.num_servers == 0) return "--num_ps_pods: this job has no servers";
  if (r.servers && (*r.servers < options_.server_copies || *r.servers > generations_.ranges()))
    return fmt::format(
        "--num_ps_pods={}: expected {} to {}, the ranges that the variables were cut into at the start; "
        "start "
        "the job again with a larger --ps_ranges, and it goes on from its checkpoint",
        *r.servers, options_.server_copies, generations_.ranges());
  if (r.servers) scale_servers(*r.servers, now);
  if (r.workers) scale_workers(*r.workers, r.leave);
  return {};
}

EDL_INLINE void coordinator::scale_workers(std::uint32_t wanted, std::vector<std::uint32_t> const& leave) {
  std::size_t const before = worker_lines_.size();
  for (std::uint32_t const id : leave)
    if (worker_lines_.drop(id)) commands_.emplace_back(stop_process{role::worker, id});
  while (worker_lines_.size() < wanted)
    commands_.emplace_back(start_process{role::worker, worker_lines_.add()});
  while (worker_lines_.size() > wanted)
    commands_.emplace_back(stop_process{role::worker, worker_lines_.drop_newest()});
  worlds_.expect(wanted);
  say(severity::info, fmt::format("Scaling from {} to {}", before, counted(wanted, "worker")));
}

EDL_INLINE void coordinator::adopt(found_processes const& those, time_point now) {
  if (those.workers.empty() && those.servers.empty()) return;
  recovered_ = true;
  auto const lines = [&](lineages const& like, std::vector<std::uint32_t> const& ids, std::uint32_t next) {
    lineages::record r{.next = next, .lines = {}};
    for (std::uint32_t const id : ids) r.lines.push_back({id, 0, false});
    // Who does not come within the timeout is replaced.
    return lineages(like.of(), r, now + options_.adoption - like.of().grace);
  };
  if (!those.workers.empty()) {
    auto const newest = *std::ranges::max_element(those.workers);
    worker_lines_ = lines(worker_lines_, those.workers, std::max(those.next_worker, newest + 1));
    worlds_.expect(std::uint32_t(those.workers.size()));
    while (worker_lines_.size() < options_.num_workers) worker_lines_.add();
  }
  if (!those.servers.empty() && options_.num_servers > 0) {
    std::uint32_t const newest = *std::ranges::max_element(those.servers);
    generations_.want(std::min(std::max(options_.num_servers, newest + 1), generations_.ranges()));
    server_lines_ = lines(server_lines_, those.servers, 0);
    for (std::uint32_t id = 0; id < generations_.wanted(); ++id)
      if (std::ranges::find(those.servers, id) == those.servers.end()) server_lines_.joined(id);
  }
  say(severity::info,
      fmt::format("this master has no journal: it goes on with {} and {} that it finds running",
                  counted(those.workers.size(), "worker"), counted(those.servers.size(), "server")));
}

// Servers that go are sources of their ranges once more, and are stopped when all is elsewhere.
EDL_INLINE void coordinator::scale_servers(std::uint32_t wanted, time_point now) {
  say(severity::info, fmt::format("Scaling from {} to {}", generations_.wanted(), counted(wanted, "server")));
  bool const less = wanted < generations_.wanted();
  while (server_lines_.size() < wanted)
    commands_.emplace_back(start_process{role::server, server_lines_.add()});
  while (server_lines_.size() > wanted) server_lines_.drop_newest();
  generations_.want(wanted);
  if (less && phase_ != phase::forming) regroup_servers(now);
}

EDL_INLINE void coordinator::stop_spare_servers(time_point now) {
  for (std::uint32_t const id : servers_there())
    if (id >= generations_.wanted()) {
      say(severity::info, fmt::format("server {} is not needed any more", id));
      servers_.lose(id, servers_.find(id)->incarnation);
      server_lines_.lost(id, now);
      commands_.emplace_back(stop_process{role::server, id});
    }
}

}  // namespace edl::master

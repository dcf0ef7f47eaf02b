// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "edl/base/net/event.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/net/request.hpp"
#include "edl/core/clock.hpp"
#include "edl/job/master/server/decision_loop.hpp"
#include "edl/job/master/server/job_processes.hpp"
#include "edl/job/master/server/keeper_calls.hpp"
#include "edl/job/master/server/model_keepers.hpp"
#include "edl/job/master/server/server_options.hpp"

namespace edl::wire {
class Cluster;  // edl/base/wire/edl.pb.h
class ClusterRequest;
class CutOffRequest;
class Empty;
class Heartbeat;
class HeartbeatReply;
class JoinReply;
class JoinRequest;
class LeaveRequest;
class ScaleReply;
class ScaleRequest;
class Task;
class TaskReport;
class TaskReportReply;
class TaskRequest;
class VersionReport;
}  // namespace edl::wire

namespace edl::master {

/// Handles the requests of members and users: a function for each method of the protocol. Its arguments must
/// outlive it. Thread safety: only on the node's thread.
class handlers {
 public:
  handlers(net::node& on, server_options const& options, decision_loop& loop, model_keepers& keepers,
           keeper_calls& calls, job_processes& processes,
           std::function<void(std::uint32_t task, std::string const& worst)> inspected = {})
      : node_(on),
        options_(options),
        loop_(loop),
        coordinator_(loop.decisions()),
        keepers_(keepers),
        keeper_calls_(calls),
        processes_(processes),
        inspected_(std::move(inspected)),
        turns_(on.executor()) {}

  asio::awaitable<void> handle(net::request& r);

  /// Drops stored replies to workers that are gone.
  void forget_gone();

 private:
  template <class Request, class Reply>
  std::string answer(net::request& r, Reply (handlers::*how)(Request const&));
  /// A worker's repeated request gets the same reply.
  template <class Request, class Reply>
  std::string answer_once(net::request& r, Reply (handlers::*how)(Request const&));
  wire::JoinReply join(wire::JoinRequest const& m);
  wire::Cluster cluster(wire::ClusterRequest const& m);
  wire::HeartbeatReply heartbeat(wire::Heartbeat const& m);
  wire::Empty leave(wire::LeaveRequest const& m);
  wire::ScaleReply change_size(wire::ScaleRequest const& m);
  wire::Empty cut_off(wire::CutOffRequest const& m);
  wire::Task task(wire::TaskRequest const& m);
  wire::TaskReportReply report(wire::TaskReport const& m);
  wire::Empty version(wire::VersionReport const& m);
  asio::awaitable<std::string> enter(net::request& r);
  asio::awaitable<std::string> watch(net::request& r);
  asio::awaitable<void> take_probe(net::request& r);
  class early_entry;
  bool stranger(role of, std::uint32_t id, std::uint64_t incarnation) const;
  void hung_up(role of, std::uint32_t id, std::uint64_t incarnation, std::uint64_t call);
  static time_point now() { return clock::now(); }

  net::node& node_;
  server_options const& options_;
  decision_loop& loop_;
  coordinator& coordinator_;
  model_keepers& keepers_;
  keeper_calls& keeper_calls_;
  job_processes& processes_;
  std::function<void(std::uint32_t, std::string const&)> inspected_;
  std::map<process_id, std::uint64_t> calls_;   // number of watches so far
  time_point probed_until_{};                   // a member is measuring its machine until then
  net::event turns_;                            // its measurement is over
  std::map<std::uint32_t, net::event*> early_;  // of workers that asked to enter before they had joined
  struct numbered_answer {
    std::uint64_t incarnation = 0, number = 0;
    std::string text;
  };
  std::map<std::uint32_t, numbered_answer> answers_;  // by worker: its last request, which it may repeat
  struct {
    std::uint64_t number = 0;
    std::string text;
  } formed_;                                         // the reply that each member of the newest world gets
  std::set<std::array<std::uint64_t, 3>> versions_;  // reported versions: generation, version, purpose
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/server/handlers.ipp"
#endif

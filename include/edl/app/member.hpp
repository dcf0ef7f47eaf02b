// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "edl/app/master_absence.hpp"
#include "edl/base/net/address.hpp"
#include "edl/base/net/call.hpp"
#include "edl/base/net/channel.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/net/status.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/process_id.hpp"
#include "edl/job/worker/session.hpp"

namespace edl::app {

/// A worker's or a server's membership in a job: it joins, and tells the master once a second that it lives.
/// A master that is away is waited for: a successor joins it to the job again.
/// Thread safety: `join` and `watch` on one thread that is not the node's; the rest safe.
class member {
 public:
  /// `timeout`: how long a master may be away.
  member(net::node& on, net::channel& master, role what, std::uint32_t id,
         std::chrono::seconds timeout = std::chrono::seconds(900));
  member(member const&) = delete;
  member& operator=(member const&) = delete;

  /// Stops the node: nothing that it runs may outlive what it tells of.
  ~member() { node_.stop(); }

  /// `layout`: digest of the model's layout; `listening`: where servers are reached. False: the job has ended
  /// already, or has become smaller, which is logged. Throws error when the master does not take this
  /// process, worker::given_up when it has given it up already, and master_away when there is none in time.
  /// Throws worker::interrupted when `stopping`, which is asked meanwhile, is true.
  bool join(std::uint64_t layout, std::vector<net::address> const& listening,
            std::function<bool()> const& stopping = {});

  /// Where the heartbeats' numbers come from; `of` stays until the node is stopped.
  void watch(worker::progress const& of) { seen_ = &of; }

  /// The same for a server; `version` is called on the node's thread. Before `join`.
  void watch(std::function<std::uint64_t()> version) { version_ = std::move(version); }

  /// Keeps a call waiting at the master, which tells when the generation is another than `known`. It is
  /// called on the node's thread, as `changed` is. Its end tells the master that this process is gone. Before
  /// `join`.
  void watch_generation(std::function<std::uint64_t()> known,
                        std::function<void(std::uint64_t now)> changed) {
    known_ = std::move(known);
    changed_ = std::move(changed);
  }

  /// Ranges whose state this server has, for a master that takes another's place, and the newest generation
  /// that it was told to take. Before `join`.
  void hold(std::function<std::vector<std::uint32_t>()> ranges, std::function<std::uint64_t()> heard) {
    held_ = std::move(ranges);
    heard_ = std::move(heard);
  }

  /// Flags that it was started with and that have to be the master's, too (train::shared_flags). Before
  /// `join`.
  void started_with(std::vector<std::string> flags) { flags_ = std::move(flags); }

  /// The kind of its processor, threads and kernels: sums are the same bits on two of one kind. Before
  /// `join`.
  void computes_as(std::string kind) { kind_ = std::move(kind); }

  /// What its machine has done when it began: `disk_speed`, `network_speed`. Before `join`.
  void began_with(double disk, double network) {
    disk_ = disk;
    network_ = network;
  }

  /// As long as it knows no generation, it copies the model from others before it takes part. Before `join`.
  void follows() { follows_ = true; }

  /// Tells the master that this process ends by itself: nobody need wait for it. Before the node is stopped;
  /// never throws, and gives up after a second.
  void leave();

  std::uint64_t incarnation() const { return incarnation_; }

  /// The master has said that the job is finished, or goes on with fewer servers: this one has nothing to do
  /// any more.
  bool finished() const { return finished_; }

  /// The master has given this process up, or has been away for too long.
  bool lost() const { return lost_; }

  /// Why this process has to end: throws worker::given_up, master_away, or error. Once it is `lost`.
  [[noreturn]] void explain_loss(std::string const& who) const;

 private:
  asio::awaitable<void> beat();
  asio::awaitable<void> keep_watch();
  asio::awaitable<void> join_again();
  net::outgoing join_call(std::chrono::milliseconds timeout) const;
  void missed(net::call_error const& why, time_point began);

  net::node& node_;
  net::channel& master_;
  role role_;
  std::uint32_t id_;
  std::uint64_t incarnation_;
  std::uint64_t layout_ = 0;
  std::vector<std::string> flags_;
  std::string kind_;
  double disk_ = 0, network_ = 0;
  bool follows_ = false;
  std::vector<net::address> listening_;
  std::function<std::uint64_t()> version_, known_;
  std::function<void(std::uint64_t)> changed_;
  std::function<std::vector<std::uint32_t>()> held_;
  std::function<std::uint64_t()> heard_;
  master_absence absence_;  // on the node's thread, once it has joined
  mutable std::mutex lock_;
  std::string away_;    // why the master is given up; empty: it is not
  std::string broken_;  // likewise, why it cannot be listened to
  std::uint64_t announced_ =
      0;  // the newest generation, by any master; on the node's thread once it has joined
  std::atomic<worker::progress const*> seen_{nullptr};
  std::atomic<bool> finished_{false}, lost_{false};
};

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/member.ipp"
#endif

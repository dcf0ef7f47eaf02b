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

/// A worker's or a server's membership in a job: it joins, and sends the master a heartbeat every second. If
/// the master is absent, it waits, and joins the job again through the master's successor. Thread safety:
/// `join` and `watch` on one thread that is not the node's; the rest safe.
class member {
 public:
  /// `timeout`: how long a master may be absent.
  member(net::node& on, net::channel& master, role what, std::uint32_t id,
         std::chrono::seconds timeout = std::chrono::seconds(900));
  member(member const&) = delete;
  member& operator=(member const&) = delete;

  /// Stops the node: its callbacks refer to this object.
  ~member() { node_.stop(); }

  /// `layout`: digest of the model's layout; `listening`: addresses of servers. False: the job has ended
  /// already, or has become smaller; it logs which. Throws error if the master refuses this process,
  /// worker::given_up if it has given it up already, and master_away if there is no master in time. Calls
  /// `stopping` meanwhile, and throws worker::interrupted when it returns true.
  bool join(std::uint64_t layout, std::vector<net::address> const& listening,
            std::function<bool()> const& stopping = {});

  /// The source of the heartbeats' numbers; `of` must live until the node is stopped.
  void watch(worker::progress const& of) { seen_ = &of; }

  /// The same for a server; calls `version` on the node's thread. Call before `join`.
  void watch(std::function<std::uint64_t()> version) { version_ = std::move(version); }

  /// Keeps a request pending at the master, which replies when the generation differs from `known`. `known`
  /// and `changed` are called on the node's thread. If the request breaks off, the master knows that this
  /// process is gone. Call before `join`.
  void watch_generation(std::function<std::uint64_t()> known,
                        std::function<void(std::uint64_t now)> changed) {
    known_ = std::move(known);
    changed_ = std::move(changed);
  }

  /// The ranges whose state this server has, and the newest generation that it has received, for a successor
  /// of the master. Call before `join`.
  void hold(std::function<std::vector<std::uint32_t>()> ranges, std::function<std::uint64_t()> heard) {
    held_ = std::move(ranges);
    heard_ = std::move(heard);
  }

  /// Flags of this process that must equal the master's (train::shared_flags). Call before `join`.
  void started_with(std::vector<std::string> flags) { flags_ = std::move(flags); }

  /// The kind of its processor, threads and kernels: processes of one kind compute bitwise equal sums. Call
  /// before `join`.
  void computes_as(std::string kind) { kind_ = std::move(kind); }

  /// The speeds of its machine at the start: `disk_speed`, `network_speed`. Call before `join`.
  void began_with(double disk, double network) {
    disk_ = disk;
    network_ = network;
  }

  /// The source of the notice that this process's machine is about to be taken away: who takes it, and when;
  /// empty: nobody. Called on the node's thread. Call before `join`.
  void notices(std::function<std::string()> notice) { notice_ = std::move(notice); }

  /// While it knows no generation, it copies the model from others before it takes part. Call before `join`.
  void follows() { follows_ = true; }

  /// Informs the master that this process exits by itself, so that no process waits for it. Call before the
  /// node is stopped; never throws, and gives up after a second.
  void leave();

  std::uint64_t incarnation() const { return incarnation_; }

  /// Whether the master has reported that the job is finished, or continues with fewer servers: this process
  /// has no more work.
  bool finished() const { return finished_; }

  /// Whether the master has asked this worker to hand its work back, because of its notice.
  bool leaves() const { return leaves_; }

  /// Whether the master has answered the last heartbeat.
  bool reaches_master() const { return reached_; }

  /// Whether the master has given this process up, or has been absent for too long.
  bool lost() const { return lost_; }

  /// Throws the reason why this process must exit: worker::given_up, master_away, or error. Only when
  /// `lost()`.
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
  std::function<std::string()> notice_;
  master_absence absence_;  // on the node's thread, once it has joined
  mutable std::mutex lock_;
  std::string away_;    // why the master was given up; empty: it was not
  std::string broken_;  // likewise, why its replies cannot be read
  std::uint64_t announced_ =
      0;  // the newest generation, by any master; on the node's thread once it has joined
  std::atomic<worker::progress const*> seen_{nullptr};
  std::atomic<bool> finished_{false}, lost_{false}, leaves_{false}, reached_{true};
};

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/member.ipp"
#endif

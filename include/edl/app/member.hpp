// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "edl/net/address.hpp"
#include "edl/net/call.hpp"
#include "edl/net/channel.hpp"
#include "edl/net/node.hpp"
#include "edl/worker/session.hpp"

namespace edl::app {

/// A worker's or a server's membership in a job: it joins, and tells the master once a second that it lives.
/// Thread safety: `join` and `watch` on one thread that is not the node's; the rest safe.
class member {
 public:
  enum class kind { worker, server };

  member(net::node& on, net::channel& master, kind what, std::uint32_t id);
  member(member const&) = delete;
  member& operator=(member const&) = delete;

  /// Stops the node: nothing that it runs may outlive what it tells of.
  ~member() { node_.stop(); }

  /// `layout`: digest of the model's layout; `listening`: where servers are reached. Throws error when the
  /// master does not take this process or cannot be reached.
  void join(std::uint64_t layout, std::vector<net::address> const& listening);

  /// Where the heartbeats' numbers come from; `of` stays until the node is stopped.
  void watch(worker::progress const& of) { seen_ = &of; }

  /// The same for a server; `version` is called on the node's thread. Before `join`.
  void watch(std::function<std::uint64_t()> version) { version_ = std::move(version); }

  /// Keeps a call waiting at the master, which tells when the generation is another than `known` (called, as
  /// `changed` is, on the node's thread); its end tells the master that this process is gone. Before `join`.
  void watch_generation(std::function<std::uint64_t()> known,
                        std::function<void(std::uint64_t now)> changed) {
    known_ = std::move(known);
    changed_ = std::move(changed);
  }

  /// Ranges whose state this server has, for a master that takes another's place. Before `join`.
  void hold(std::function<std::vector<std::uint32_t>()> ranges) { held_ = std::move(ranges); }

  /// Tells the master that this process ends by itself: nobody need wait for it. Before the node is stopped;
  /// never throws, and gives up after a second.
  void leave();

  std::uint64_t incarnation() const { return incarnation_; }

  /// The master has said that the job is finished.
  bool finished() const { return finished_; }

  /// The master has given this process up, or cannot be reached any more.
  bool lost() const { return lost_; }

 private:
  asio::awaitable<void> beat();
  asio::awaitable<void> keep_watch();
  asio::awaitable<void> join_again();
  net::outgoing join_call() const;

  net::node& node_;
  net::channel& master_;
  kind kind_;
  std::uint32_t id_;
  std::uint64_t incarnation_;
  std::uint64_t layout_ = 0;
  std::vector<net::address> listening_;
  std::function<std::uint64_t()> version_, known_;
  std::function<void(std::uint64_t)> changed_;
  std::function<std::vector<std::uint32_t>()> held_;
  std::atomic<worker::progress const*> seen_{nullptr};
  std::atomic<bool> finished_{false}, lost_{false};
};

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/member.ipp"
#endif

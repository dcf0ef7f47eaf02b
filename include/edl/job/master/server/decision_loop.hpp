// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <asio/awaitable.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "edl/base/net/event.hpp"
#include "edl/base/net/node.hpp"
#include "edl/core/log.hpp"
#include "edl/core/process_id.hpp"
#include "edl/job/master/coordinator.hpp"
#include "edl/job/master/server/journal_keeper.hpp"
#include "edl/job/master/server/server_options.hpp"

namespace edl::master {

/// A coordinator and its journal. After passing an event to the coordinator, call `run_commands`. It executes
/// the coordinator's commands, but those that others rely on only after the journal contains them. Thread
/// safety: only on the node's thread; the constructor on any.
class decision_loop {
 public:
  /// `execute` executes a command; if it throws, the job fails.
  decision_loop(net::node& on, server_options const& o, logger log,
                std::function<void(command const&)> execute);

  coordinator& decisions() { return coordinator_; }
  coordinator const& decisions() const { return coordinator_; }

  void run_commands();

  /// Calls `work` once the journal contains all decisions so far: immediately, if it does.
  void when_kept(std::function<void()> work);
  bool kept() const { return keeper_.kept(); }

  /// Whether `who` will be started as soon as the journal contains it. A running process with this name is an
  /// earlier one.
  bool starts(process_id who) const;

  /// The newest generation that may be announced, and whether it is the current one.
  std::uint64_t generation() const { return std::min(keeper_.generation(), coordinator_.generation()); }
  asio::awaitable<void> announced();

  /// Notified when a generation, a world or the end may be announced. Every process waits for these: other
  /// events would wake all of them for nothing.
  net::event& announces() { return announces_; }
  /// Notified when the journal contains all decisions.
  net::event& keeps() { return keeps_; }

  /// For a successor: the master's addresses, the platform's handled events, and the nodes to avoid.
  void listens_at(std::vector<std::string> addresses);
  void dealt_with(std::uint64_t events) { events_ = events; }
  void avoids(std::string place) { avoided_.push_back(std::move(place)); }

  /// Call when the job and all its final work are done. False: it was already.
  bool end();
  bool ended() const { return ended_; }

  void fail(std::string const& reason);

  /// Runs `work`; if it throws, the job fails with `what` and the reason.
  void carry(std::string what, std::function<asio::awaitable<void>()> work);

 private:
  void remember();
  std::uint64_t kept_ahead(std::uint64_t generation) const;
  void perform(std::function<void()> const& work);

  net::node& node_;
  bool judges_;
  bool worlds_;
  std::function<void(command const&)> execute_;
  coordinator coordinator_;
  net::event announces_, keeps_;
  std::array<std::uint64_t, 5> announced_{};  // what `announces_` was last notified of
  std::uint64_t events_;
  struct remembered {
    std::array<std::uint64_t, 6> promised;  // to be announced once the journal has it
    std::array<std::uint64_t, 5> rest;
    bool operator==(remembered const&) const = default;
  };
  std::optional<remembered> remembered_;  // the state of which the journal was last notified
  std::vector<std::string> addresses_, avoided_;
  struct waiting {
    std::function<void()> work;
    std::optional<process_id> starts = {}, stops = {};
  };
  std::deque<waiting> unkept_;  // commands that wait for the journal
  bool ended_ = false;
  journal_keeper keeper_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/server/decision_loop.ipp"
#endif

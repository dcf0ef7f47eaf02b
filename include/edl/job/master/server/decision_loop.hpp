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

/// A coordinator and its journal. Whoever tells the coordinator of an event calls `run_commands` afterwards.
/// Then what it asks for is carried out, but what others rely on not before the journal has it.
/// Thread safety: only on the node's thread; the constructor on any.
class decision_loop {
 public:
  /// `execute` carries a command out; when it throws, the job fails.
  decision_loop(net::node& on, server_options const& o, logger log,
                std::function<void(command const&)> execute);

  coordinator& decisions() { return coordinator_; }
  coordinator const& decisions() const { return coordinator_; }

  void run_commands();

  /// Does `work` once the journal has all that has been decided: at once, where it has.
  void when_kept(std::function<void()> work);
  bool kept() const { return keeper_.kept(); }

  /// Whether `who` is to be started as soon as the journal knows of it. One of that name that runs is
  /// another.
  bool starts(process_id who) const;

  /// The newest generation that others may be told of, and when it is the current one.
  std::uint64_t generation() const { return std::min(keeper_.generation(), coordinator_.generation()); }
  asio::awaitable<void> announced();

  /// Notified after each event.
  net::event& changed() { return changed_; }

  /// For a successor: where the master listens, the platform's events that have been dealt with, and the
  /// places where it is to start nothing.
  void listens_at(std::vector<std::string> addresses);
  void dealt_with(std::uint64_t events) { events_ = events; }
  void avoids(std::string place) { avoided_.push_back(std::move(place)); }

  /// The job is over, and so is all that was to be done for that. False: it was already.
  bool end();
  bool ended() const { return ended_; }

  void fail(std::string const& reason);

  /// Runs `work`; when it throws, the job fails with `what` and why.
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
  net::event changed_;
  std::uint64_t events_;
  struct remembered {
    std::array<std::uint64_t, 6> promised;  // to others, before they are told
    std::array<std::uint64_t, 5> rest;
    bool operator==(remembered const&) const = default;
  };
  std::optional<remembered> remembered_;  // what the journal is to be written for
  std::vector<std::string> addresses_, avoided_;
  struct waiting {
    std::function<void()> work;
    std::optional<process_id> starts = {}, stops = {};
  };
  std::deque<waiting> unkept_;  // what waits for it
  bool ended_ = false;
  journal_keeper keeper_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/server/decision_loop.ipp"
#endif

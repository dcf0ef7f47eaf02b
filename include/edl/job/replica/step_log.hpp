// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "edl/base/net/event.hpp"
#include "edl/base/net/request.hpp"
#include "edl/core/ledger.hpp"

namespace edl::replica {

/// The newest steps of a worker's copy of the model, for new workers that follow it. A new worker copies the
/// model while the members train on, and repeats all steps since then: with the same arguments of
/// `ps::store::step`, so with the same bits. When it is close, the members must leave their world together
/// (`wants_end`). The log has the steps that it lacks until then.
///
/// Steps are kept from a new worker's first call on, while any follower lacks them. Beyond the limit
/// following ends: such a slow worker copies the model in a world that waits for it.
///
/// Thread safety: only on the node's thread, except `wanted` and `wants_end`.
class step_log {
 public:
  struct step {
    std::uint64_t world = 0;
    std::uint64_t version = 0;  ///< that it leads to
    bool last = false;          ///< of this world
    std::vector<contribution> minibatches;
    std::vector<float> sums;
  };

  struct options {
    std::string name;            ///< of this worker, for errors
    std::size_t step_bytes = 0;  ///< of the sums
    std::size_t most_bytes = 0;  ///< of the steps that are kept; at least 8 of them are
  };

  step_log(asio::any_io_executor on, options o);

  /// Whether steps must be added.
  bool wanted() const { return wanted_; }

  /// Whether a new worker is so close that the world should end with the next step.
  bool wants_end() const { return wants_end_; }

  /// The copy is now of this world, at this version; 0: it cannot be followed. If the copy got there other
  /// than by the added steps, its followers are dropped.
  void begin(std::uint64_t world, std::uint64_t version);

  /// The copy has made a step. With a world's last step, close followers are brought into the next world.
  void add(step s);

  /// The followers that are brought into the next world; until `begin`.
  std::set<std::uint32_t> const& brought() const { return brought_; }

  /// Serves `wire::method::follow`.
  asio::awaitable<void> handle(net::request& r);

 private:
  void forget();
  void look();
  std::shared_ptr<step const> next(std::uint32_t worker) const;

  options options_;
  net::event changed_;
  std::uint64_t world_ = 0, version_ = 0;
  std::deque<std::shared_ptr<step const>> steps_;
  std::map<std::uint32_t, std::uint64_t> followers_;  // the versions that they have
  std::set<std::uint32_t> near_, brought_;
  std::atomic<bool> wanted_{false}, wants_end_{false};
};

}  // namespace edl::replica

#ifdef EDL_HEADER_ONLY
#include "edl/job/replica/step_log.ipp"
#endif

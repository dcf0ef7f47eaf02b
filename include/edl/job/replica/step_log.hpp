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

/// The newest steps of a worker's copy of the model, for newcomers that follow it. A newcomer takes a copy
/// while the members train on, and makes all steps since then itself: the same arguments of
/// `ps::store::step`, so the same bits. When it is near, the members are to leave their world together
/// (`wants_end`). The steps that it lacks until then are in the log.
///
/// Steps are kept from a newcomer's first call on, as far as any still lacks them. If they are more than the
/// bound, nobody follows any more: who is that slow takes a copy of a world that waits for it.
///
/// Thread safety: only on the node's thread, but for `wanted` and `wants_end`.
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

  /// Whether steps are to be added.
  bool wanted() const { return wanted_; }

  /// Whether a newcomer is so near that the world should end with the next step.
  bool wants_end() const { return wants_end_; }

  /// The copy is of this world now, and at this version; 0: nobody may follow it. A copy that has come there
  /// otherwise than by the steps that were added has lost its followers.
  void begin(std::uint64_t world, std::uint64_t version);

  /// The copy has made a step. With a world's last one, those that are near are brought into the next.
  void add(step s);

  /// Those who are brought into the next world; until `begin`.
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edl/base/net/call.hpp"
#include "edl/base/net/channel.hpp"
#include "edl/base/net/node.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/log.hpp"
#include "edl/job/ps/store.hpp"

namespace edl::replica {

/// "took version 7 from worker 2 (4096 bytes in 3 ms)"
std::string copied_line(std::uint64_t version, std::uint32_t from, std::size_t values, time_point began);

/// Brings a new worker into a job that trains by all-reduce: it copies the model of a worker whose world
/// continues meanwhile, and then repeats the following steps (`step_log`), until that world ends for its
/// sake. No other worker waits for it.
///
/// It does not trust what it receives. If it cannot follow, it logs why. It then takes part in the next
/// world, which waits until it has a copy.
///
/// Thread safety: used by one thread that is not the node's.
class follower {
 public:
  struct dependencies {
    net::node& node;
    std::shared_ptr<ps::store> store;  ///< on the node's thread; of all elements of the model
    std::uint32_t worker = 0;          ///< itself
    logger log;
    std::function<bool()> stopping;       ///< true ends it: it throws worker::interrupted
    std::function<std::uint64_t()> over;  ///< worlds below are over
    /// If the followed world has ended and makes no step for this long, it enters as it is. A new master does
    /// not know followers, and makes all wait until it enters.
    std::chrono::milliseconds next_world_in{2'000};
  };

  /// The state that the store is a copy of.
  struct copy {
    std::uint64_t world = 0, version = 0;
  };

  explicit follower(dependencies with) : with_(std::move(with)) {}

  /// Follows worker `from`, which listens at `source`. Empty: the store is not a copy.
  std::optional<copy> follow(net::channel& source, std::uint32_t from);

 private:
  std::string ask(net::channel& source, net::outgoing what, bool for_step = false) const;
  void begin(net::channel& source, std::vector<float>& values);
  bool make_next(net::channel& source, std::vector<float>& sums);

  dependencies with_;
  std::optional<copy> has_;
};

}  // namespace edl::replica

#ifdef EDL_HEADER_ONLY
#include "edl/job/replica/follower.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <cstdint>
#include <set>

#include "edl/core/log.hpp"
#include "edl/job/master/server/decision_loop.hpp"
#include "edl/job/master/server/model_keepers.hpp"
#include "edl/job/master/server/orders.hpp"
#include "edl/job/master/server/server_options.hpp"

namespace edl::wire {
class ConfigureRequest;  // edl/base/wire/edl.pb.h
}

namespace edl::master {

/// Calls to the keepers of the model about its state and its versions; passes the results to the coordinator.
/// Its arguments must outlive it. Thread safety: only on the node's thread.
class keeper_calls {
 public:
  keeper_calls(server_options const& options, decision_loop& loop, model_keepers const& keepers,
               orders& orders, logger log)
      : options_(options),
        loop_(loop),
        coordinator_(loop.decisions()),
        keepers_(keepers),
        orders_(orders),
        log_(std::move(log)) {}

  /// Makes servers load a generation's state.
  void configure(configure_servers const& c);

  /// After the training: requests the last version.
  asio::awaitable<void> commit(std::uint64_t generation);

  /// Makes all keepers hold a frozen version for its evaluation.
  asio::awaitable<void> claim(version_report r);
  bool claiming() const { return !claims_.empty(); }

  asio::awaitable<void> release(release_frozen c);

 private:
  asio::awaitable<void> configure(std::uint32_t id, configure_servers c);
  wire::ConfigureRequest configuration(std::uint32_t id, configure_servers const& c) const;

  server_options const& options_;
  decision_loop& loop_;
  coordinator& coordinator_;
  model_keepers const& keepers_;
  orders& orders_;
  logger log_;
  std::multiset<std::uint64_t> claims_;  // versions being claimed
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/server/keeper_calls.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "edl/base/net/disk.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/net/request.hpp"
#include "edl/core/log.hpp"
#include "edl/job/ps/configurer.hpp"
#include "edl/job/ps/push_memory.hpp"
#include "edl/job/ps/row_calls.hpp"
#include "edl/job/ps/server_options.hpp"
#include "edl/job/ps/shards.hpp"

namespace edl::wire {
class CheckpointRequest;  // edl/base/wire/edl.pb.h
class PushRequest;
class ReplicateRequest;
}  // namespace edl::wire

namespace edl::ps {

/// Serves stores over the network: pulls, pushes and the master's requests. Pulls are sent from a store's own
/// memory; pushes are received into memory that the update reads. It refuses calls of another generation.
///
/// The master determines which ranges it serves, and which it backs up for another server. A push is
/// acknowledged when the backup, if there is one, has made the same update. A push without effect is
/// acknowledged when that is true of all before it. So acknowledged pushes survive the loss of either server.
/// If a worker doubts its variables, a server looks at its memory's sums, or else compares itself with the
/// backup.
///
/// Thread safety: only on the node's thread, `handle` included.
class server {
 public:
  server(net::node& on, server_options options, logger log);

  /// A listener's handler.
  asio::awaitable<void> handle(net::request& r);

  /// Sets this generation's state of `range`, without a call.
  void configured(std::uint64_t generation, std::uint32_t range, std::shared_ptr<store> state) {
    shards_.configured(generation, range, std::move(state));
  }

  /// Lets others copy `state`, which is of `generation`, until `configured` follows; serves nothing else.
  void offers(std::uint64_t generation, std::uint32_t range, std::shared_ptr<store> state) {
    shards_.offers(generation, range, std::move(state));
  }

  /// Serves nothing, so that others may change its stores.
  void withdraw() { shards_.withdraw(); }

  /// A store has made a step, likewise.
  void stepped() { shards_.stepped(); }

  std::uint64_t generation() const { return shards_.generation(); }  ///< 0: nothing to serve yet
  std::uint64_t heard() const { return shards_.heard(); }  ///< the newest that it was ordered to load
  /// The ranges that it serves in this generation. Earlier ranges may still exist, outdated, for others to
  /// copy at the start of the generation.
  std::vector<std::uint32_t> held() const { return shards_.held(); }
  std::uint64_t version() const { return shards_.version(); }  ///< of the first of them; 0: none

 private:
  asio::awaitable<void> pull(net::request& r);
  asio::awaitable<void> push(net::request& r);
  asio::awaitable<void> replicate(net::request& r);
  asio::awaitable<void> digest_of(net::request& r);
  asio::awaitable<void> position(net::request& r);
  asio::awaitable<void> claim(net::request& r);
  asio::awaitable<void> release(net::request& r);
  asio::awaitable<void> commit(net::request& r);
  asio::awaitable<void> checkpoint(net::request& r);
  asio::awaitable<void> reach(net::request const& r, std::uint64_t generation, std::uint32_t range,
                              std::uint64_t version);
  std::vector<checkpoint::manifest::file> write(full_snapshot const& what,
                                                wire::CheckpointRequest const& request) const;
  asio::awaitable<void> compare_with_backup(std::uint64_t generation, std::uint32_t range);
  asio::awaitable<void> make_safe(std::uint32_t range, std::uint64_t number);
  asio::awaitable<void> send_on(wire::PushRequest p, std::shared_ptr<push_memory> values,
                                std::uint64_t number);

  net::node& node_;
  server_options options_;
  logger log_;
  shards shards_;
  std::vector<model_update> buffers_;  // to receive pushes into, reused
  net::disk disk_{node_};
  row_calls rows_{shards_};
  configurer configurer_{node_, options_, shards_, disk_, log_};
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/job/ps/server.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "edl/base/net/channel.hpp"
#include "edl/base/net/disk.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/net/request.hpp"
#include "edl/core/log.hpp"
#include "edl/job/ps/server_options.hpp"
#include "edl/job/ps/shards.hpp"

namespace edl::wire {
class ConfigureRequest;  // edl/base/wire/edl.pb.h
}

namespace edl::ps {

/// Loads a server's ranges for the generation that the master requests: from a checkpoint, from its own
/// state, or from another server; and lets others copy them. Thread safety: only on the node's thread.
class configurer {
 public:
  /// All must outlive this.
  configurer(net::node& on, server_options const& o, shards& ranges, net::disk& disk, logger log)
      : node_(on), options_(o), shards_(ranges), disk_(disk), log_(std::move(log)) {}

  /// Handles the master's request.
  asio::awaitable<void> configure(net::request& r);

  /// Sends everything of a store to another one that becomes its copy, while generations change and the store
  /// does not.
  asio::awaitable<void> copy(net::request& r);

  /// Replies with a range's position at the start of the generation.
  asio::awaitable<void> compare(net::request& r);

 private:
  asio::awaitable<void> take(wire::ConfigureRequest const& request, int number);
  asio::awaitable<std::shared_ptr<store>> restored(std::uint32_t range, std::string const& from);
  asio::awaitable<std::shared_ptr<store>> fetch(std::uint64_t generation, std::uint32_t range,
                                                std::vector<std::string> const& from);
  asio::awaitable<void> fetch_rows(store& into, net::channel& holder, std::uint64_t generation,
                                   std::uint32_t range);
  asio::awaitable<std::string> ask_holder(net::channel& holder, std::uint64_t generation, net::outgoing what);

  net::node& node_;
  server_options const& options_;
  shards& shards_;
  net::disk& disk_;
  logger log_;
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/job/ps/configurer.ipp"
#endif

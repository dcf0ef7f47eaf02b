// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "edl/core/layout.hpp"
#include "edl/core/log.hpp"
#include "edl/net/event.hpp"
#include "edl/net/node.hpp"
#include "edl/net/request.hpp"
#include "edl/ps/store.hpp"

namespace edl::ps {

struct server_options {
  std::uint32_t id = 0, servers = 1;
  parameter_layout const& layout;  ///< outlives the server

  /// Puts the store into a checkpoint's state, or into its initial one for an empty path.
  std::function<void(store&, std::string const& path)> configure;

  /// Told of every version that the store has frozen by itself.
  std::function<void(std::uint64_t generation, push_result const&)> frozen;
};

/// A store behind the net: serves pulls, pushes and what the master asks. Pulls are sent from the store's own
/// memory, pushes are received into memory that the update reads. A call of another generation is refused.
/// Thread safety: only on the node's thread, `handle` included.
class server {
 public:
  server(net::node& on, store& state, server_options options, logger log);

  /// A listener's handler.
  asio::awaitable<void> handle(net::request& r);

  /// The store has this generation's state, by other ways than a call.
  void configured(std::uint64_t generation) { generation_ = generation; }

  /// The store has made a step, likewise.
  void stepped() { advanced_.notify(); }

  std::uint64_t generation() const { return generation_; }  ///< 0: nothing to serve yet

 private:
  class gradient_buffer;

  asio::awaitable<void> pull(net::request& r);
  asio::awaitable<void> push(net::request& r);
  asio::awaitable<void> position(net::request& r);
  asio::awaitable<void> configure(net::request& r);
  asio::awaitable<void> claim(net::request& r);
  asio::awaitable<void> release(net::request& r);
  asio::awaitable<void> settle(net::request& r);
  asio::awaitable<void> checkpoint(net::request& r);
  asio::awaitable<void> reach(net::request& r, std::uint64_t generation, std::uint64_t version);
  asio::awaitable<wire::manifest::file> write(cut const& what, std::string const& path);
  void check(std::uint64_t generation) const;

  net::node& node_;
  store& store_;
  server_options options_;
  logger log_;
  std::uint64_t generation_ = 0;  // 0: nothing to serve yet
  net::event advanced_;
  std::vector<std::vector<float>> buffers_;  // to receive gradients into, reused
  asio::thread_pool writer_{1};
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/ps/server.ipp"
#endif

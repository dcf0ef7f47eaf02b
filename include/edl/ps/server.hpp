// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "edl/core/layout.hpp"
#include "edl/core/log.hpp"
#include "edl/net/channel.hpp"
#include "edl/net/disk.hpp"
#include "edl/net/event.hpp"
#include "edl/net/node.hpp"
#include "edl/net/request.hpp"
#include "edl/net/status.hpp"
#include "edl/ps/push_memory.hpp"
#include "edl/ps/store.hpp"

namespace edl::wire {
class CheckpointRequest;  // edl/wire/edl.pb.h
class PushRequest;
class ReplicateRequest;
}  // namespace edl::wire

namespace edl::ps {

struct server_options {
  std::string name = "ps-0";          ///< in logs and errors
  std::uint32_t ranges = 1;           ///< that the variables are cut into
  parameter_layout const& layout;     ///< outlives the server
  std::size_t delta_checkpoints = 0;  ///< in a row, of tables (`write_snapshot`)

  /// A store for a range, in any state.
  std::function<std::shared_ptr<store>(std::uint32_t range)> make;

  /// Puts the store into a checkpoint's state, or into its initial one for an empty path. Called on a thread
  /// that may wait for a disk.
  std::function<void(store&, std::string const& path)> configure;

  /// Told of every version that the first range's store has frozen by itself.
  std::function<void(std::uint64_t generation, push_result const&)> frozen;

  /// Told when the backup of a range cannot be reached.
  std::function<void(std::uint64_t generation, std::uint32_t range)> cut_off;

  /// Told when a store has failed (`store_failure`): it is of no use any more, and the process had better
  /// end.
  std::function<void(std::string const& why)> failed = {};
};

/// Stores behind the net: serves pulls, pushes and what the master asks. Pulls are sent from a store's own
/// memory, pushes are received into memory that the update reads. A call of another generation is refused.
///
/// The master says which ranges it serves, and for which it is another server's backup. A push is
/// acknowledged when the backup, if there is one, has made the same update. One that changes nothing is
/// acknowledged when that holds for all before it. So what is acknowledged outlives the loss of either.
///
/// Thread safety: only on the node's thread, `handle` included.
class server {
 public:
  server(net::node& on, server_options options, logger log);

  /// A listener's handler.
  asio::awaitable<void> handle(net::request& r);

  /// `state` is this generation's state of `range`, by other ways than a call.
  void configured(std::uint64_t generation, std::uint32_t range, std::shared_ptr<store> state);

  /// Until `configured` follows, others may copy `state`, which is of `generation`, and nothing else is
  /// served.
  void offers(std::uint64_t generation, std::uint32_t range, std::shared_ptr<store> state);

  /// Nothing is served, and its stores are others' to change.
  void withdraw();

  /// A store has made a step, likewise.
  void stepped() { advanced_.notify(); }

  std::uint64_t generation() const { return generation_; }  ///< 0: nothing to serve yet
  std::uint64_t heard() const { return configuring_; }      ///< the newest that it was told to take
  /// Ranges that are its own in this generation. What it had before may still be there, for others to copy as
  /// the generation began, and grows old.
  std::vector<std::uint32_t> held() const;
  std::uint64_t version() const;  ///< of the first of them; 0: none

 private:
  class pull_memory;

  struct shard {
    std::shared_ptr<store> state;
    bool primary = true;
    std::shared_ptr<net::channel> backup;
    std::uint64_t since = 0;                             // the generation that it was configured in last
    std::uint64_t applied = 0;                           // updates since then
    std::uint64_t since_before = 0, applied_before = 0;  // the same, when that generation began
    std::uint64_t safe = 0;                              // as many the backup has made, too
    bool cut_off = false;                                // the backup cannot be reached
  };

  asio::awaitable<void> pull(net::request& r);
  asio::awaitable<void> push(net::request& r);
  asio::awaitable<void> replicate(net::request& r);
  asio::awaitable<void> pull_rows(net::request& r);
  asio::awaitable<void> copy(net::request& r);
  asio::awaitable<void> copy_rows(net::request& r);
  asio::awaitable<void> count_rows(net::request& r);
  asio::awaitable<void> compare(net::request& r);
  asio::awaitable<void> position(net::request& r);
  asio::awaitable<void> configure(net::request& r);
  asio::awaitable<void> claim(net::request& r);
  asio::awaitable<void> release(net::request& r);
  asio::awaitable<void> settle(net::request& r);
  asio::awaitable<void> checkpoint(net::request& r);
  asio::awaitable<void> reach(net::request& r, std::uint64_t generation, std::uint32_t range,
                              std::uint64_t version);
  std::vector<checkpoint::manifest::file> write(full_snapshot const& what,
                                                wire::CheckpointRequest const& request) const;
  template <class... Arguments>
  push_result apply(shard& to, Arguments const&... of_push);
  asio::awaitable<void> make_safe(std::uint32_t range, std::uint64_t number);
  asio::awaitable<void> send_on(wire::PushRequest p, std::shared_ptr<push_memory> values,
                                std::uint64_t number);
  asio::awaitable<void> fetch_rows(store& into, net::channel& holder, std::uint64_t generation,
                                   std::uint32_t range);
  asio::awaitable<std::shared_ptr<store>> fetch(std::uint64_t generation, std::uint32_t range,
                                                std::vector<std::string> const& from);
  asio::awaitable<std::string> ask_holder(net::channel& holder, std::uint64_t generation, net::outgoing what);
  void check(std::uint64_t generation) const;
  shard& of(std::uint64_t generation, std::uint32_t range, bool primary = true);
  net::call_error overtaken() const;

  net::node& node_;
  server_options options_;
  logger log_;
  std::uint64_t generation_ = 0;   // 0: nothing to serve yet
  std::uint64_t configuring_ = 0;  // the newest asked for
  std::map<std::uint32_t, shard> shards_;
  net::event advanced_;
  std::vector<model_update> buffers_;                  // to receive pushes into, reused
  std::vector<std::vector<row_update>> pull_buffers_;  // likewise
  net::disk disk_{node_};
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/ps/configure.ipp"
#include "edl/ps/serve_rows.ipp"
#include "edl/ps/server.ipp"
#endif

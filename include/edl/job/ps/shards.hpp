// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "edl/base/net/channel.hpp"
#include "edl/base/net/event.hpp"
#include "edl/base/net/status.hpp"
#include "edl/core/clock.hpp"
#include "edl/job/ps/store.hpp"

namespace edl::ps {

/// A range on a server.
struct shard {
  std::shared_ptr<store> state;
  bool primary = true;
  std::shared_ptr<net::channel> backup;
  std::uint64_t since = 0;                             ///< the generation in which it was last configured
  std::uint64_t applied = 0;                           ///< updates since then
  std::uint64_t since_before = 0, applied_before = 0;  ///< the same, at the beginning of that generation
  std::uint64_t safe = 0;                              ///< updates that the backup has made as well
  bool cut_off = false;                                ///< the backup cannot be reached

  /// Begins a generation, in which nothing has been applied yet.
  void begin(std::uint64_t generation);
};

/// The ranges of a server, by generation: those that it serves, and those that others may copy. While it
/// loads a generation it serves nothing. Refusals are `net::call_error`s that name the server. Thread safety:
/// only on the node's thread.
class shards {
 public:
  /// `name`: of the server.
  shards(asio::any_io_executor on, std::string name) : name_(std::move(name)), changed_(std::move(on)) {}

  std::string const& name() const { return name_; }
  std::uint64_t generation() const { return generation_; }  ///< 0: nothing to serve yet
  std::uint64_t heard() const { return heard_; }            ///< the newest that it was ordered to load

  /// As `server::held` and `server::version`.
  std::vector<std::uint32_t> held() const;
  std::uint64_t version() const;

  /// Throws unless it serves this generation.
  void check(std::uint64_t generation) const;

  /// A range that it serves, or backs up, in this generation; throws for others.
  shard& of(std::uint64_t generation, std::uint32_t range, bool primary = true);

  /// Its state of a range, of any generation; null: none.
  shard* find(std::uint32_t range);

  /// A range whose state others may copy, while this generation is loaded or served.
  store const& source(std::uint64_t generation, std::uint32_t range);

  /// Returns `of` when the range has reached this version; throws `not_ready` if `until` passes first.
  asio::awaitable<void> reach(std::uint64_t generation, std::uint32_t range, std::uint64_t version,
                              time_point until);

  /// Starts to load this generation. For a newer one than before, keeps only the ranges for which `keeps`
  /// returns true. Throws for an older one.
  void hear(std::uint64_t generation, std::function<bool(std::uint32_t range)> const& keeps);

  /// The error that a newer generation must be loaded.
  net::call_error overtaken() const;

  /// The range's entry, created if there is none, while a generation is loaded.
  shard& place(std::uint32_t range) { return all_[range]; }

  /// All ranges have the state of the generation being loaded.
  void serve() { generation_ = heard_; }

  /// As `server::configured`.
  void configured(std::uint64_t generation, std::uint32_t range, std::shared_ptr<store> state);
  void offers(std::uint64_t generation, std::uint32_t range, std::shared_ptr<store> state);
  void withdraw();

  /// A store, or a backup, has made a step: wakes waiting calls.
  void stepped() { changed_.notify(); }
  asio::awaitable<void> changed() { return changed_.wait(); }

 private:
  std::string name_;
  std::uint64_t generation_ = 0, heard_ = 0;
  std::map<std::uint32_t, shard> all_;
  net::event changed_;
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/job/ps/shards.ipp"
#endif

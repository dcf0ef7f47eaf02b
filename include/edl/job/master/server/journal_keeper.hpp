// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "edl/base/net/disk.hpp"
#include "edl/base/net/node.hpp"
#include "edl/core/log.hpp"
#include "edl/job/master/journal.hpp"

namespace edl::master {

/// Writes a master's journal on a thread of its own. What changes while it is being written is written
/// together, next. Some of it is promised to others, who may be told once `kept`. While the journal cannot be
/// written, which is tried again and logged, they are told all the same. Thread safety: only on the node's
/// thread.
class journal_keeper {
 public:
  /// `on_kept`: called when more is kept than before.
  journal_keeper(net::node& on, journal to, std::chrono::milliseconds pause, logger log,
                 std::function<void()> on_kept)
      : node_(on),
        journal_(std::move(to)),
        pause_(pause),
        log_(std::move(log)),
        on_kept_(std::move(on_kept)) {}

  /// `promised`: somebody is to be told of it. What is not needs no directory forced to the disk.
  void keep(persisted_state now, bool promised);

  /// Whether all that is promised may be told.
  bool kept() const { return failing_ || done_ >= promised_; }

  /// The newest generation that may be told.
  std::uint64_t generation() const { return failing_ ? newest_.generation : generation_; }

 private:
  asio::awaitable<void> write();
  std::string try_to_write(persisted_state const& now,
                           forced what);  // on the disk's thread: empty, or why not

  net::node& node_;
  journal journal_;
  std::chrono::milliseconds pause_;
  logger log_;
  std::function<void()> on_kept_;
  persisted_state newest_;
  std::uint64_t requested_ = 0, promised_ = 0, done_ = 0;  // numbers of what is to be kept
  std::uint64_t generation_ = 0;
  bool writing_ = false, failing_ = false;
  net::disk disk_{node_};  // its thread ends first
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/server/journal_keeper.ipp"
#endif

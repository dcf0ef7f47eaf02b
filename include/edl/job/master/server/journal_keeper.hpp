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

/// Writes a master's journal on a separate thread. Changes during a write are combined into the next one.
/// Some of them are promises to others, which may be announced once `kept`. If the journal cannot be written,
/// it logs that and retries, and promises may be announced anyway. Thread safety: only on the node's thread.
class journal_keeper {
 public:
  /// `on_kept`: called after each successful write.
  journal_keeper(net::node& on, journal to, std::chrono::milliseconds pause, logger log,
                 std::function<void()> on_kept)
      : node_(on),
        journal_(std::move(to)),
        pause_(pause),
        log_(std::move(log)),
        on_kept_(std::move(on_kept)) {}

  /// `promised`: it will be announced to others. Otherwise the directory need not be synced.
  void keep(persisted_state now, bool promised);

  /// Whether all promises may be announced.
  bool kept() const { return failing_ || done_ >= promised_; }

  /// The newest generation that may be announced.
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
  std::uint64_t requested_ = 0, promised_ = 0, done_ = 0;  // sequence numbers of states to write
  std::uint64_t generation_ = 0;
  bool writing_ = false, failing_ = false;
  net::disk disk_{node_};  // its thread ends first
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/server/journal_keeper.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "edl/master/lineage.hpp"

namespace edl::master {

/// What a master knows that nobody else does. What has been applied stands in the servers' ledgers, or in
/// those of the workers' copies; who takes part is told by everyone who joins. So this is all that its
/// successor needs to go on where it ended.
struct memory {
  std::uint64_t generation = 0;
  std::uint32_t members = 0;  ///< workers that took part
  std::uint32_t wanted_servers = 0;
  std::optional<std::uint64_t> evaluated;  ///< the newest version whose evaluation is complete
  lineages::record workers, servers;
  std::uint64_t events = 0;            ///< of the platform that have been dealt with
  std::vector<std::string> addresses;  ///< where the master listens

  friend bool operator==(memory const&, memory const&) = default;
};

/// A file with a master's memory. It is written whole, and replaced: a crash leaves the old or the new one.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class journal {
 public:
  /// `run`: what tells this run of the job from all others; a file of another run is none. An empty `path`:
  /// nothing is kept.
  journal(std::string path, std::string run) : path_(std::move(path)), run_(std::move(run)) {}

  /// What the master before this one has left; nothing when there was none. Throws error for a file that is
  /// damaged.
  std::optional<memory> read() const;

  /// Keeps `now`; cheap when nothing has changed. Throws error when it cannot be written: then there is no
  /// journal any more, because what is old would mislead.
  void write(memory const& now);

 private:
  std::string path_, run_;
  std::optional<memory> written_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/master/journal.ipp"
#endif

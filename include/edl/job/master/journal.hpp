// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "edl/core/durable_file.hpp"
#include "edl/job/master/health/gradient_checks.hpp"
#include "edl/job/master/lineage.hpp"

namespace edl::master {

/// What a master knows that nobody else does. What has been applied stands in the servers' ledgers, or in
/// those of the workers' copies; who takes part is told by everyone who joins. So this is all that its
/// successor needs to go on where it ended.
struct persisted_state {
  std::uint64_t generation = 0;
  std::uint32_t members = 0;  ///< workers that took part
  std::uint32_t wanted_servers = 0;
  std::optional<std::uint64_t> evaluated;  ///< the newest version whose evaluation is complete
  lineages::record workers, servers;
  std::uint64_t events = 0;             ///< of the platform that have been dealt with
  std::vector<std::string> addresses;   ///< where the master listens
  std::vector<std::string> avoided{};   ///< names of places where the platform is to start nothing
  bool finished = false;                ///< the job: members may have left for that
  gradient_checks::known good{};        ///< what has been found to be right
  std::optional<std::uint64_t> undo{};  ///< checkpoints of later versions are wrong, and still there
  std::uint64_t void_until = 0;         ///< copies of the model of worlds up to this one are wrong

  friend bool operator==(persisted_state const&, persisted_state const&) = default;
};

/// A file with a master's persisted state: one record, with a CRC-32 before it. It is written whole, and
/// replaced: a crash leaves the old or the new one. The one before stays as `PATH.before`, for a successor
/// that finds this one damaged or not there. What is old in it does no harm: members know of newer
/// generations, and a master goes above them (`join_request::heard`). Thread safety: distinct objects: safe.
/// Shared objects: unsafe.
class journal {
 public:
  /// `run`: what tells this run of the job from all others; a file of another run is none. An empty `path`:
  /// nothing is kept. `most`: what it is to outlive; less than the power, where all that it tells of ends
  /// with that.
  journal(std::string path, std::string run, forced most = forced::name)
      : path_(std::move(path)), run_(std::move(run)), most_(most) {}

  std::string const& path() const { return path_; }

  /// What the master before this one has left; nothing when there was none. Throws error, which says what is
  /// wrong and where, when the file is damaged and so is the one before. Throws storage_error when it cannot
  /// be read.
  std::optional<persisted_state> read();

  /// Why `read` took the journal before; empty: it did not.
  std::string const& trouble() const { return trouble_; }

  /// Keeps `now`; cheap when nothing has changed. Throws error when it cannot be written: then the one that
  /// was written last stays.
  void write(persisted_state const& now, forced what = forced::name);

  /// Removes it: the job is over. Never throws.
  void remove() noexcept;

  /// Where the master listens whose journal stands at `path`, whatever its run. Throws error.
  static std::vector<std::string> addresses(std::string const& path);

 private:
  std::string path_, run_, trouble_;
  forced most_;
  std::optional<persisted_state> written_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/journal.ipp"
#endif

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

/// The state that only the master has. The servers' or the workers' ledgers contain what has been applied;
/// members report themselves when they join. So this is all that a successor needs to continue.
struct persisted_state {
  std::uint64_t generation = 0;
  std::uint32_t members = 0;  ///< number of workers that took part
  std::uint32_t wanted_servers = 0;
  std::optional<std::uint64_t> evaluated;  ///< the newest version whose evaluation is complete
  lineages::record workers, servers;
  std::uint64_t events = 0;             ///< of the platform that have been handled
  std::vector<std::string> addresses;   ///< of the master
  std::vector<std::string> avoided{};   ///< names of machines to avoid
  bool finished = false;                ///< the job is finished: members may have left
  gradient_checks::known good{};        ///< verified results
  std::optional<std::uint64_t> undo{};  ///< checkpoints of later versions are wrong, and still exist
  std::uint64_t void_until = 0;         ///< copies of the model of worlds up to this one are wrong

  friend bool operator==(persisted_state const&, persisted_state const&) = default;
};

/// A file with a master's persisted state: one record, preceded by a CRC-32. It is replaced atomically: a
/// crash leaves the old or the new one. The previous one stays as `PATH.before`, for a successor that finds
/// this one damaged or missing. Outdated contents are harmless: members know newer generations, and a master
/// continues above them (`join_request::heard`). Thread safety: distinct objects: safe. Shared objects:
/// unsafe.
class journal {
 public:
  /// `run`: identifies this run of the job; files of other runs are ignored. With an empty `path` nothing is
  /// stored. `most`: what the file must survive; not a power failure, if everything that it describes ends
  /// with that.
  journal(std::string path, std::string run, forced most = forced::name)
      : path_(std::move(path)), run_(std::move(run)), most_(most) {}

  std::string const& path() const { return path_; }

  /// The previous master's state; empty if there was none. If the file is damaged, the state in the previous
  /// one; if that is damaged or missing, too, empty: to the master both are lost, and it keeps the file as
  /// `PATH.damaged`. Throws storage_error if a file cannot be read.
  std::optional<persisted_state> read();

  /// Why `read` could not use the file, with the fault and the place; empty: it could.
  std::string const& trouble() const { return trouble_; }

  /// Stores `now`; cheap if nothing has changed. Throws error if it cannot be written: the last one then
  /// stays.
  void write(persisted_state const& now, forced what = forced::name);

  /// Removes it: the job is over. Never throws.
  void remove() noexcept;

  /// The addresses of the master whose journal is at `path`, for any run. Throws error.
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

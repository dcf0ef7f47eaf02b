// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "edl/core/generation.hpp"
#include "edl/job/master/command.hpp"
#include "edl/job/master/placement.hpp"
#include "edl/job/master/roll_call.hpp"
#include "edl/job/master/time.hpp"

namespace edl::master {

/// The common state of a job's parameter servers, by generation: the servers with the newest state of each
/// range, those that will serve it, and those that are configured.
///
/// Existing servers continue with their state; a server that lacks a range copies it from one that has it. If
/// no server has a range, all roll back to a checkpoint. A successor of a master waits briefly for the
/// existing servers, and continues with their state if it is complete.
///
/// The caller passes the existing servers (`there`). Thread safety: distinct objects: safe. Shared objects:
/// unsafe.
class server_generations {
 public:
  struct options {
    std::uint32_t wanted = 0;  ///< servers
    std::uint32_t ranges = 0;  ///< of the variables
    unsigned copies = 1;       ///< of each range
    duration gathering{};      ///< how long to wait for servers of the previous master
  };

  /// `past`: the generation of the previous master's servers; 0: none.
  server_generations(options o, std::uint64_t past, time_point now) : options_(o), past_(past), began_(now) {}

  std::uint32_t wanted() const { return options_.wanted; }
  std::uint32_t ranges() const { return options_.ranges; }
  void want(std::uint32_t servers) {
    options_.wanted = servers;
    if (!ever_) of_past_ = std::max(of_past_, servers);
  }

  // ---- While servers gather ----

  /// A server has joined, with the state of these ranges, of generation and version `held` (0: none). True:
  /// its state is newer than any that this master knows, and the servers continue with it. `forming`: no
  /// generation is configured yet.
  bool joined(std::uint32_t id, position held, std::vector<std::uint32_t> const& ranges, bool forming);
  void lost(std::uint32_t id);

  /// The machine of a server is about to go: the next generations place its ranges on others, while there are
  /// any. True: there are.
  bool vacate(std::uint32_t id, std::set<std::uint32_t> const& there);
  /// Whether a server has nothing any more, and its successor may take its place.
  bool vacant(std::uint32_t id) const;
  bool any_leaves() const { return !leaving_.empty(); }

  /// Whether all required servers exist.
  bool all_there(std::set<std::uint32_t> const& there) const;

  /// Whether an existing server has each range.
  bool whole(std::set<std::uint32_t> const& there) const { return covered(ranges(), there, holders_); }

  enum class past_state { none, awaited, intact, gone };

  /// Whether the previous master's servers can continue with their state: not if it is behind the newest
  /// checkpoint. Decided once: `intact` and `gone` are final.
  past_state look_at_past(std::set<std::uint32_t> const& there, position const& checkpoint, time_point now);
  bool awaits_past() const { return past_ != 0; }
  /// The previous state, as servers have reported it so far.
  position past() const { return {past_, past_version_}; }

  /// Sets whether the next generation continues with the servers' state, or begins with a checkpoint.
  void keep(bool yes) { keeping_ = yes; }

  /// No server has a valid state.
  void forget();

  // ---- While they take a generation's state ----

  /// How the existing servers get a generation's state: from `checkpoint` (empty: initial values), or their
  /// own after `keep`.
  configure_servers configure(std::uint64_t generation, std::set<std::uint32_t> const& there,
                              std::string const& checkpoint);

  /// A server has the state; `kept`: what it has applied, if it kept its own. True: all of `there` have it.
  bool configured(std::uint32_t id, std::optional<copy_position> kept, std::set<std::uint32_t> const& there);
  bool has_state(std::uint32_t id) const { return configured_.contains(id); }
  void begin_again() { configured_.clear(); }  ///< no server has the next generation's state

  /// What all have applied, for a kept state; returned once.
  std::optional<copy_position> take_kept();

  /// The distance of the next generation above a newer one that a server knows: doubled each time.
  std::uint64_t leap();

  bool keeping() const { return keeping_; }
  bool ever_configured() const { return ever_; }  ///< by this master
  std::vector<range_place> const& places() const { return places_; }

 private:
  std::set<std::uint32_t> staying(std::set<std::uint32_t> const& there) const;

  options options_;
  std::uint64_t past_, past_version_ = 0;
  std::uint32_t of_past_ = 0;  // most servers that were required before the first generation
  time_point began_;
  std::set<std::uint32_t> configured_;
  std::set<std::uint32_t> leaving_;  // their machines are about to go
  bool keeping_ = false;
  bool ever_ = false;
  range_holders holders_;  // of the newest complete generation's state
  std::vector<range_place> places_;
  std::optional<copy_position> kept_;
  std::uint64_t leap_ = 1;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/server_generations.ipp"
#endif

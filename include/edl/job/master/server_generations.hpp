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

/// What the parameter servers of a job have in common, generation by generation. It knows the holders of the
/// newest state of each range, the servers that are to serve it, and those that are configured.
///
/// Whoever is there goes on with what the servers have; a server that lacks something takes it from one that
/// has it. If a range is nowhere any more, all go back to a checkpoint. A master in the place of another
/// waits a moment for the servers that it left behind. It goes on with their state when nothing of it is
/// lost.
///
/// Which servers are there (`there`) is the caller's knowledge. Thread safety: distinct objects: safe. Shared
/// objects: unsafe.
class server_generations {
 public:
  struct options {
    std::uint32_t wanted = 0;  ///< servers
    std::uint32_t ranges = 0;  ///< of the variables
    unsigned copies = 1;       ///< of each range
    duration gathering{};      ///< for how long servers of the past are waited for
  };

  /// `past`: the generation that another master has left to its servers; 0: none.
  server_generations(options o, std::uint64_t past, time_point now) : options_(o), past_(past), began_(now) {}

  std::uint32_t wanted() const { return options_.wanted; }
  std::uint32_t ranges() const { return options_.ranges; }
  void want(std::uint32_t servers) {
    options_.wanted = servers;
    if (!ever_) of_past_ = std::max(of_past_, servers);
  }

  // ---- While servers gather ----

  /// A server has joined, with the state of these ranges, of generation and version `held` (0: none). True:
  /// it has a newer state than this master knows of, and the servers go on with that. `forming`: no
  /// generation is configured yet.
  bool joined(std::uint32_t id, position held, std::vector<std::uint32_t> const& ranges, bool forming);
  void lost(std::uint32_t id);

  /// Whether all who are wanted are there.
  bool all_there(std::set<std::uint32_t> const& there) const;

  /// Whether every range has a holder among those that are there.
  bool whole(std::set<std::uint32_t> const& there) const { return covered(ranges(), there, holders_); }

  enum class past_state { none, awaited, intact, gone };

  /// Whether the servers of the past can go on with their state: not where it is behind the newest
  /// checkpoint. Decided once: `intact` and `gone` end the past.
  past_state look_at_past(std::set<std::uint32_t> const& there, position const& checkpoint, time_point now);
  bool awaits_past() const { return past_ != 0; }
  /// The state of the past that servers have told of so far.
  position past() const { return {past_, past_version_}; }

  /// Whether the next generation goes on with the servers' state, or begins with a checkpoint.
  void keep(bool yes) { keeping_ = yes; }

  /// Nobody has a state that counts.
  void forget();

  // ---- While they take a generation's state ----

  /// How those that are there come to the state of a generation: of `checkpoint` (empty: initial values), or
  /// of their own after `keep`.
  configure_servers configure(std::uint64_t generation, std::set<std::uint32_t> const& there,
                              std::string const& checkpoint);

  /// A server has the state; `kept`: what it has applied, if it was to keep its own. True: all of `there`
  /// have it.
  bool configured(std::uint32_t id, std::optional<copy_position> kept, std::set<std::uint32_t> const& there);
  bool has_state(std::uint32_t id) const { return configured_.contains(id); }
  void begin_again() { configured_.clear(); }  ///< nobody has the next generation's state

  /// What all have applied, of a state that was kept; taken once.
  std::optional<copy_position> take_kept();

  /// By how much the next generation is to be above one that a server knows more than: doubled each time.
  std::uint64_t leap();

  bool keeping() const { return keeping_; }
  bool ever_configured() const { return ever_; }  ///< by this master
  std::vector<range_place> const& places() const { return places_; }

 private:
  options options_;
  std::uint64_t past_, past_version_ = 0;
  std::uint32_t of_past_ = 0;  // servers that were wanted before the first generation, at most
  time_point began_;
  std::set<std::uint32_t> configured_;
  bool keeping_ = false;
  bool ever_ = false;
  range_holders holders_;  // of the state of the newest whole generation
  std::vector<range_place> places_;
  std::optional<copy_position> kept_;
  std::uint64_t leap_ = 1;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/server_generations.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "edl/core/ledger.hpp"
#include "edl/job/master/membership.hpp"

namespace edl::master {

/// The position of a worker's own copy of the model.
struct copy_position {
  std::uint64_t version = 0;
  ledger applied;
  std::uint64_t world = 0;  ///< the last world in which it became, or was confirmed as, the copy
};

/// A worker is ready for the next world.
struct entry {
  std::uint64_t incarnation = 0;
  std::uint64_t last = 0;                  ///< the world that it was in; 0: none
  std::optional<copy_position> copy;       ///< empty: it has none yet
  std::optional<std::uint32_t> suspect;    ///< the member whose silence or loss ended its last world
  std::vector<std::uint32_t> brings = {};  ///< followers that have caught up with it
};

/// A numbered world of workers that train by all-reduce. The rank of a member is its index in `members`.
struct world {
  struct member {
    std::uint32_t id = 0;
    std::uint64_t incarnation = 0;
    std::vector<std::string> addresses;
    bool current = false;  ///< its copy is the world's; the others copy from one of these
  };
  std::uint64_t number = 0;
  std::vector<member> members;  ///< by id
  std::uint64_t version = 0;
  std::uint64_t copied_from = 0;  ///< the world that the current copies are of
  std::uint32_t wanted = 0;       ///< number of members that the job should have
  std::string restore;  ///< if no member's copy is current: a checkpoint's directory; empty: initial values
};

/// Determines the workers that are ready for the next world, and whose copies of the model it uses: those of
/// the newest world, and among these of the newest version. So a step that one member has completed is kept,
/// and one that none has completed is repeated. The copy of a worker that was cut off from a world is not
/// used in a later one, for any version.
///
/// A link between two members may fail while both reach the master; worlds would then break for ever. So
/// `suspect` returns the member that was suspected most, in `threshold` worlds without progress. Each world
/// counts once, for any number of members that suspect it.
///
/// A new worker may follow first: it copies the model while the others train. No world waits for it before it
/// enters, or a member that it has followed brings it in.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class roll_call {
 public:
  explicit roll_call(unsigned threshold = 3) : threshold_(threshold) {}

  void enter(std::uint32_t id, entry e);
  void follow(std::uint32_t id) { followers_.insert(id); }
  bool follows(std::uint32_t id) const { return followers_.contains(id); }
  void forget(std::uint32_t id);
  void clear();

  bool empty() const { return entries_.empty(); }
  bool has(std::uint32_t id, std::uint64_t incarnation) const;
  /// Whether a world must wait for this worker: for a follower only if no other worker has a copy.
  bool awaits(std::uint32_t id) const { return !follows(id) || !newest(); }

  /// Whether all awaited workers have entered.
  bool complete(membership const& workers) const;

  /// The newest copy among the entered workers; null: none has one.
  copy_position const* newest() const;

  /// The world of the entered workers, continuing from `version`. A world with a newer version clears all
  /// suspicion.
  world form(std::uint64_t number, membership const& workers, std::uint64_t version, std::string restore);

  /// The worker to give up for the sake of the others; each call returns it only once.
  std::optional<std::uint32_t> suspect();

 private:
  struct suspicion {
    unsigned worlds = 0, voices = 0;
    bool counted = false;  // of the last world
  };

  unsigned threshold_;
  std::map<std::uint32_t, entry> entries_;
  std::map<std::uint32_t, suspicion> suspicions_;
  std::set<std::uint32_t> followers_;
  std::uint64_t reached_ = 0;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/roll_call.ipp"
#endif

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

/// How far a worker's own copy of the model is.
struct copy_position {
  std::uint64_t version = 0;
  ledger applied;
  std::uint64_t world = 0;  ///< the world that it was last made, or found to be, the copy of
};

/// A worker is ready for the next world.
struct entry {
  std::uint64_t incarnation = 0;
  std::uint64_t last = 0;                  ///< the world that it was in; 0: none
  std::optional<copy_position> copy;       ///< nothing: it has yet to get one
  std::optional<std::uint32_t> suspect;    ///< whose silence or loss ended its last world
  std::vector<std::uint32_t> brings = {};  ///< followers that have caught up with it
};

/// A numbered world of workers that train by all-reduce. The rank of a member is its place in `members`.
struct world {
  struct member {
    std::uint32_t id = 0;
    std::uint64_t incarnation = 0;
    std::vector<std::string> addresses;
    bool current = false;  ///< its copy is the world's; the others take it from one of these
  };
  std::uint64_t number = 0;
  std::vector<member> members;  ///< by id
  std::uint64_t version = 0;
  std::uint64_t copied_from = 0;  ///< the world that the current copies are of
  std::uint32_t wanted = 0;       ///< members that the job is to have
  std::string restore;  ///< when no member's copy is current: a checkpoint's directory; empty: initial values
};

/// Which workers are ready for the next world, and whose copies of the model go on in it. Those are the
/// copies of the newest world, and among these of the newest version. So a step that one member has completed
/// is kept, and one that none has is repeated. A worker that was cut off from a world brings nothing into a
/// later one, whatever its version.
///
/// A link between two members may fail while both reach the master; worlds would break for ever. So whoever
/// is suspected most, in `threshold` worlds that got nowhere, is told by `suspect`. However many suspect it,
/// a world counts once.
///
/// A newcomer may follow first: it copies the model while the others train, and no world waits for it before
/// it enters, or one that it has followed brings it.
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
  /// Whether a world has to wait for this one: for who follows, where nobody else brings a copy.
  bool awaits(std::uint32_t id) const { return !follows(id) || !newest(); }

  /// All who are awaited have entered.
  bool complete(membership const& workers) const;

  /// The newest copy of those that have entered; null: none of them has one.
  copy_position const* newest() const;

  /// The world of those who have entered, going on from `version`. Worlds that bring a newer version clear
  /// all suspicion.
  world form(std::uint64_t number, membership const& workers, std::uint64_t version, std::string restore);

  /// Who is to be given up for the sake of the others; asked once, it is asked anew.
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

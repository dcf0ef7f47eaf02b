// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "edl/job/master/membership.hpp"
#include "edl/job/master/roll_call.hpp"
#include "edl/job/master/time.hpp"

namespace edl::master {

/// The worlds of a job whose workers each have a copy of the model. It forms the next one, and tracks its
/// members' frozen versions. A world begins when all workers have entered it. It continues from the newest
/// copy among them, or, only if none has one, from a checkpoint. The caller passes the workers. Thread
/// safety: distinct objects: safe. Shared objects: unsafe.
class worker_worlds {
 public:
  /// `gathering`: how long the first world waits for workers that start at the same time.
  explicit worker_worlds(duration gathering) : gathering_(gathering) {}

  /// The first world waits for this many workers.
  void expect(std::uint32_t workers) { expected_ = workers; }

  // ---- While the next world is being formed ----

  void enter(std::uint32_t worker, entry e, time_point now);
  void left(std::uint32_t worker) {
    roll_.forget(worker);
    able_.erase(worker);
    left_out_.erase(worker);
  }

  /// This worker is able to follow others.
  void can_follow(std::uint32_t worker) { able_.insert(worker); }

  /// A new worker copies the model from others, which continue without it until it enters. False: it cannot
  /// follow any, and takes part in the next world.
  bool follow(std::uint32_t worker, membership const& workers);
  bool follows(std::uint32_t worker) const { return roll_.follows(worker); }
  /// Whether there is a member that follows no other.
  bool may_follow(std::uint32_t worker, membership const& workers) const;

  /// The world is over, and the next one is being formed.
  void broke(time_point now);

  /// The copies in the current world are wrong: the next world uses none of them.
  void void_copies() { void_until_ = world_.number; }
  /// Copies of this world and of those before are wrong; 0: none.
  std::uint64_t void_until() const { return void_until_; }
  void void_copies_until(std::uint64_t world) { void_until_ = world; }

  /// The members have changed: a requested checkpoint is reconsidered.
  void changed() { finding_ = false; }

  /// The next action for the next world.
  struct step {
    enum class kind {
      wait,     ///< for members
      give_up,  ///< `member`, which others cannot reach
      go_on,    ///< from `newest`
      begin,    ///< with the job's initial state
      find,     ///< a checkpoint; `found` ends that
    } action = kind::wait;
    std::uint32_t member = 0;
    copy_position const* newest = nullptr;  ///< until the next event
  };

  /// `restorable`: without any copy there may be a checkpoint.
  step next(membership const& workers, bool restorable, time_point now);

  /// The search for a checkpoint has ended. Returns whether one had been requested.
  bool found();
  bool asks() const { return finding_; }

  /// Whether any worker that has entered has a copy.
  bool has_copy() const { return roll_.newest() != nullptr; }
  bool has_entered(std::uint32_t worker, std::uint64_t incarnation) const {
    return roll_.has(worker, incarnation);
  }

  /// Workers that have not entered for `timeout`, while others wait.
  std::vector<std::uint32_t> absent(membership const& workers, duration timeout, time_point now) const;

  /// Members of the world without a sign of life for longer than `patience`, while all others wait for them;
  /// none if one of them is not able to follow. For each time that a worker was left out its patience
  /// doubles.
  std::vector<std::uint32_t> missed(membership const& workers, duration patience, time_point now) const;
  /// The next world is formed without this worker, which then follows. False: it cannot follow any.
  bool leave_out(std::uint32_t worker, membership const& workers);

  /// The master heard nobody for this long: does not count that time against any worker.
  void excuse(duration absence, time_point now);

  // ---- The world ----

  /// Begins the world of the workers that have entered. Returns the versions that no longer need to stay
  /// frozen for a checkpoint.
  std::vector<std::uint64_t> begin(std::uint64_t number, membership const& workers, std::uint64_t version,
                                   std::string const& restore, time_point now);

  world const& current() const { return world_; }  ///< of no member before the first
  bool none_yet() const { return world_.number == 0; }

  /// The members that have a version frozen, if the world has it: all of them or, if the world began with
  /// that version or a newer one, those whose copies it uses.
  std::vector<std::uint32_t> holders(std::uint64_t version) const;

  // ---- What members have frozen ----

  void freeze(std::uint64_t version);  ///< for an evaluation
  void release(std::uint64_t version) { held_.erase(version); }
  bool is_frozen(std::uint64_t version) const { return held_.contains(version); }

  /// The world ended before checkpoints of these versions were written.
  void not_written(std::vector<std::uint64_t> const& versions);

 private:
  duration gathering_;
  std::uint32_t expected_ = 0;
  roll_call roll_;
  std::set<std::uint32_t> able_;                  // to follow
  std::map<std::uint32_t, unsigned> left_out_{};  // how many times
  world world_;
  time_point began_{};  // the world
  std::optional<time_point> forming_since_;
  std::optional<time_point> awaited_since_;                // the workers that have not entered
  std::map<std::uint64_t, std::set<std::uint32_t>> held_;  // versions to evaluate, and who holds them
  std::vector<std::uint64_t> unwritten_;
  bool finding_ = false;
  std::uint64_t void_until_ = 0;  // copies of worlds up to this one are wrong
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/worker_worlds.ipp"
#endif

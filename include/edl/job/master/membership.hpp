// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "edl/core/process_id.hpp"
#include "edl/core/trained.hpp"
#include "edl/job/master/time.hpp"

namespace edl::master {

using edl::role;

/// A role as log lines name it.
inline char const* in_words(role of) { return of == role::worker ? "worker" : "server"; }

/// The data of a heartbeat.
struct vitals {
  std::uint64_t version = 0;  ///< of the model, last seen
  std::uint64_t records = 0;  ///< trained since the process started
  float loss = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t position = 0;  ///< passes over a minibatch begun plus ended: odd within one
  float pass = 0;  ///< workers: seconds for a record, the median of the newest passes of training; 0: few yet
  edl::trained trained = {};  ///< since the process started
  std::string notice = {};    ///< who is about to take its machine away, and when; empty: nobody
};

/// A worker's measurements of its machine at the start, in bytes per second; 0: not measured.
struct start_speeds {
  double disk = 0;     ///< of writing a file and syncing it
  double network = 0;  ///< of sending to the master
};

/// A process that takes part. Its id is its position in the job; its random incarnation identifies the
/// process.
struct member {
  std::uint32_t id = 0;
  std::uint64_t incarnation = 0;
  std::vector<std::string> addresses;
  std::string kind = {};  ///< of its processor
  time_point joined, seen;
  time_point measured;  ///< when `rate` was measured
  time_point moved;     ///< when its position last changed
  vitals last;
  edl::trained trained;  ///< according to all messages so far
  double rate = 0;       ///< records per second, smoothed over several heartbeats
};

/// The processes of one role that are alive, as far as known. Thread safety: distinct objects: safe. Shared
/// objects: unsafe.
class membership {
 public:
  enum class standing {
    fresh,     ///< a new member
    repeated,  ///< is one already
    given_up,  ///< was one, was given up, and never comes back
  };

  /// `silence`: a member without a sign of life for this long is lost; `pass`: a member in one pass for this
  /// long may hang.
  explicit membership(duration silence = std::chrono::seconds(5), duration pass = std::chrono::seconds(60))
      : silence_(silence), pass_(pass) {}

  /// What `join` would return.
  standing check(std::uint32_t id, std::uint64_t incarnation) const;

  /// Adds a process. Gives up another incarnation of its id first.
  standing join(std::uint32_t id, std::uint64_t incarnation, std::vector<std::string> addresses,
                time_point now, std::string kind = {});

  /// A sign of life. False: not a member.
  bool seen(std::uint32_t id, std::uint64_t incarnation, time_point now);

  /// A sign of life with numbers. False: not a member.
  bool heartbeat(std::uint32_t id, std::uint64_t incarnation, vitals const& v, time_point now);

  /// Records how much a member has trained since it started; older or repeated reports have no effect.
  void announced(std::uint32_t id, edl::trained const& all);

  /// Gives an incarnation up permanently. False: it was not a member (and is not remembered).
  bool lose(std::uint32_t id, std::uint64_t incarnation, time_point now = {});

  /// Members that are gone and were alive a moment before: those that said goodbye, or exited.
  std::set<std::uint32_t> const& left() const { return left_; }

  /// Members without a sign of life for longer than `silence`, by id. Changes nothing.
  std::vector<member> silent(time_point now) const;

  /// Members that are alive but make no progress: they are in one pass for longer than `pass`, and longer
  /// than 20 times the longest completed pass of any member. A process's first pass is exempt, because it
  /// measures kernels. Changes nothing.
  std::vector<member> hanging(time_point now) const;

  /// No member could be heard for `pause`: does not count it as silence, or as part of a pass.
  void excuse(duration pause, time_point now);

  /// The member; null: there is none.
  member const* find(std::uint32_t id) const;
  bool known(std::uint32_t id, std::uint64_t incarnation) const {
    return check(id, incarnation) == standing::repeated;
  }

  std::map<std::uint32_t, member> const& all() const { return members_; }
  bool all_gone() const { return members_.empty(); }
  /// The last loss reported by any member, including those that have left; 0: none has trained.
  double last_loss() const { return last_loss_; }
  /// The sum of all members' reports, including those that are gone.
  edl::trained const& trained() const { return trained_; }

 private:
  duration silence_, pass_, longest_pass_{};
  double last_loss_ = 0;
  edl::trained trained_;
  std::map<std::uint32_t, member> members_;
  std::set<std::pair<std::uint32_t, std::uint64_t>> given_up_;
  std::set<std::uint32_t> left_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/membership.ipp"
#endif

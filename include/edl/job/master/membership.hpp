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

/// What a process tells about itself in a heartbeat.
struct vitals {
  std::uint64_t version = 0;  ///< of the model, last seen
  std::uint64_t records = 0;  ///< trained since the process started
  float loss = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t position = 0;  ///< passes over a minibatch begun and ended: odd in the middle of one
  float pass = 0;  ///< workers: seconds for a record, the median of the newest passes of training; 0: few yet
  edl::trained trained = {};  ///< since the process started
};

/// What a worker has measured of its machine as it began, in bytes a second; 0: nothing.
struct start_speeds {
  double disk = 0;     ///< written to a file, and forced
  double network = 0;  ///< sent to the master
};

/// A process that takes part. Its id is its place in the job; its incarnation, drawn at random, is the
/// process.
struct member {
  std::uint32_t id = 0;
  std::uint64_t incarnation = 0;
  std::vector<std::string> addresses;
  std::string kind = {};  ///< of its processor
  time_point joined, seen;
  time_point measured;  ///< when `rate` was
  time_point moved;     ///< when another position was heard of
  vitals last;
  edl::trained trained;  ///< as far as was heard, by whatever message
  double rate = 0;       ///< records a second, smoothed over some heartbeats
};

/// The processes of one role that are alive as far as is known.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class membership {
 public:
  enum class standing {
    fresh,     ///< a new member
    repeated,  ///< is one already
    given_up,  ///< was one, was given up, and never comes back
  };

  /// `silence`: a member that gives no sign for so long is lost; `pass`: one that is at one pass for so long
  /// may hang.
  explicit membership(duration silence = std::chrono::seconds(5), duration pass = std::chrono::seconds(60))
      : silence_(silence), pass_(pass) {}

  /// What `join` would answer.
  standing check(std::uint32_t id, std::uint64_t incarnation) const;

  /// Takes a process in. Another incarnation of its id is given up first.
  standing join(std::uint32_t id, std::uint64_t incarnation, std::vector<std::string> addresses,
                time_point now, std::string kind = {});

  /// A sign of life. False: not a member.
  bool seen(std::uint32_t id, std::uint64_t incarnation, time_point now);

  /// A sign of life with numbers. False: not a member.
  bool heartbeat(std::uint32_t id, std::uint64_t incarnation, vitals const& v, time_point now);

  /// A member has trained so much since it started; what was heard before, or is older, changes nothing.
  void announced(std::uint32_t id, edl::trained const& all);

  /// Gives an incarnation up, for good. False: it was no member (and is not remembered).
  bool lose(std::uint32_t id, std::uint64_t incarnation, time_point now = {});

  /// Who is gone, and was heard of a moment before: whoever says goodbye, or ends.
  std::set<std::uint32_t> const& left() const { return left_; }

  /// Members without a sign of life for longer than `silence`, by id. Changes nothing.
  std::vector<member> silent(time_point now) const;

  /// Members that give signs of life and get no further. They are in the middle of a pass for longer than
  /// `pass`. That is also longer than 20 times the longest pass of any member that has come to an end. A
  /// process' first pass takes as long as it takes: kernels are measured in it. Changes nothing.
  std::vector<member> hanging(time_point now) const;

  /// Nobody can have been heard for `pause`: it does not count as anybody's silence, or pass.
  void excuse(duration pause, time_point now);

  /// Null: no such member.
  member const* find(std::uint32_t id) const;
  bool known(std::uint32_t id, std::uint64_t incarnation) const {
    return check(id, incarnation) == standing::repeated;
  }

  std::map<std::uint32_t, member> const& all() const { return members_; }
  bool all_gone() const { return members_.empty(); }
  /// The last that any of them told, those who have left among them; 0: nobody has trained.
  double last_loss() const { return last_loss_; }
  /// What all have told together, those who are gone among them.
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

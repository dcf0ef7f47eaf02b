// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "edl/job/master/time.hpp"

namespace edl::master {

/// How a process ended.
enum class exit_kind {
  preempted,  ///< killed or deleted from outside; not for lack of memory
  failed,
};

/// Tracks successors. A process and its successors form a lineage. Processes ended from outside are replaced
/// without limit, failed ones only within the lineage's budget.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class lineages {
 public:
  struct options {
    std::uint32_t count = 0;   ///< processes 0 … count-1 are being started
    std::uint32_t budget = 1;  ///< failures of a lineage that are compensated
    bool same_id = false;      ///< a replacement gets the old id; otherwise the next id
    bool closed = false;       ///< an unknown process begins no lineage: it has been replaced already
    duration grace =
        std::chrono::seconds(10);  ///< between losing contact with a process and replacing it unasked
    duration pause{};  ///< before what has failed twice is replaced; doubled by each more, to a minute
  };

  struct replacement {
    std::uint32_t id = 0, with = 0;
    friend bool operator==(replacement const&, replacement const&) = default;
  };

  /// The data that a successor needs to continue.
  struct record {
    struct line {
      std::uint32_t id = 0, failures = 0;
      bool ended = false;
      friend bool operator==(line const&, line const&) = default;
    };
    std::uint32_t next = 0;
    std::vector<line> lines;
    friend bool operator==(record const&, record const&) = default;
  };

  explicit lineages(options o);

  /// Continues another's lineages at `now`: a process that does not return within the grace is replaced.
  lineages(options o, record const& before, time_point now);

  record now() const;
  std::uint64_t changes() const { return changes_; }  ///< increases whenever `now` changes
  options const& of() const { return options_; }

  /// Begins a lineage, whose process must be started; returns its id.
  std::uint32_t add();

  /// Ends the newest lineage: its process must be stopped, without a successor. Returns its id.
  std::uint32_t drop_newest();

  /// The same for the lineage whose newest process is `id`. False: there is none.
  bool drop(std::uint32_t id);

  std::size_t size() const { return lines_.size(); }

  /// The process is in contact; an unknown id begins a lineage, unless they are closed.
  void joined(std::uint32_t id);

  /// Contact was lost.
  void lost(std::uint32_t id, time_point now);

  /// The process was given up: it is replaced at once, and its end does not count as a failure. Empty: it has
  /// been replaced already, or has used up its budget.
  std::optional<replacement> given_up(std::uint32_t id);

  /// The process ended. Empty: it is not replaced now (it has been already, will be after a pause, or has
  /// used up its budget).
  std::optional<replacement> exited(std::uint32_t id, exit_kind kind, std::string const& why,
                                    time_point now = {});

  /// The pause before a failed process is replaced; empty: no pause.
  std::optional<duration> pauses(std::uint32_t id) const;

  /// Replaces processes whose pause is over, or whose end was not reported within the grace. Counts no
  /// failure.
  std::vector<replacement> overdue(time_point now);

  /// Number of lineages that have used up their budget, and whether that is all of them.
  std::size_t ended() const { return ended_; }
  bool all_ended() const { return ended_ > 0 && ended_ == lines_.size(); }

  /// The reason: the failures' common cause, or the last one.
  std::string reason() const;

 private:
  struct line {
    std::uint32_t failures = 0;
    bool ended = false;             // budget used up
    bool waits = false;             // has failed, and is replaced after a pause
    std::optional<time_point> due;  // when it is replaced unasked
  };

  replacement replace(std::map<std::uint32_t, line>::iterator it);
  duration pause_after(std::uint32_t failures) const;

  options options_;
  std::map<std::uint32_t, line> lines_;  // by the id of the newest process
  std::uint32_t next_id_;
  std::size_t ended_ = 0;
  std::uint64_t failures_ = 0;
  std::uint64_t changes_ = 0;
  bool same_reason_ = true;
  std::string last_reason_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/lineage.ipp"
#endif

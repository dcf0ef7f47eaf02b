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
  preempted,  ///< killed or deleted from outside; out of memory is not that
  failed,
};

/// Who replaces whom. The processes that stand in for one another are a lineage. Those that end from outside
/// are replaced without end, those that fail only within the lineage's budget.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class lineages {
 public:
  struct options {
    std::uint32_t count = 0;   ///< processes 0 … count-1 are being started
    std::uint32_t budget = 1;  ///< failures of a lineage that are made good
    bool same_id = false;      ///< a replacement takes the place of the old; otherwise it gets the next id
    bool closed = false;       ///< who is unknown begins no lineage: it is one that has been replaced already
    duration grace =
        std::chrono::seconds(10);  ///< between losing contact with a process and replacing it unasked
    duration pause{};  ///< before what has failed twice is replaced; doubled by each more, to a minute
  };

  struct replacement {
    std::uint32_t id = 0, with = 0;
    friend bool operator==(replacement const&, replacement const&) = default;
  };

  /// What a successor needs to go on.
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

  /// Goes on where another ended, at `now`: who does not come again within the grace is replaced.
  lineages(options o, record const& before, time_point now);

  record now() const;
  std::uint64_t changes() const { return changes_; }  ///< greater whenever `now` is another
  options const& of() const { return options_; }

  /// Begins a lineage, whose process is to be started: its id.
  std::uint32_t add();

  /// Ends the newest lineage: its process is to be stopped, and nobody follows. Its id.
  std::uint32_t drop_newest();

  /// The same of the lineage whose newest process is `id`. False: there is none.
  bool drop(std::uint32_t id);

  std::size_t size() const { return lines_.size(); }

  /// The process is in contact; an unknown id begins a lineage, unless they are closed.
  void joined(std::uint32_t id);

  /// Contact was lost.
  void lost(std::uint32_t id, time_point now);

  /// The process is not wanted any more: it is replaced at once, and how it ends is nobody's fault. Nothing:
  /// it has been replaced already, or has used up its budget.
  std::optional<replacement> given_up(std::uint32_t id);

  /// The process ended. Nothing: it is not replaced now (has been already, will be after a pause, or has used
  /// up its budget).
  std::optional<replacement> exited(std::uint32_t id, exit_kind kind, std::string const& why,
                                    time_point now = {});

  /// How long a process that has failed is not replaced yet, at its failure; nothing: it does not wait.
  std::optional<duration> pauses(std::uint32_t id) const;

  /// Takes those whose pause is over, or whose end was not told within the grace, and replaces them. Nobody's
  /// fault is counted.
  std::vector<replacement> overdue(time_point now);

  /// Lineages that have used up their budget, and whether that is all of them.
  std::size_t ended() const { return ended_; }
  bool all_ended() const { return ended_ > 0 && ended_ == lines_.size(); }

  /// Why: what the failures had in common, or the last of them.
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "world/plan.hpp"

namespace simulation {

using std::chrono::milliseconds;

/// What is done to a job. A place is a host with the process that is there: "master", "server-0", "worker-2".
struct fault {
  enum class kind {
    kill,          ///< SIGKILL
    terminate,     ///< SIGTERM, as a node that is drained
    stop,          ///< SIGSTOP, and SIGCONT after `length`
    hang,          ///< a worker stays in its next pass for `length`
    power,         ///< the host is gone without a word for `length`
    cut,           ///< nothing passes between `place` and `other` for `length`
    isolate,       ///< nothing passes between `place` and all others for `length`
    reset,         ///< between `place` and `other` all takes `length`, then their connections are reset
    delay,         ///< between `place` and `other` all takes `number` ms more for `length`
    strand,        ///< connections between `place` and `other` are half-open from then on
    swallow,       ///< what `place` answers `other` on open connections is acknowledged, and lost
    one_way,       ///< what `place` sends to `other` does not come for `length`
    slow_disk,     ///< each fsync of the storage takes `number` ms for `length`, each open a 40th of that
    full_disk,     ///< ENOSPC for `length`
    failing_disk,  ///< `number` of a hundred calls give EIO for `length`
    journal,  ///< one bit of the master's journal is changed, or the file is cut off; the master is killed
    clock,    ///< the system's clock of `place` is off by `number` s for `length`
    workers,  ///< there are to be `number` workers
    servers,  ///< there are to be `number` servers
    lose,  ///< the next thing that `place` answers `other` is acknowledged, and lost; the connection lives on
    old_end,   ///< connections of `place` to `other` end there at once, and at `other` only after `length`
    blackout,  ///< all processes are gone at once, and with them what was not forced to the storage
    /// The master, and members by the lower bits of `number`, are cut off from the others for `length`. All
    /// write to the storage as they can, and then that half is gone, with its master's journal. With bit 32
    /// it stands still for that time instead, on storage whose locks nobody else sees. The others get a
    /// master of their own meanwhile, and both go on.
    halves,
    /// The machine of `place` has notice (`--preemption_notice`), and is taken away after `length`.
    notice
  };

  /// What a fault waits for. Of calls between two places those count that it is about.
  struct moment {
    /// "start", "send", "connect", "fsync", "rename", "end" (all is trained), "line" (of its log), or words
    /// of such a line; empty: none
    std::string what;
    std::string of;  ///< the place of the process that does so, or says it
    std::uint64_t nth = 1;
    milliseconds later{};
    friend bool operator==(moment const&, moment const&) = default;
  };

  milliseconds at{};  ///< with a moment: from when on they count
  kind what = kind::kill;
  std::string place, other;
  milliseconds length{};
  std::uint64_t number = 0;
  moment on = {};

  milliseconds end() const { return at + length; }
  friend bool operator==(fault const&, fault const&) = default;
};

char const* name_of(fault::kind what);

/// As `--faults` takes it: "12.34 cut worker-0 server-1 for 20 number 3", "5 kill server-0 on rename master 2
/// after 0.1".
std::string to_string(fault const& f);
std::string to_string(std::vector<fault> const& all);  ///< separated by "; "

/// Throws std::invalid_argument, which says what cannot be read.
std::vector<fault> parse_faults(std::string_view text);

/// What happens in the history of a seed, in the order of its times.
std::vector<fault> draw_faults(plan const& of);

}  // namespace simulation

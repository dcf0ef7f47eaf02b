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
    one_way,       ///< what `place` sends to `other` does not come for `length`
    slow_disk,     ///< each fsync of the storage takes `number` ms for `length`
    full_disk,     ///< ENOSPC for `length`
    failing_disk,  ///< EIO for `length`
    journal,   ///< one bit of the master's journal is changed, or the file is cut off; the master is killed
    workers,   ///< there are to be `number` workers
    servers,   ///< there are to be `number` servers
    newcomer,  ///< the next process of `place` is killed `number` ms after its start
    newcomer_stop  ///< the next process of `place` is stopped `number` ms after its start, for `length`
  };

  milliseconds at{};
  kind what = kind::kill;
  std::string place, other;
  milliseconds length{};
  std::uint64_t number = 0;

  milliseconds end() const { return at + length; }
  friend bool operator==(fault const&, fault const&) = default;
};

char const* name_of(fault::kind what);

/// As `--faults` takes it: "12.34 cut worker-0 server-1 for 20 number 3".
std::string to_string(fault const& f);
std::string to_string(std::vector<fault> const& all);  ///< separated by "; "

/// Throws std::invalid_argument, which says what cannot be read.
std::vector<fault> parse_faults(std::string_view text);

/// What happens in the history of a seed, in the order of its times.
std::vector<fault> draw_faults(plan const& of);

}  // namespace simulation

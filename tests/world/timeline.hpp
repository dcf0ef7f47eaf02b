// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "world/world.hpp"

namespace simulation {

/// A line of a process' log, without its time and its place in the source.
struct log_line {
  std::string level;  ///< "INFO", "WARNING", …; empty: no line of a log
  std::string text;
};
log_line read_line(std::string_view text);

/// What happened in a history, for people, and how often paths that are rare were gone, as the logs tell.
class timeline {
 public:
  void say(std::string who, std::string text);  ///< of the simulation itself: faults, starts, ends
  void hear(std::string const& who, log_line const& line);

  /// One line each: seconds, process, what happened. Repetitions are left out; of very many the first and
  /// last.
  std::string text(std::size_t most = 160) const;

  std::map<std::string, std::uint64_t> const& paths() const { return paths_; }
  static std::vector<std::string> all_paths();  ///< names that `paths` may have

 private:
  struct entry {
    world::duration when;
    std::string who, text;
  };
  std::vector<entry> entries_;
  std::map<std::string, std::uint64_t> paths_;
};

}  // namespace simulation

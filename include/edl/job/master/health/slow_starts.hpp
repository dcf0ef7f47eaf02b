// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "edl/job/master/membership.hpp"

namespace edl::master {

/// Finds workers whose machines wrote to their disk, or sent to the master, much more slowly than their
/// siblings' at the start. Disks and networks are shared, so the factor is larger than the load of other
/// programs explains.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class slow_starts {
 public:
  struct options {
    double factor = 8;         ///< slower by more than this than the median of its siblings
    std::size_t siblings = 2;  ///< at least: others of the same kind of processor
  };

  struct slow {
    std::uint32_t worker = 0;
    std::string why;  ///< "is slow: …"
  };

  explicit slow_starts(options o) : options_(o) {}
  slow_starts() : slow_starts(options{}) {}

  /// Records a new worker's measurements.
  void began(std::uint32_t worker, start_speeds const& speeds) { records_[worker] = {speeds, {}}; }

  /// Returns each slow worker once.
  std::vector<slow> look(membership const& workers);

 private:
  struct record {
    start_speeds speeds;
    bool told = false;
  };
  void compare(membership const& workers, double start_speeds::* speed, char const* what,
               std::vector<slow>& found);

  options options_;
  std::map<std::uint32_t, record> records_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/health/slow_starts.ipp"
#endif

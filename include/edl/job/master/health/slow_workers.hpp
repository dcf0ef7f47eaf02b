// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "edl/job/master/membership.hpp"
#include "edl/job/master/time.hpp"

namespace edl::master {

/// Finds workers on machines slower than their siblings'. A worker's speed is the median time per record of
/// its newest passes, so that pauses do not count; its siblings are the other workers with the same kind of
/// processor. It is slow if it was slow in several consecutive windows.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class slow_workers {
 public:
  struct options {
    duration window = std::chrono::seconds(30);
    double factor = 1.5;        ///< more than this times the median of its siblings is slow
    unsigned windows = 4;       ///< in a row
    std::uint64_t passes = 16;  ///< needed in a window
    std::size_t siblings = 2;   ///< at least
  };

  struct slow {
    std::uint32_t worker = 0;
    double times = 0;  ///< as long as the median of its siblings
  };

  explicit slow_workers(options o) : options_(o) {}
  slow_workers() : slow_workers(options{}) {}

  /// May be called often. Returns each slow worker once, and again after it was not slow.
  std::vector<slow> look(membership const& workers, time_point now);

 private:
  struct record {
    std::uint64_t incarnation = 0, passes = 0;
    unsigned windows = 0;
  };

  options options_;
  std::optional<time_point> last_;
  std::map<std::uint32_t, record> records_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/health/slow_workers.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>

#include "edl/cluster/autoscaler/spot.hpp"
#include "simulate/spot_job.hpp"

namespace edl::simulate {

/// Uniform Progress (Wu et al., "Can't Be Late", NSDI '24), as SkyNomad's authors extended it to several
/// zones: on demand while behind a steady pace, and back when ahead by two standstills. A new start tries the
/// zones by price, those of the region that was lost last.
class uniform_progress : public spot_job::strategy {
 public:
  explicit uniform_progress(bool alone) : alone_(alone) {}
  bool net() const override { return !alone_; }
  void decide(spot_job& job) override;

 private:
  enum class want { nothing, spot, on_demand };
  want wanted(spot_job const& job, want current, bool spot);

  int seen_ = spot_job::none;  ///< where it ran when it last decided
  bool alone_, leaves_ = false;
};

/// SkyNomad's published policy (Li et al., arXiv 2601.06520): the worth of progress by what the rest would
/// cost, expected lifetimes of zones by the Nelson-Aalen estimate of what was seen, scaled up in bursts, and
/// one probe of each zone.
class skynomad : public spot_job::strategy {
 public:
  explicit skynomad(spot_job const& job) : zones_(std::size_t(job.zones())) {}
  void decide(spot_job& job) override;

 private:
  struct segment {
    double from, to;  ///< seconds
    bool failed;
  };
  struct event {
    double risk;
    int failures;
  };
  struct zone {
    std::vector<segment> seen;
    std::optional<double> since;  ///< it was seen up, and not down
    bool probed = false;          ///< ... by a probe
    bool watched = false;         ///< a probe found it up, and nothing has started there since
    std::optional<double> last_age;
    bool last_probed = false;
    std::deque<event> events;
    double burst = 1;
    int failures = 0, next_probe = 0;
    bool refused = false;  ///< a start failed in this tick
  };
  struct curve {
    std::vector<std::pair<double, double>> knots;  ///< hours, hazard
    double tail = 1e-8;
  };

  void begin(int z, bool probe, spot_job const& job);
  void end(int z, bool failed, spot_job const& job);
  curve hazard(int z) const;
  double lifetime(int z, spot_job const& job) const;  ///< hours
  double available(int z, spot_job const& job) const;
  double on_demand_part(spot_job const& job) const;
  double worth(spot_job const& job) const;
  void update_bursts(spot_job const& job);
  void probe(spot_job& job, int except);

  std::vector<zone> zones_;
  int active_ = spot_job::none, last_ = spot_job::none;
  bool left_ = false;  ///< the active one was given up, not lost
};

/// edl's: autoscaler::decide, asked again where a zone turns out to have no machines.
class edl_policy : public spot_job::strategy {
 public:
  explicit edl_policy(spot_job const& job) : seen_(std::size_t(job.zones())) {}
  void decide(spot_job& job) override;
  bool net() const override { return false; }

 private:
  std::vector<autoscaler::spot_sightings> seen_;
  int was_ = spot_job::none;  ///< the zone whose spot machines it had
};

}  // namespace edl::simulate

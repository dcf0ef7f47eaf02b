// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "simulate/spot_trace.hpp"

namespace edl::simulate {

/// What a start or a move of the job costs. Its machines are paid meanwhile.
struct spot_rules {
  double standstill = 720;                                ///< seconds until the first step
  double same_region = 0, same_continent = 0, else_ = 0;  ///< Gbit/s of the link that carries the state; 0:
                                                          ///< in no time
  double egress = 0.02;                                   ///< USD for a GB that leaves its region
  double probe = 60;                                      ///< seconds that a probe is paid
};

/// Of one job in one window.
struct spot_result {
  double cost = 0;       ///< USD; of the last tick the part that was needed
  double published = 0;  ///< USD as the published tables count it, without the tick in which the job ends
  double last_tick = 0;  ///< USD of all of that tick
  double on_demand = 0;  ///< hours
  int moves = 0;
  bool missed = false;  ///< the deadline
};

/// One job in one window of a market, tick by tick. The published simulator's rules: what runs is paid for
/// whole ticks, and computes after its standstill. Spot machines that are gone at a tick's beginning have
/// computed until then. Before each decision a net catches what would miss the deadline: it goes on demand,
/// for good.
class spot_job {
 public:
  spot_job(spot_trace const& trace, spot_case const& what, spot_rules const& by);

  /// Decides on one tick. Sees the past only: by what was tried.
  struct strategy {
    virtual ~strategy() = default;
    virtual void decide(spot_job& job) = 0;
    virtual bool net() const { return true; }
  };
  spot_result run(strategy& by);

  static constexpr int none = -1;
  int zones() const { return int(case_.zones.size()); }
  spot_zone const& zone(int z) const { return trace_.zones[case_.zones[std::size_t(z)]]; }
  double price(int z) const { return zone(z).price[at()]; }
  spot_rules const& rules() const { return rules_; }
  spot_case const& what() const { return case_; }
  double tick() const { return trace_.tick; }
  int now() const { return now_; }
  double elapsed() const { return now_ * trace_.tick; }
  double deadline() const { return case_.ticks * trace_.tick; }
  double left() const { return case_.work - done_; }  ///< seconds of work
  double done() const { return done_; }
  std::vector<double> const& progress() const { return progress_; }  ///< of each tick
  double standing() const { return standing_; }                      ///< seconds until it computes
  int running() const { return running_; }                           ///< a zone, or none
  bool on_demand() const { return on_demand_; }                      ///< what runs
  int last() const { return last_; }                                 ///< where it computed last
  bool stopped_for_good() const { return caught_; }

  double carry_seconds(int from, int to) const;
  double carry_usd(int from, int to) const;

  bool up(int z) const { return zone(z).up[at()] != 0; }
  bool try_spot(int z);  ///< starts there, in place of what runs; false: there is none
  void go_on_demand(int z);
  void stop() { running_ = none; }
  bool probe(int z);

  /// Hours of work and time that are left in whole ticks, for conditions on the deadline.
  double whole(double seconds) const;
  double time_left() const;

 private:
  std::size_t at() const { return case_.start + std::size_t(now_); }
  void start(int z, bool on_demand);
  void pay_and_progress();
  bool caught();

  spot_trace const& trace_;
  spot_case const& case_;
  spot_rules rules_;
  spot_result result_;
  std::vector<double> progress_;
  int now_ = 0, running_ = none, last_ = none, from_ = none;
  bool on_demand_ = false, started_ = false, caught_ = false;
  double done_ = 0, standing_ = 0, probes_ = 0;
};

/// The least cost that any decisions could have, if all of the window were known before. Backward induction
/// over ticks, zones (spot, on demand, or none) and remaining work, in parts of a tick; where a part is cut,
/// it is cut in favour of the optimum, so that this is a lower bound by less than a part for each start. A
/// start that ends before its first step is left out: it only costs.
double spot_optimum(spot_trace const& trace, spot_case const& what, spot_rules const& by, int parts = 30);

}  // namespace edl::simulate

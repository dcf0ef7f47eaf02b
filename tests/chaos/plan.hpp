// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "chaos/fault.hpp"
#include "edl/core/random.hpp"

namespace chaos {

/// One job, drawn: how it trains and what is to happen to it.
struct plan {
  std::uint64_t seed = 0;
  bool allreduce = false, asynchronous = false, by_hand = false;
  bool fixed = false;    ///< all-reduce: steps and the order of their sums do not depend on who is there
  bool proxied = false;  ///< by hand, too: each worker reaches the master through a relay
  bool plain = false;    ///< without TLS, so that the relay knows replies
  bool judged = false;   ///< a best version, an early end and a moving average; the end cuts the last epoch
  int workers = 2, servers = 0, copies = 1, epochs = 1;
  bool to_the_end = false;  ///< faults go on until the job has ended, not only until its last epoch
  std::vector<intent> faults;

  /// A fixed order of sums; or one worker, whose gradients no order changes, and one server at most. Of
  /// several servers some may have made a step when the worker is killed. The minibatch is then computed
  /// again on what they have.
  bool deterministic() const { return fixed || (workers == 1 && servers <= 1 && !by_hand); }

  std::string strategy() const {
    if (allreduce) return fixed ? "all-reduce, fixed batch" : "all-reduce";
    return std::string(asynchronous ? "servers, asynchronous" : "servers, synchronous") +
           (copies > 1 ? ", 2 copies" : "");
  }

  /// What the results of two jobs that do not differ in it may be compared by.
  std::string configuration() const {
    return strategy() + ", " + std::to_string(workers) + " workers, " + std::to_string(servers) +
           " servers, " + std::to_string(epochs) + " epochs" + (judged ? ", best version and early end" : "");
  }
};

struct plan_options {
  bool allreduce = false;
  int min_faults = 10, max_faults = 30;
  int epochs_per_worker = 12;
  bool hostile = false;       ///< neighbours, storage and journals, too
  bool by_hand = false;       ///< roles started by hand, workers behind networks that can be cut
  bool proxied = false;       ///< by hand, without networks: replies that are lost, records that are altered
  bool signals = false;       ///< to all of the job, and to its command just started
  bool long_silences = true;  ///< they take six seconds and more each
  bool judged = false;        ///< as `plan::judged`: with all-reduce in a fixed order, kills alone
};

/// Always the same for the same seed and options.
inline plan draw_plan(std::uint64_t seed, plan_options const& o) {
  edl::random_stream const random(seed, 0);
  std::uint64_t drawn = 0;
  auto const below = [&](std::uint64_t n) { return random.below(n, drawn++); };
  auto const between = [&](std::int64_t low, std::int64_t high) {
    return milliseconds(low + std::int64_t(below(std::uint64_t(high - low + 1))));
  };
  plan p{.seed = seed, .allreduce = o.allreduce, .by_hand = o.by_hand, .proxied = o.proxied};
  p.workers = o.by_hand ? 3 : int(1 + std::min<std::uint64_t>(below(5), 3));
  p.servers = o.allreduce ? 0 : int(1 + below(3));
  p.asynchronous = !o.allreduce && below(2) == 0;
  if (p.servers > 1) p.copies = int(1 + below(2));
  if (o.allreduce) p.copies = int(1 + random.child(2).below(2, 0));
  p.epochs = (o.judged ? 40 : o.epochs_per_worker) * p.workers;  // these end early
  p.to_the_end = below(2) == 0 || o.judged;                      // they end early, and nobody knows when
  p.judged = o.judged;
  p.plain = o.proxied && random.child(3).below(2, 0) == 0;
  p.fixed = o.allreduce && (o.judged || random.child(1).below(2, 0) == 0);

  using weight = std::pair<kind, int>;
  std::vector<weight> weights;
  if (o.judged) {
    weights = {{kind::worker, 6}, {kind::all_workers, 3}, {kind::master, 4}, {kind::master_and_worker, 4}};
    if (p.workers > 2) weights.emplace_back(kind::workers, 3);
  } else if (o.proxied) {
    weights = {{kind::worker, 2}, {kind::goodbye, 1}, {p.plain ? kind::lost_reply : kind::altered_record, 9}};
  } else if (o.by_hand) {
    weights = {{kind::worker, 3}, {kind::short_cut, 4}, {kind::long_cut, 2}, {kind::goodbye, 1}};
    if (o.hostile)
      weights.insert(weights.end(), {{kind::squatted, 4}, {kind::storage, 2}, {kind::master_cut, 3}});
  } else {
    weights = {
        {kind::worker, 8},        {kind::all_workers, 2}, {kind::master, 3}, {kind::master_and_worker, 2},
        {kind::short_silence, 2}, {kind::goodbye, 2},     {kind::slow, 1}};
    if (p.workers > 2) weights.emplace_back(kind::workers, 3);
    if (p.servers > 0) weights.emplace_back(kind::server, 4);
    if (o.long_silences) weights.emplace_back(kind::long_silence, 1);
    if (o.signals) weights.insert(weights.end(), {{kind::group_signal, 12}, {kind::early_signal, 12}});
    if (o.hostile) {
      weights.insert(weights.end(), {{kind::squatted, 8},
                                     {kind::newcomer_silent, 4},
                                     {kind::storage, 4},
                                     {kind::storage_and_server, 4},
                                     {kind::journal, 4}});
      if (o.long_silences) weights.emplace_back(kind::master_silent, 1);
    }
  }
  int masters = 0, silences = 0, absences = 0;
  auto const draw_kind = [&] {
    int sum = 0;
    for (weight const& w : weights) sum += w.second;
    auto at = int(below(std::uint64_t(sum)));
    for (weight const& w : weights)
      if ((at -= w.second) < 0) return w.first;
    return kind::worker;
  };
  int const count = o.min_faults + int(below(std::uint64_t(std::max(0, o.max_faults - o.min_faults)) + 1));
  for (int i = 0; i < count; ++i) {
    intent one{.what = draw_kind(), .choice = below(~std::uint64_t{0}), .before = between(50, 400)};
    // A job ends with its sixth master within a minute.
    bool const of_master =
        one.what == kind::master || one.what == kind::master_and_worker || one.what == kind::journal;
    if (of_master && ++masters > 4) one.what = kind::worker;
    if ((one.what == kind::long_silence || one.what == kind::long_cut) && ++silences > 1)
      one.what = one.what == kind::long_cut ? kind::short_cut : kind::short_silence;
    if (one.what == kind::short_silence) one.length = between(100, 3500);
    if (one.what == kind::short_cut)
      one.length = between(100, 2500);  // TCP repeats after 3 s, and then after 6
    if (one.what == kind::long_silence || one.what == kind::long_cut) one.length = between(6000, 8000);
    if (one.what == kind::slow) one.length = between(300, 2000);
    if ((one.what == kind::master_silent || one.what == kind::master_cut) && ++absences > 1)
      one.what = kind::squatted;
    if (one.what == kind::master_silent) one.length = between(6000, 9000);
    if (one.what == kind::master_cut) one.length = between(6000, 20000);
    if (one.what == kind::squatted || one.what == kind::newcomer_silent || one.what == kind::storage ||
        one.what == kind::storage_and_server)
      one.length = between(300, 3000);
    bool const kill = one.what <= kind::master_and_worker;
    if (i > 0 && kill && below(6) == 0) one.in_recovery = true, one.before = between(0, 200);
    p.faults.push_back(one);
  }
  return p;
}

}  // namespace chaos

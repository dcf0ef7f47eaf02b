// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace simulation {

/// Numbers of a seed that do not depend on what else was drawn of it.
class draws {
 public:
  draws(std::uint64_t seed, std::uint64_t stream) : state_(seed * 0x9e3779b97f4a7c15u + (stream << 1 | 1)) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + std::int64_t(below(std::uint64_t(high - low + 1)));
  }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

enum class strategy { asynchronous, synchronous, allreduce, fixed };

/// One job, drawn: how it trains, and when it is left alone.
struct plan {
  std::uint64_t seed = 0;
  strategy how = strategy::asynchronous;
  bool launched = false;  ///< the master has a launcher; otherwise an operator starts what has ended
  bool tls = false;
  int workers = 2, servers = 0, copies = 1, epochs = 4;
  int outer_steps = 1;  ///< of a worker's own, with asynchronous servers
  int grads_to_wait = 1, checkpoint_steps = 0, evaluation_steps = 0;
  int kept = 0;                            ///< checkpoints; 0: all
  bool judged = false;                     ///< evaluations decide which version is the best
  std::chrono::milliseconds record{20};    ///< how long a pass takes for each record
  std::chrono::microseconds latency{100};  ///< of the network, one way
  std::chrono::milliseconds quiet{};       ///< from then on nothing happens any more
  bool elsewhere = false;  ///< by hand, another takes the place of who is given up while that one still lives
  bool harsh = false;      ///< faults overlap; otherwise most come when the one before has been dealt with

  bool has_servers() const { return servers > 0; }

  /// How long a worker hangs at most: by hand somebody ends what says nothing any more, as a probe of a
  /// cluster would.
  std::chrono::seconds longest_hang() const { return std::chrono::seconds(launched ? 0 : 90); }
};

plan draw_plan(std::uint64_t seed);
std::string to_string(plan const& p);

}  // namespace simulation

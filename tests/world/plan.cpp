// SPDX-License-Identifier: Apache-2.0
#include "world/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace simulation {

plan draw_plan(std::uint64_t seed) {
  draws d(seed, 1);
  plan p{.seed = seed};
  p.how = strategy(d.below(4));
  p.launched = d.one_in(2);
  p.tls = d.one_in(4);
  p.workers = int(1 + d.below(4));
  bool const servers = p.how == strategy::asynchronous || p.how == strategy::synchronous;
  if (servers) p.servers = int(1 + d.below(3));
  if (p.servers > 1) p.copies = int(1 + d.below(2));
  if (p.how == strategy::synchronous)
    p.grads_to_wait = int(1 + d.below(std::uint64_t(std::min(p.workers, 2))));
  p.epochs = int(2 + d.below(2) + 2 * std::size_t(p.workers));
  p.checkpoint_steps = int(5 + d.below(30));
  p.evaluation_steps = d.one_in(2) ? int(10 + d.below(40)) : 0;
  p.judged = p.how == strategy::fixed && p.evaluation_steps > 0 && d.one_in(2);
  p.record = std::chrono::milliseconds(d.between(5, 40));
  p.quiet = std::chrono::milliseconds(d.between(10'000, 70'000));
  p.harsh = d.one_in(3);
  // The longer calls take, the more happens amid them.
  if (d.one_in(2)) p.latency = std::chrono::microseconds(d.between(500, d.one_in(2) ? 5000 : 40'000));
  // So that some jobs are still there when all has been done to them.
  draws more(seed, 111);
  if (more.one_in(3)) p.record *= more.between(2, 6);
  if (more.one_in(2)) p.kept = int(more.between(1, 3));
  p.elsewhere = !p.launched && more.one_in(3);
  draws rounds(seed, 112);
  if (p.how == strategy::asynchronous && rounds.one_in(3))
    p.outer_steps = int(
        rounds.between(2, std::min({12, p.checkpoint_steps, p.evaluation_steps ? p.evaluation_steps : 12})));
  return p;
}

std::string to_string(plan const& p) {
  static constexpr char const* names[]{"servers, asynchronous", "servers, synchronous", "all-reduce",
                                       "all-reduce, fixed batch"};
  return fmt::format(
      "{}, {} workers, {} servers, {} copies, {} epochs, {} gradients a step, rounds of {}, checkpoints "
      "every {}, "
      "evaluations every {}{}, {} ms a record, {:.1f} ms of latency, {}{}, quiet from {:.1f} s on",
      names[std::size_t(p.how)], p.workers, p.servers, p.copies, p.epochs, p.grads_to_wait, p.outer_steps,
      p.checkpoint_steps, p.evaluation_steps, p.judged ? " judged" : "", p.record.count(),
      double(p.latency.count()) / 1000,
      p.launched    ? "with a launcher"
      : p.elsewhere ? "by hand, at once"
                    : "by hand",
      p.tls ? ", TLS" : "", double(p.quiet.count()) / 1000);
}

}  // namespace simulation

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <ostream>

#include "edl/compute/nn/trace.hpp"
#include "edl/core/inline.hpp"

namespace edl::nn {

EDL_INLINE void trace::begin(direction way, std::string const& name, shape in, shape out) {
  std::string const around = open_.empty() ? std::string() : entries_[open_.back().entry].name + '/';
  std::string const full = around + name;
  auto it = std::ranges::find_if(entries_, [&](entry const& e) { return e.way == way && e.name == full; });
  if (it == entries_.end())
    it = entries_.insert(it, {.name = full, .way = way, .in = in, .out = out, .depth = open_.size()});
  open_.push_back({std::size_t(it - entries_.begin()), clock::now()});
}

EDL_INLINE void trace::end() {
  time_point const now = clock::now();
  open const o = open_.back();
  open_.pop_back();
  entry& e = entries_[o.entry];
  (e.calls++ == 0 ? e.first : e.later) += now - o.begin;
  if (events_.size() < most_events_) events_.push_back({o.entry, o.begin, now});
}

EDL_INLINE void trace::write_table(std::ostream& to) const {
  auto const time = [](entry const& e) { return e.milliseconds() * double(e.calls); };
  double all = 0;
  for (entry const& e : entries_)
    if (e.depth == 0) all += time(e);
  std::vector<std::size_t> order(entries_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return time(entries_[a]) > time(entries_[b]); });
  auto const text = [](shape s) { return fmt::format("{}x{}x{}", s.height, s.width, s.channels); };
  to << fmt::format("{:<44} {:<8} {:>13} {:>13} {:>8} {:>10} {:>10} {:>7}\n", "layer", "pass", "in", "out",
                    "calls", "first, ms", "ms/call", "share");
  for (std::size_t const i : order) {
    entry const& e = entries_[i];
    to << fmt::format("{:<44} {:<8} {:>13} {:>13} {:>8} {:>10.4f} {:>10.4f} {:>6.1f}%\n", e.name,
                      e.way == direction::forward ? "forward" : "backward", text(e.in), text(e.out), e.calls,
                      double(e.first.count()) / 1e6, e.milliseconds(), all > 0 ? 100 * time(e) / all : 0.0);
  }
}

EDL_INLINE void trace::write_events(std::ostream& to) const {
  to << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  auto const us = [&](time_point t) { return double((t - start_).count()) / 1e3; };
  bool first = true;
  for (event const& e : events_) {
    entry const& of = entries_[e.entry];
    to << fmt::format(
        "{}\n{{\"name\":\"{}\",\"cat\":\"{}\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":{:.3f},\"dur\":{:.3f}}"
        "}",
        first ? "" : ",", of.name, of.way == direction::forward ? "forward" : "backward", us(e.begin),
        us(e.end) - us(e.begin));
    first = false;
  }
  to << "\n]}\n";
}

}  // namespace edl::nn

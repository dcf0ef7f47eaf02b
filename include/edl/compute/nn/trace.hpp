// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "edl/core/shape.hpp"

namespace edl::nn {

/// Measures the time of a network's passes, layer by layer. Layers that are computed as one are one entry,
/// under the name of the first. Thread safety: distinct objects: safe. Shared objects: unsafe.
class trace {
 public:
  using clock = std::chrono::steady_clock;
  using time_point = clock::time_point;

  enum class direction : std::uint8_t { forward, backward };

  static constexpr std::string_view loss = "(loss)";  ///< the name of an entry that is no layer

  /// A layer in one direction, and the time that it took.
  struct entry {
    std::string name;  ///< the containers' names and its own, as in `child_name`
    direction way = direction::forward;
    shape in, out;
    std::size_t depth = 0;  ///< containers around it
    std::uint64_t calls = 0;
    std::chrono::nanoseconds first{0};  ///< call, which also takes memory and measures kernels
    std::chrono::nanoseconds later{0};  ///< all other calls together

    /// Milliseconds of a call: the mean of all but the first, if there are others.
    double milliseconds() const {
      return calls > 1 ? double(later.count()) / 1e6 / double(calls - 1) : double(first.count()) / 1e6;
    }
  };

  /// `events`: number of calls recorded one by one for `write_events`; of later ones only the sums.
  explicit trace(std::size_t events = 0) : most_events_(events) { events_.reserve(events); }

  /// Times a call during its lifetime; without a trace it does nothing.
  class scope {
   public:
    /// `name()` is only called if there is a trace.
    template <std::invocable Name>
    scope(trace* of, direction way, Name&& name, shape in, shape out) : trace_(of) {
      if (trace_) trace_->begin(way, name(), in, out);
    }
    scope(scope const&) = delete;
    ~scope() {
      if (trace_) trace_->end();
    }

   private:
    trace* trace_;
  };

  /// In the order of their first calls.
  std::vector<entry> const& entries() const { return entries_; }

  /// A table by time: layer, shapes, milliseconds of a call and of the first, share of a pass.
  void write_table(std::ostream& to) const;

  /// The calls in the Trace Event Format (JSON), which Perfetto and chrome://tracing open.
  void write_events(std::ostream& to) const;

 private:
  struct event {
    std::size_t entry;
    time_point begin, end;
  };
  struct open {
    std::size_t entry;
    time_point begin;
  };

  void begin(direction way, std::string const& name, shape in, shape out);
  void end();

  std::size_t most_events_;
  time_point const start_ = clock::now();
  std::vector<entry> entries_;
  std::vector<open> open_;
  std::vector<event> events_;
};

}  // namespace edl::nn

#ifdef EDL_HEADER_ONLY
#include "edl/compute/nn/trace.ipp"
#endif

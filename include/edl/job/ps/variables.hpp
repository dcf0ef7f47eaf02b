// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/compute/optim/averages.hpp"
#include "edl/compute/optim/optimizer.hpp"
#include "edl/compute/optim/part_rates.hpp"
#include "edl/core/error.hpp"
#include "edl/core/partition.hpp"
#include "edl/core/span.hpp"
#include "edl/job/ps/buffer.hpp"
#include "edl/job/ps/memory_sums.hpp"
#include "edl/job/ps/snapshot.hpp"
#include "edl/job/ps/store_options.hpp"

namespace edl::ps {

/// Whether a checkpoint has the moving average of the weights. A store that keeps one, restored from a
/// checkpoint without, starts it at the weights.
bool has_average(std::string const& path);

using edl::memory_fault;

/// A range of the arena, parameters before carried state, with the optimiser's slots: stores them, and
/// applies steps. Gradients and changes are for the whole range, and a step is made on a part of it
/// (`segment`). Held versions do not change (`copy_on_write`). Thread safety: used by one thread.
class variables {
 public:
  /// Zeros, and the optimiser's initial slots. Throws edl::error for elements that the layout lacks.
  explicit variables(store_options const& o);
  variables(variables const&) = delete;
  variables& operator=(variables const&) = delete;

  element_range elements() const { return elements_; }
  std::size_t parameters() const { return parameters_; }  ///< of the elements, from the first
  std::size_t state() const { return elements_.size() - parameters_; }

  view<float> current() const;  ///< until the next step
  buffer hold() const;          ///< permanently
  buffer averaged() const;      ///< likewise; parameters by their moving average, where there is one
  std::size_t buffers() const { return values_.buffers(); }
  bool averages() const { return rule_.averages(); }

  /// Variables and slots that can replace these at once.
  struct contents {
    copy_on_write values, slots;
  };

  /// Initial values, from `store::configure`.
  contents initial(std::function<void(std::size_t first, std::span<float> values)> const& initialise) const;

  /// Those of a checkpoint, and their histories.
  contents read(std::string const& path, std::vector<checkpoint::segment>& segments) const;

  /// Those of another store: `copy_size` numbers, variables and then slots.
  contents copied(view<float> values) const;
  std::size_t copy_size() const { return elements_.size() + slots_size(); }

  void take(contents c);

  /// Throws edl::error if elements of one variable have counted different minibatches, and the optimiser
  /// needs whole variables.
  void check_segments(std::vector<checkpoint::segment> const& segments) const;

  /// Whether they are the whole arena, without an average.
  bool movable() const { return !averages() && elements_.size() == layout_.size(); }

  /// Moves them to `there`, which must outlive this; steps are then made there. Needs `movable`.
  void move_to(arena& there);
  void move_back();
  bool elsewhere() const { return there_ != nullptr; }

  /// With `store_options::watches_memory`: throws memory_fault if the values differ from those that the last
  /// step has left. Steps check what they change.
  void check_memory() const { check_memory({0, elements_.size()}); }
  bool watches_memory() const { return memory_.has_value(); }

  /// Makes a step, after `made` earlier ones. `rate`: the factor of the learning rate; `share`: of the change
  /// of the state. In an arena, uses the gradients there.
  void step(element_range of, view<float> gradients, view<float> state_change, float rate, std::uint64_t made,
            float share = 1);

  /// Makes a step with the mean over `records`, from sums of gradients and then changes, which it overwrites.
  void step_sums(element_range of, std::span<float> sums, std::uint64_t records, float rate,
                 std::uint64_t made);

  /// Accumulates gradients of these elements; `first`: starts a new accumulation.
  void accumulate(element_range of, view<float> gradients, view<float> state_change, bool first);

  /// Makes a step with the mean of the `count` accumulated gradients.
  void step_accumulated(element_range of, std::size_t count, float rate, std::uint64_t made);

  view<float> accumulated() const { return sums_; }  ///< of gradients, then changes; empty: one is a step

  /// A snapshot of all of them.
  ps::full_snapshot snapshot(std::uint64_t version) const;

 private:
  std::size_t slots_size() const { return slot_stride_ * slot_names_.size(); }
  std::span<float> part(std::span<float> all, element_range of) const;
  view<float> gradients_of(element_range of, view<float> all) const;
  view<float> change_of(element_range of, view<float> all) const;
  void fill(std::span<float> slots) const;
  void step_here(element_range of, view<float> gradients, view<float> state_change, float rate,
                 std::uint64_t made, float share);
  void fetch() const;
  std::vector<view<float>> arrays() const;
  void check_memory(element_range of) const;
  void note_memory(element_range of);
  template <class Work>
  void change_sums(element_range of, Work const& work);

  parameter_layout const& layout_;
  element_range elements_;
  std::vector<element_range> fixed_;
  rated_rule rated_;
  moving_average rule_;
  std::size_t parameters_, slot_stride_;
  std::vector<std::string> slot_names_;
  arena* there_ = nullptr;
  mutable bool behind_ = false;           // the values here are older than those in the arena
  mutable copy_on_write values_, slots_;  // the values here
  std::vector<float> sums_;               // accumulated gradients, then changes of state
  std::vector<std::span<float>> slot_views_;
  std::optional<memory_sums> memory_;          // of values and slots, here
  std::optional<memory_sums> memory_of_sums_;  // of `sums_`
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/job/ps/variables.ipp"
#endif

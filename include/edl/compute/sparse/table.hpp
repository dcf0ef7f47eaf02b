// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "edl/compute/nn/initializer.hpp"
#include "edl/compute/nn/row_policy.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/compute/sparse/hash_slot.hpp"
#include "edl/compute/sparse/removals.hpp"
#include "edl/compute/sparse/row_format.hpp"
#include "edl/core/span.hpp"

namespace edl::sparse {

class table_snapshot;

/// What a table is made of. Equal options and ids give equal rows, wherever the row lives.
struct table_options {
  int width = 0;  ///< values of a row, from 1 to 65,536
  nn::initializer initial = nn::uniform{};
  std::uint64_t seed = 0;
  nn::row_policy policy{};
  bool remembers_removed = false;  ///< for files of what has changed (`removals`)
  bool watches_memory = false;     ///< values of rows that change between two steps are found
  /// Calls work(0), work(1), … side by side, and waits for all; none: a call's work is its own thread's.
  std::function<void(std::function<void(int)> const& work)> share = {};
};

/// What a table has, and what it has had.
struct table_counts {
  std::uint64_t rows = 0;
  std::uint64_t candidates = 0;  ///< ids that wait for admission
  std::uint64_t evicted = 0;     ///< rows that the policy has removed since the table was made
};

/// A trained row for each 64-bit id that its policy admits, with its optimiser's slots beside it. No two ids
/// share a row. It grows a hash slot at a time, without a stop. An id that is not admitted yet is a
/// candidate: a header that counts, without values. Equal pushes and sweeps in equal order leave equal rows,
/// whatever the number of threads or servers.
///
/// With `table_options::watches_memory` four bytes behind each row say what its values came to when they were
/// last written, but for a chance of 2^-32. What trains or visits a row throws memory_fault where it is not
/// so.
///
/// Thread safety: all functions are safe; calls that train different rows go on beside one another. A row is
/// never seen half written.
class table {
 public:
  /// Throws usage_error for options out of range. The rule outlives the table.
  table(table_options o, update_rule const& rule);

  int width() const { return options_.width; }

  /// `to` (ids.size(), width) gets the weights of the ids' rows, which may repeat. An id without a row is
  /// answered with what its row would begin with, and gets none.
  void pull(view<std::uint64_t> ids, std::span<float> to) const;

  /// The same of one id (width), without a detour for many.
  void read(std::uint64_t id, std::span<float> to) const;

  /// A step of the optimiser for each id's row; `gradients` (ids.size(), width). An id that comes twice makes
  /// two steps, in order: `sum_duplicates` makes one of them. An id that has no row, any more or yet, gets
  /// one first, if it is admitted; else its gradient is dropped. Where the table is full, a sixteenth of the
  /// rows of the id's hash slot goes for it. `step`: steps that the optimiser has made before, of the whole
  /// table. `clock` is kept as the time of each row's last use. Throws edl::error where memory ends.
  void push(view<std::uint64_t> ids, view<float> gradients, float learning_rate, std::uint64_t step,
            std::uint32_t clock);

  /// Removes the rows and candidates of a hash slot that were in none of the last `unused_steps` steps.
  void sweep(std::uint32_t slot, std::uint32_t clock);

  /// A row as it was once, of this table or of another with the same options but the seed; without values, a
  /// candidate. Throws edl::error for another number of values.
  void put(row_header const& header, view<float> values);

  /// Removes an id's row, or the id from the candidates; nothing where it is neither.
  void remove(std::uint64_t id);

  /// A row with these weights, and with what the optimiser begins with. Throws as `put`.
  void assign(std::uint64_t id, view<float> weights);

  /// Removes all rows and candidates.
  void clear();

  /// Removes the rows that `goes(header)` tells, and gives their number. `removed` is called with each id.
  std::size_t remove_if(std::function<bool(row_header const&)> const& goes,
                        std::function<void(std::uint64_t id)> const& removed = {});

  /// Calls visit(header, weights and then slots) for each row of a hash slot. Rows of it, and of its
  /// neighbours, wait meanwhile.
  void for_each(std::uint32_t slot,
                std::function<void(row_header const&, view<float> values)> const& visit) const;

  /// The same for its candidates.
  void for_each_candidate(std::uint32_t slot, std::function<void(row_header const&)> const& visit) const;

  std::uint64_t size() const { return counts().rows; }
  table_counts counts() const;
  std::size_t bytes() const;                               ///< of rows, candidates, headers and indexes
  std::size_t payload() const;                             ///< of weights and optimiser's slots alone
  std::size_t values() const { return format_.values(); }  ///< of a row: weights, then each slot

  /// Which ids have been removed, for who writes down what has changed.
  removals& removed() const { return removed_; }

 private:
  friend class table_snapshot;
  static constexpr std::uint32_t stripes = 32, slots_per_stripe = hash_slots / stripes;

  /// What one lock guards.
  struct alignas(64) stripe {
    mutable std::mutex mutex;
    std::array<hash_slot, slots_per_stripe> slots, candidates;
    std::vector<table_snapshot*> snapshots;  // told before a row or candidate changes
  };
  struct batch;

  static std::uint32_t within(id_hash h) { return h.slot() % slots_per_stripe; }
  stripe& stripe_of(id_hash h) { return stripes_[h.slot() / slots_per_stripe]; }
  hash_slot const& slot(std::uint32_t number) const {
    return stripes_[number / slots_per_stripe].slots[number % slots_per_stripe];
  }
  hash_slot const& candidates(std::uint32_t slot) const {
    return stripes_[slot / slots_per_stripe].candidates[slot % slots_per_stripe];
  }

  template <class Work>
  void each_stripe(std::size_t ids, Work const& work) const;
  void initialise(row r) const;
  void check(row r) const;
  void draw(std::uint64_t id, float* to) const;
  static void keep(stripe const& s, row r, bool fresh = false);
  static void keep_candidate(stripe const& s, row_header const& was, bool fresh = false);
  std::uint32_t admit(stripe& s, std::uint64_t id, std::uint32_t clock);
  bool is_full(hash_slot const& of) const { return of.size() >= most_; }
  void make_room(stripe& s, hash_slot& of, bool of_rows);
  void remove_row(stripe& s, hash_slot& from, std::uint64_t id);
  void remove_candidate(stripe& s, hash_slot& from, std::uint64_t id);
  row create(stripe& s, std::uint64_t id);
  void apply(std::span<row const> rows, view<float> gradients, float learning_rate, std::uint64_t step,
             std::vector<float>& scratch) const;

  table_options const options_;
  update_rule const& rule_;
  std::vector<float> slot_initials_;
  row_format const format_;
  std::uint32_t const most_;  // rows of a hash slot, and candidates
  std::unique_ptr<stripe[]> const stripes_;
  row_memory rows_, candidates_;
  mutable removals removed_;  // synchronised by itself
  std::atomic<std::uint64_t> evicted_{0};
};

/// Distinct ids in the order of their first appearance, and the sum of the gradients of each. They are added
/// in the order in which they come, whatever the number of threads, so equal batches give equal sums.
struct summed_gradients {
  std::vector<std::uint64_t> ids;
  std::vector<float> gradients;      ///< (ids.size(), width)
  std::vector<std::uint32_t> place;  ///< of each id that came: its number among the distinct ones
};
summed_gradients sum_duplicates(view<std::uint64_t> ids, view<float> gradients, int width);

}  // namespace edl::sparse

#ifdef EDL_HEADER_ONLY
#include "edl/compute/sparse/table.ipp"
#include "edl/compute/sparse/table_policy.ipp"
#endif

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

/// The options of a table. Equal options and ids give equal rows, on whichever server they live.
struct table_options {
  int width = 0;  ///< values of a row, from 1 to 65,536
  nn::initializer initial = nn::uniform{};
  std::uint64_t seed = 0;
  nn::row_policy policy{};
  bool remembers_removed = false;  ///< for incremental files (`removals`)
  bool watches_memory = false;     ///< detects values that change between two steps
  /// Calls work(0), work(1), … in parallel and waits for all; empty: the calling thread does all work.
  std::function<void(std::function<void(int)> const& work)> share = {};
};

/// Current sizes of a table, and totals since its creation.
struct table_counts {
  std::uint64_t rows = 0;
  std::uint64_t candidates = 0;  ///< ids that await admission
  std::uint64_t evicted = 0;     ///< rows that the policy has removed so far
};

/// A trained row, with its optimiser's slots, for each 64-bit id that the policy admits. No two ids share a
/// row. The table grows one hash slot at a time, so that no call waits for a whole rehash. An id that is not
/// admitted yet is a candidate: a header with a counter, without values. Equal pushes and sweeps in equal
/// order give equal rows, for any number of threads or servers.
///
/// With `table_options::watches_memory`, each row ends in a checksum of four bytes. Training or visiting a
/// row whose values changed without a push throws memory_fault; the checksum misses a change with probability
/// 2^-32.
///
/// Thread safety: all functions are safe; calls that train different rows run in parallel. No reader sees a
/// row half written.
class table {
 public:
  /// Throws usage_error for options out of range. The rule must outlive the table.
  table(table_options o, update_rule const& rule);

  int width() const { return options_.width; }

  /// Copies the weights of the ids' rows to `to` (ids.size(), width); ids may repeat. For an id without a row
  /// it copies the initial values of such a row, and creates none.
  void pull(view<std::uint64_t> ids, std::span<float> to) const;

  /// The same for one id (width), without the overhead of a batch.
  void read(std::uint64_t id, std::span<float> to) const;

  /// Applies one optimiser step to each id's row; `gradients` is (ids.size(), width). An id that occurs twice
  /// makes two steps, in order; call `sum_duplicates` first for a single one. An id without a row gets one
  /// first, if it is admitted; otherwise its gradient is dropped. In a full table, a sixteenth of the rows of
  /// the id's hash slot make room for it. `step`: the optimiser's earlier steps on the whole table. `clock`
  /// is recorded as the time of each row's last use. Throws edl::error when memory runs out.
  void push(view<std::uint64_t> ids, view<float> gradients, float learning_rate, std::uint64_t step,
            std::uint32_t clock);

  /// Removes the rows and candidates of a hash slot that no push of the last `unused_steps` steps contained.
  void sweep(std::uint32_t slot, std::uint32_t clock);

  /// Restores a row, of this table or of another one that differs in its seed at most; without values, a
  /// candidate. Throws edl::error for a wrong number of values.
  void put(row_header const& header, view<float> values);

  /// Removes an id's row, or the id from the candidates. Does nothing if it is neither.
  void remove(std::uint64_t id);

  /// Creates or replaces a row with these weights and the optimiser's initial slots. Throws as `put`.
  void assign(std::uint64_t id, view<float> weights);

  /// Removes all rows and candidates.
  void clear();

  /// Removes the rows for which `goes(header)` is true, calls `removed` with each id, and returns their
  /// number.
  std::size_t remove_if(std::function<bool(row_header const&)> const& goes,
                        std::function<void(std::uint64_t id)> const& removed = {});

  /// Calls visit(header, weights and then slots) for each row of a hash slot. Other calls on its rows, and on
  /// those of its neighbours, block meanwhile.
  void for_each(std::uint32_t slot,
                std::function<void(row_header const&, view<float> values)> const& visit) const;

  /// The same for its candidates.
  void for_each_candidate(std::uint32_t slot, std::function<void(row_header const&)> const& visit) const;

  std::uint64_t size() const { return counts().rows; }
  table_counts counts() const;
  std::size_t bytes() const;                               ///< of rows, candidates, headers and indexes
  std::size_t payload() const;                             ///< of weights and optimiser's slots alone
  std::size_t values() const { return format_.values(); }  ///< of a row: weights, then each slot

  /// The ids that were removed, for a writer of changes.
  removals& removed() const { return removed_; }

 private:
  friend class table_snapshot;
  static constexpr std::uint32_t stripes = 32, slots_per_stripe = hash_slots / stripes;

  /// The data under one lock.
  struct alignas(64) stripe {
    mutable std::mutex mutex;
    std::array<hash_slot, slots_per_stripe> slots, candidates;
    std::vector<table_snapshot*> snapshots;  // notified before a row or candidate changes
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

/// Distinct ids in the order of their first appearance, with the sum of the gradients of each. Gradients are
/// added in the order of the batch, for any number of threads, so equal batches give equal sums.
struct summed_gradients {
  std::vector<std::uint64_t> ids;
  std::vector<float> gradients;      ///< (ids.size(), width)
  std::vector<std::uint32_t> place;  ///< of each given id: its index among the distinct ones
};
summed_gradients sum_duplicates(view<std::uint64_t> ids, view<float> gradients, int width);

}  // namespace edl::sparse

#ifdef EDL_HEADER_ONLY
#include "edl/compute/sparse/table.ipp"
#include "edl/compute/sparse/table_policy.ipp"
#endif

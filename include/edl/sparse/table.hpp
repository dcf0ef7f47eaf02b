// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "edl/core/span.hpp"
#include "edl/nn/initializer.hpp"
#include "edl/optim/update_rule.hpp"
#include "edl/sparse/hash_slot.hpp"

namespace edl::sparse {

class table_cut;

/// What a table is made of. Equal options and ids give equal rows, wherever the row lives.
struct table_options {
  int width = 0;  ///< values of a row, from 1 to 65,536
  nn::initializer initial = nn::uniform{};
  std::uint64_t seed = 0;
};

/// A trained row for each 64-bit id that was ever pushed, with its optimiser's slots beside it. No two ids
/// share a row. It grows a hash slot at a time, without a stop.
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

  /// A step of the optimiser for each id's row; `gradients` (ids.size(), width). An id that comes twice makes
  /// two steps, in order: `sum_duplicates` makes one of them. An id that has no row, any more or yet, gets
  /// one first. `step`: steps that the optimiser has made before, of the whole table. `clock` is kept as the
  /// time of each row's last use. Throws edl::error where memory ends.
  void push(view<std::uint64_t> ids, view<float> gradients, float learning_rate, std::uint64_t step,
            std::uint32_t clock);

  /// A row as it was once, of this table or of another with the same options but the seed. Throws edl::error
  /// for another number of values.
  void put(row_header const& header, view<float> values);

  /// A row with these weights, and with what the optimiser begins with. Throws as `put`.
  void assign(std::uint64_t id, view<float> weights);

  /// Removes all rows.
  void clear();

  /// Removes the rows that `goes(header)` tells, and gives their number. `removed` is called with each id.
  std::size_t remove_if(std::function<bool(row_header const&)> const& goes,
                        std::function<void(std::uint64_t id)> const& removed = {});

  /// Calls visit(header, weights and then slots) for each row of a hash slot. Rows of it, and of its
  /// neighbours, wait meanwhile.
  void for_each(std::uint32_t slot,
                std::function<void(row_header const&, view<float> values)> const& visit) const;

  std::uint64_t size() const;                     ///< rows
  std::size_t bytes() const;                      ///< of rows, headers and indexes
  std::size_t payload() const;                    ///< of weights and optimiser's slots alone
  std::size_t values() const { return values_; }  ///< floats of a row: weights, then each slot

 private:
  friend class table_cut;
  static constexpr std::uint32_t stripes = 32, slots_per_stripe = hash_slots / stripes;

  /// What one lock guards.
  struct alignas(64) stripe {
    mutable std::mutex mutex;
    std::array<hash_slot, slots_per_stripe> slots;
    std::vector<table_cut*> cuts;  // told before a row changes
  };
  struct batch;

  void initialise(row r) const;
  void draw(std::uint64_t id, std::span<float> to) const;
  hash_slot const& slot(std::uint32_t number) const {
    return stripes_[number / slots_per_stripe].slots[number % slots_per_stripe];
  }
  row found_or_new(stripe& s, std::uint64_t id, row guess);
  static void keep(stripe const& s, row r, bool fresh = false);
  void apply(std::span<row const> rows, view<float> gradients, float learning_rate, std::uint64_t step,
             std::vector<float>& scratch) const;

  table_options const options_;
  update_rule const& rule_;
  std::vector<float> slot_initials_;
  std::size_t const values_;
  std::unique_ptr<stripe[]> const stripes_;
  row_memory rows_;
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
#include "edl/sparse/table.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/device/placement.hpp"
#include "edl/core/ledger.hpp"
#include "edl/core/mode.hpp"

namespace edl::data {

/// Identifies a batch's minibatch and its piece of work.
struct batch_identity {
  minibatch_key key;
  mode m = mode::training;
  std::uint64_t ticket = 0;  ///< as given with the work

  friend bool operator==(batch_identity const&, batch_identity const&) = default;
};

/// Host memory of one minibatch, allocated once and reused.
struct batch {
  std::vector<float> features;        ///< (capacity, feature_size)
  std::vector<float> targets;         ///< (capacity, target_size)
  std::vector<std::int32_t> classes;  ///< (capacity, class_size)
  std::vector<std::uint64_t> ids;     ///< (capacity, id_size): ids of tables' rows
  std::vector<float> weights;         ///< likewise: weights of combined ids; 0: no id
  std::vector<placement> placements;  ///< (capacity), or empty: the remaining changes to each row's features
  std::size_t feature_size = 0, target_size = 0, class_size = 0, id_size = 0;
  int rows = 0, capacity = 0;  ///< the first `rows` of `capacity` rows are filled

  batch_identity identity;
  std::string shard;                     ///< of its records
  std::size_t shard_number = 0;          ///< the same, in its source
  std::uint64_t first_place = 0;         ///< of that shard's record 0 among all records of the source
  std::vector<std::uint64_t> records;    ///< the record of each row, ascending
  bool kept = false;                     ///< the device has the records' features: none are here
  std::uint64_t words = 0, unknown = 0;  ///< that its records looked up; those in no vocabulary
  int skipped = 0;                       ///< records left out because they are damaged
  std::vector<std::string> damage;       ///< why, for each of them
  bool refused = false;  ///< with `error`: because of a record's content, so retries cannot succeed
  std::string error;     ///< why it cannot be used; then `rows` is 0, `records` are the requested ones

  std::shared_ptr<void> guard;  ///< its factory's; released before the memory

  std::span<float> feature_row(int row) {
    return {features.data() + std::size_t(row) * feature_size, feature_size};
  }
  std::span<float> target_row(int row) {
    return {targets.data() + std::size_t(row) * target_size, target_size};
  }
  std::span<std::int32_t> class_row(int row) {
    return {classes.data() + std::size_t(row) * class_size, class_size};
  }
  std::span<std::uint64_t> id_row(int row) { return {ids.data() + std::size_t(row) * id_size, id_size}; }
  std::span<float> weight_row(int row) { return {weights.data() + std::size_t(row) * id_size, id_size}; }
};

/// A batch of `capacity` rows, zeroed.
inline batch make_batch(int capacity, std::size_t feature_size, std::size_t target_size,
                        std::size_t class_size, std::size_t id_size = 0) {
  auto const rows = std::size_t(capacity);
  batch b;
  b.features.resize(rows * feature_size);
  b.targets.resize(rows * target_size);
  b.classes.resize(rows * class_size);
  b.ids.resize(rows * id_size);
  b.weights.resize(rows * id_size);
  b.id_size = id_size;
  b.feature_size = feature_size, b.target_size = target_size, b.class_size = class_size;
  b.capacity = capacity;
  b.records.reserve(rows);
  return b;
}

}  // namespace edl::data

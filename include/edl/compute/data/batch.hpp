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

/// Which minibatch a batch is, of which piece of work.
struct batch_identity {
  minibatch_key key;
  mode m = mode::training;
  std::uint64_t ticket = 0;  ///< as given with the work

  friend bool operator==(batch_identity const&, batch_identity const&) = default;
};

/// Host memory of one minibatch, made once and filled again and again.
struct batch {
  std::vector<float> features;        ///< (capacity, feature_size)
  std::vector<float> targets;         ///< (capacity, target_size)
  std::vector<std::int32_t> classes;  ///< (capacity, class_size)
  std::vector<std::uint64_t> ids;     ///< (capacity, id_size): of rows of tables
  std::vector<float> weights;         ///< likewise: of ids that are combined; 0: there is none
  std::vector<placement> placements;  ///< (capacity), or none: what is left to do to the features of each row
  std::size_t feature_size = 0, target_size = 0, class_size = 0, id_size = 0;
  int rows = 0, capacity = 0;  ///< of `capacity` rows, the first `rows` are filled

  batch_identity identity;
  std::string shard;                     ///< where its records are
  std::size_t shard_number = 0;          ///< the same, in its source
  std::uint64_t first_place = 0;         ///< of that shard's record 0 among all records of the source
  std::vector<std::uint64_t> records;    ///< the record of each row, ascending
  bool kept = false;                     ///< whoever computes has the records' features: none are here
  std::uint64_t words = 0, unknown = 0;  ///< that its records had looked up; those that no vocabulary has
  int skipped = 0;                       ///< records left out because they are damaged
  std::vector<std::string> damage;       ///< why, for each of them
  bool refused = false;  ///< with `error`: for what a record holds, so that it is so whenever it is read
  std::string error;     ///< why it cannot be used; `rows` is 0 then, `records` says what was wanted

  std::shared_ptr<void> guard;  ///< of whoever made it: let go before the memory is

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

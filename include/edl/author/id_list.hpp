// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace edl {

/// The ids of one sample in an input of `nn::weighted_ids`, in the row of the batch.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class id_list {
 public:
  /// The first half of the row is for ids, the second for weights. `name` is the input's, for errors.
  id_list(std::span<float> row, std::string_view name)
      : ids_(row.first(row.size() / 2)), weights_(row.subspan(row.size() / 2)), name_(name) {}

  /// Appends an id. Throws data_error if the list is full, and for an invalid id or weight.
  void add(std::int64_t id, float weight = 1);

  /// Removes all ids.
  void clear();

  std::size_t size();  ///< number of ids
  std::size_t most() const { return ids_.size(); }

 private:
  std::span<float> ids_, weights_;
  std::string_view name_;
  std::size_t size_ = 0;  // at least so many are there
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/author/id_list.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace edl {

/// The ids of one sample in an input of `nn::served_embedding_bag`, in the row of the batch. Any 64-bit
/// number is an id.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class served_id_list {
 public:
  /// As many weights as ids; a weight of 0 marks an empty position. `name` is the input's, for errors.
  served_id_list(std::span<std::uint64_t> ids, std::span<float> weights, std::string_view name)
      : ids_(ids), weights_(weights), name_(name) {}

  /// Appends an id; one with a weight of 0 does not count. Throws data_error if the list is full, and for a
  /// weight that is not finite.
  void add(std::uint64_t id, float weight = 1);

  std::size_t size();  ///< number of ids
  std::size_t most() const { return ids_.size(); }

 private:
  std::span<std::uint64_t> ids_;
  std::span<float> weights_;
  std::string_view name_;
  std::size_t size_ = 0;  // at least so many are there
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/author/served_id_list.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace edl {

/// The ids of one sample in an input of `nn::served_embedding`, in the row that they are written to. Any
/// 64-bit number is an id, and each is to be set.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class served_ids {
 public:
  /// `name` is the input's, for errors.
  served_ids(std::span<std::uint64_t> ids, std::string_view name) : ids_(ids), name_(name) {}

  std::size_t size() const { return ids_.size(); }

  /// The id of that number. Throws data_error where the input has no such.
  std::uint64_t& operator[](std::size_t number) const {
    if (number >= ids_.size()) refuse(number);
    return ids_[number];
  }
  std::uint64_t& operator()(std::size_t number) const { return (*this)[number]; }

  auto begin() const { return ids_.begin(); }
  auto end() const { return ids_.end(); }

 private:
  [[noreturn]] void refuse(std::size_t number) const;

  std::span<std::uint64_t> ids_;
  std::string_view name_;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/author/served_ids.ipp"
#endif

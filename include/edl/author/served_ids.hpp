// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "edl/author/checked_view.hpp"

namespace edl {

/// The ids of one sample in an input of `nn::served_embedding`, in the row of the batch. Any 64-bit number is
/// an id, and each must be set.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class served_ids {
 public:
  /// `name` is the input's, for errors.
  served_ids(std::span<std::uint64_t> ids, std::string_view name) : ids_(ids), name_(name) {}

  std::size_t size() const { return ids_.size(); }

  /// The id at this index. Throws data_error if the index is beyond the last.
  std::uint64_t& operator[](std::size_t number) const {
    if (number >= ids_.size()) refuse(number);
    return ids_[number];
  }
  std::uint64_t& operator()(std::size_t number) const { return (*this)[number]; }

  /// Sets all ids. Throws data_error for more or fewer than the input takes.
  template <class Ids>
    requires requires(Ids const& of) {
      requires std::integral<std::remove_cvref_t<decltype(*of.begin())>>;
      of.size();
    }
  served_ids const& operator=(Ids const& ids) const {
    if (ids.size() != size()) refuse_count(ids.size());
    std::ranges::transform(ids, ids_.begin(), [](auto id) { return std::uint64_t(id); });
    return *this;
  }

  auto begin() const { return detail::checked_iterator<std::uint64_t>(ids_, 0, name_); }
  auto end() const { return begin() + std::ptrdiff_t(size()); }

 private:
  [[noreturn]] void refuse(std::size_t number) const;
  [[noreturn]] void refuse_count(std::size_t got) const;

  std::span<std::uint64_t> ids_;
  std::string_view name_;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/author/served_ids.ipp"
#endif

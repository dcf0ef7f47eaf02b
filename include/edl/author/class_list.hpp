// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "edl/author/fed.hpp"

namespace edl {

/// The class labels of one sample, one for each place, in the row of the batch. A place that is not set has
/// the label −1, which `nn::sequence_cross_entropy` does not count.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class class_list {
 public:
  /// One label; any integer can be assigned to it.
  class place {
   public:
    place(class_list const& of, std::size_t number) : list_(of), number_(number) {}
    place(place const&) = default;
    template <std::integral Label>
    void operator=(Label label) const {
      list_.set(number_, std::int64_t(label));
    }
    void operator=(place const& other) const { *this = std::int64_t(other); }
    operator std::int64_t() const {
      return list_.labels_[number_] == author::unfed_class ? none : list_.labels_[number_];
    }

   private:
    class_list const& list_;
    std::size_t number_;
  };

  /// Clears the labels.
  explicit class_list(std::span<std::int32_t> labels) : labels_(labels) {
    std::ranges::fill(labels_, author::unfed_class);
  }

  std::size_t size() const { return labels_.size(); }

  /// The label of a place by its number, row by row. Throws data_error for a number beyond the last place,
  /// and if it is assigned a label that no network has.
  place operator[](std::size_t number) const {
    if (number >= size()) refuse(number);
    return {*this, number};
  }
  place operator()(std::size_t number) const { return (*this)[number]; }

  /// Sets the first places to these labels, and the others to −1. Throws data_error for more labels than
  /// places.
  template <class Labels>
    requires requires(Labels const& l) {
      requires std::integral<std::remove_cvref_t<decltype(*l.begin())>>;
      l.end();
    }
  class_list const& operator=(Labels const& labels) const {
    std::ranges::fill(labels_, none);
    std::size_t number = 0;
    for (auto const& label : labels) (*this)[number++] = std::int64_t(label);
    return *this;
  }

 private:
  static constexpr std::int32_t none = -1;

  void set(std::size_t number, std::int64_t label) const {
    if (label <= author::unfed_class || label > std::numeric_limits<std::int32_t>::max())
      refuse(number, label);
    labels_[number] = std::int32_t(label);
  }
  [[noreturn]] void refuse(std::size_t number) const;
  [[noreturn]] static void refuse(std::size_t number, std::int64_t label);

  std::span<std::int32_t> labels_;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/author/class_list.ipp"
#endif

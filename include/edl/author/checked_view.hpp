// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <xtensor/xadapt.hpp>
#include <xtensor/xiterator.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xtensor.hpp>

#include "edl/compute/data/tensor_view.hpp"

namespace edl {
namespace detail {

/// An input's name in errors; empty: there is only one.
std::string shown_input(std::string_view name);

/// Throws data_error: `feed` writes value `at`, but the row has only `size`.
[[noreturn]] void refuse_place(std::string_view input, std::int64_t at, std::size_t size);

/// Throws data_error: `feed` made values of this shape.
[[noreturn]] void refuse_shape(std::string_view input, std::span<std::size_t const> got,
                               std::span<std::size_t const> wanted);

/// A random access iterator that cannot be written through past the end.
template <class T>
class checked_iterator {
 public:
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using pointer = T*;
  using iterator_category = std::random_access_iterator_tag;
  using self = checked_iterator;

  checked_iterator() = default;
  checked_iterator(std::span<T> of, difference_type at, std::string_view name)
      : span_(of), at_(at), name_(name) {}

  T& operator*() const { return (*this)[0]; }
  T& operator[](difference_type n) const {
    if (std::size_t(at_ + n) >= span_.size()) refuse_place(name_, at_ + n, span_.size());
    return span_[std::size_t(at_ + n)];
  }
  T* operator->() const { return &**this; }
  self& operator+=(difference_type n) { return at_ += n, *this; }
  self& operator-=(difference_type n) { return at_ -= n, *this; }
  self& operator++() { return *this += 1; }
  self& operator--() { return *this -= 1; }
  self operator++(int) { return std::exchange(*this, *this + 1); }
  self operator--(int) { return std::exchange(*this, *this - 1); }
  friend self operator+(self i, difference_type n) { return i += n; }
  friend self operator+(difference_type n, self i) { return i += n; }
  friend self operator-(self i, difference_type n) { return i -= n; }
  friend difference_type operator-(self const& a, self const& b) { return a.at_ - b.at_; }
  friend bool operator==(self const& a, self const& b) { return a.at_ == b.at_; }
  friend auto operator<=>(self const& a, self const& b) { return a.at_ <=> b.at_; }

 private:
  std::span<T> span_;
  difference_type at_ = 0;
  std::string_view name_;
};

}  // namespace detail

template <std::size_t Rank>
class checked_view;

}  // namespace edl

namespace xt {

template <std::size_t Rank>
struct xcontainer_inner_types<edl::checked_view<Rank>> : edl::detail::tensor_view_types<float, Rank> {};
template <std::size_t Rank>
struct xiterable_inner_types<edl::checked_view<Rank>> : xcontainer_iterable_types<edl::checked_view<Rank>> {};

}  // namespace xt

namespace edl {

/// An xtensor view of a record's values, in the row of the batch. An assigned value must have its shape, and
/// no place beyond its end is written. Throws data_error otherwise.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
template <std::size_t Rank>
class checked_view : public detail::tensor_view<checked_view<Rank>, float, Rank> {
  using base = detail::tensor_view<checked_view, float, Rank>;
  using index = std::array<std::int64_t, Rank>;

 public:
  using stepper = xt::xindexed_stepper<checked_view, false>;  // through `element`: views of it are checked
  using const_stepper = xt::xindexed_stepper<checked_view, true>;

  /// `name` is the input's, for errors; empty: there is only one.
  checked_view(float* at, std::array<std::size_t, Rank> const& extents, std::string_view name = {})
      : base(at, extents), at_(at), name_(name) {}
  checked_view(checked_view const&) = default;

  template <class Values>
  checked_view& operator=(xt::xexpression<Values> const& values) {
    auto const& v = values.derived_cast();
    bool same = v.dimension() == Rank;
    for (std::size_t i = 0; same && i < Rank; ++i) same = std::size_t(v.shape()[i]) == this->shape()[i];
    if (!same) {
      std::vector<std::size_t> const got(v.shape().begin(), v.shape().end());
      detail::refuse_shape(name_, got, this->shape());
    }
    // They may read this view, so they are copied last. The memory is reused from record to record.
    static thread_local std::vector<float> kept;
    auto all = std::exchange(kept, {});
    all.resize(this->size());
    auto to = xt::adapt(all.data(), all.size(), xt::no_ownership(), this->shape());
    xt::noalias(to) = v;
    std::ranges::copy(all, at_);
    kept = std::move(all);
    return *this;
  }
  checked_view& operator=(checked_view const& values) {  // NOLINT: it copies via a buffer
    return *this = static_cast<xt::xexpression<checked_view> const&>(values);
  }

  template <std::integral... At>
    requires(sizeof...(At) <= Rank)
  float& operator()(At... at) const {
    index all{};
    std::size_t i = Rank - sizeof...(At);  // of fewer, the first are 0
    ((all[i++] = std::int64_t(at)), ...);
    return place(all);
  }
  float& operator[](std::size_t at) const { return (*this)(at); }
  float& flat(std::size_t at) const { return begin()[std::ptrdiff_t(at)]; }
  template <class Iterator>
  float& element(Iterator first, Iterator last) const {
    index all{};
    auto const extra = std::ptrdiff_t(Rank) - (last - first);
    for (auto i = std::size_t(extra > 0 ? extra : 0); i < Rank; ++i)
      all[i] = std::int64_t(first[std::ptrdiff_t(i) - extra]);
    return place(all);
  }

  auto begin() const { return detail::checked_iterator<float>({at_, this->size()}, 0, name_); }
  auto end() const { return begin() + std::ptrdiff_t(this->size()); }

  /// Writes through it could not be checked.
  void data() const = delete;

  template <class Shape>
  stepper stepper_begin(Shape const& s) {
    return stepper(this, s.size() - Rank);
  }
  template <class Shape>
  stepper stepper_end(Shape const& s, xt::layout_type) {
    return stepper(this, s.size() - Rank, true);
  }
  template <class Shape>
  const_stepper stepper_begin(Shape const& s) const {
    return const_stepper(this, s.size() - Rank);
  }
  template <class Shape>
  const_stepper stepper_end(Shape const& s, xt::layout_type) const {
    return const_stepper(this, s.size() - Rank, true);
  }

 private:
  float& place(index const& at) const {
    std::size_t offset = 0;
    for (std::size_t i = 0; i < Rank; ++i) {
      if (std::uint64_t(at[i]) >= this->shape()[i]) detail::refuse_place(name_, at[i], this->shape()[i]);
      offset = offset * this->shape()[i] + std::size_t(at[i]);
    }
    return at_[offset];
  }

  float* at_;
  std::string_view name_;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/author/checked_view.ipp"
#endif

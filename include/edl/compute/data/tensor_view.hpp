// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <xtensor/xbuffer_adaptor.hpp>
#include <xtensor/xcontainer.hpp>
#include <xtensor/xsemantic.hpp>
#include <xtensor/xtensor.hpp>

namespace edl::detail {

/// The types that xtensor requires of a view; derive `xt::xcontainer_inner_types` of the type from it.
template <class T, std::size_t Rank>
struct tensor_view_types {
  using storage_type = xt::xbuffer_adaptor<T*, xt::no_ownership, std::allocator<std::remove_const_t<T>>>;
  using reference = T&;
  using const_reference = T const&;
  using size_type = std::size_t;
  using shape_type = std::array<std::size_t, Rank>;
  using strides_type = xt::get_strides_t<shape_type>;
  using backstrides_type = strides_type;
  using inner_shape_type = shape_type;
  using inner_strides_type = strides_type;
  using inner_backstrides_type = backstrides_type;
  using temporary_type = xt::xtensor<std::remove_const_t<T>, Rank>;
  static constexpr xt::layout_type layout = xt::layout_type::row_major;
};

/// Memory that it does not own, as an xtensor expression of the type `Derived`, which may replace xtensor's
/// functions.
template <class Derived, class T, std::size_t Rank>
class tensor_view : public xt::xstrided_container<Derived>, public xt::xcontainer_semantic<Derived> {
 public:
  using expression_tag = xt::xtensor_expression_tag;

 protected:
  tensor_view(T* at, std::array<std::size_t, Rank> const& extents) : storage_(at, product(extents)) {
    this->resize(extents);
  }
  tensor_view(tensor_view const&) = default;
  ~tensor_view() = default;

 private:
  friend class xt::xcontainer<Derived>;
  using memory = typename tensor_view_types<T, Rank>::storage_type;

  static std::size_t product(std::array<std::size_t, Rank> const& extents) {
    std::size_t n = 1;
    for (std::size_t const e : extents) n *= e;
    return n;
  }
  memory& storage_impl() noexcept { return storage_; }
  memory const& storage_impl() const noexcept { return storage_; }

  memory storage_;
};

}  // namespace edl::detail

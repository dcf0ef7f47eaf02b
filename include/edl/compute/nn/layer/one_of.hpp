// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace edl::nn::detail {

/// Storage for one of these types.
template <class... Kinds>
union slot {
  char none{};
};
template <class Kind, class... Others>
union slot<Kind, Others...> {
  Kind here;
  slot<Others...> others;

  constexpr slot() : others() {}
  constexpr slot(std::integral_constant<int, 0>, Kind const& k) : here(k) {}
  template <int I, class K>
  constexpr slot(std::integral_constant<int, I>, K const& k)
      : others(std::integral_constant<int, I - 1>{}, k) {}
};

/// A value of one of these types, or empty. Like std::variant, but for constant expressions: GCC 12's cannot
/// be copied there if it contains a tuple.
template <class... Kinds>
class one_of {
 public:
  constexpr one_of() = default;
  template <int I, class Kind>
  constexpr one_of(std::integral_constant<int, I> at, Kind const& of) : index_(I), slot_(at, of) {}
  constexpr one_of(one_of const& o) : index_(o.index_), slot_(copy<0>(o)) {}
  constexpr one_of& operator=(one_of const& o) {
    if (this != &o) std::construct_at(this, o);
    return *this;
  }

  /// The index of its type; -1: empty.
  constexpr int index() const { return index_; }

  /// Calls use(it); does nothing if empty.
  template <class Use>
  constexpr void visit(Use&& use) const {
    visit_from<0>(slot_, use);
  }

 private:
  template <int I, class... Rest, class Use>
  constexpr void visit_from(slot<Rest...> const& s, Use& use) const {
    if constexpr (sizeof...(Rest) > 0) {
      if (index_ == I)
        use(s.here);
      else if (index_ > I)
        visit_from<I + 1>(s.others, use);
    }
  }
  template <int I>
  static constexpr slot<Kinds...> copy(one_of const& o) {
    if constexpr (I < int(sizeof...(Kinds))) {
      if (o.index_ == I) return {std::integral_constant<int, I>{}, at<I>(o.slot_)};
      return copy<I + 1>(o);
    } else {
      return {};
    }
  }
  template <int I, class Slot>
  static constexpr auto const& at(Slot const& s) {
    if constexpr (I == 0)
      return s.here;
    else
      return at<I - 1>(s.others);
  }

  int index_ = -1;
  slot<Kinds...> slot_{};
};

}  // namespace edl::nn::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

namespace edl {

/// The types of hyperparameters.
template <class T>
concept settable = std::same_as<T, bool> || std::same_as<T, int> || std::same_as<T, std::uint32_t> ||
                   std::same_as<T, std::uint64_t> || std::same_as<T, float> || std::same_as<T, double>;

/// A number that a user can set without a rebuild, with its description in `--help` and its bounds. It is a
/// member of a model's `hyperparameters`, and converts to its value. A plain number in that struct is a
/// hyperparameter without description and bounds.
template <settable T>
struct hyperparameter {
  T value{};
  std::string_view about{};
  T least = std::numeric_limits<T>::lowest(), most = std::numeric_limits<T>::max();

  constexpr operator T() const { return value; }  // NOLINT(google-explicit-constructor)
};

namespace detail {

/// The address of this object identifies a type.
template <class T>
inline constexpr char type_mark = 0;

template <class Member>
struct member_of;
template <class Owner, class T>
struct member_of<T Owner::*> {
  using owner = Owner;
};

}  // namespace detail

/// A view of a model's hyperparameters, of any type; it must not outlive them.
struct hyperparameter_view {
  void const* values = nullptr;
  void const* type = nullptr;

  hyperparameter_view() = default;
  template <class T>
  explicit hyperparameter_view(T const& of) : values(&of), type(&detail::type_mark<T>) {}
};

/// An option of a layer, or the weight of a head: a constant, or the value of one of the model's
/// hyperparameters (`set_by`).
class setting {
 public:
  constexpr setting(float value) : value_(value) {}  // NOLINT(google-explicit-constructor)
  constexpr setting(float (*read)(void const*), void const* type)
      : constant_(false), read_(read), type_(type) {}

  constexpr bool constant() const { return constant_; }

  static constexpr float unbounded = std::numeric_limits<float>::infinity();

  /// Whether a constant is finite and in [least, below). A hyperparameter is checked when it is used.
  constexpr bool is_in(float least, float below) const { return !constant() || within(value_, least, below); }

  /// The value in a model with these hyperparameters; `option` names it in errors. Throws usage_error if the
  /// value is not in [least, below), and error if the hyperparameter belongs to another model.
  float resolve(hyperparameter_view of, std::string_view option, float least, float below) const;

 private:
  static constexpr bool within(float value, float least, float below) {
    return value >= least && value < below && value > -unbounded;
  }

  float value_ = 0;
  bool constant_ = true;  // sanitizers make no constant of whether a function is null
  float (*read_)(void const*) = nullptr;
  void const* type_ = nullptr;
};

namespace detail {

template <auto Member>
constexpr setting setting_of() {
  constexpr bool member = std::is_member_object_pointer_v<decltype(Member)>;
  static_assert(member,
                "edl: `set_by` takes a member of the model's struct: `edl::set_by<&hyperparameters::rate>`");
  if constexpr (member) {
    using owner = typename member_of<decltype(Member)>::owner;
    return {[](void const* of) { return float(static_cast<owner const*>(of)->*Member); }, &type_mark<owner>};
  } else {
    return 0.0f;
  }
}

}  // namespace detail

/// Binds the option to this hyperparameter: `.rate = edl::set_by<&hyperparameters::drop>`.
template <auto Member>
inline constexpr setting set_by = detail::setting_of<Member>();

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/hyperparameter.ipp"
#endif

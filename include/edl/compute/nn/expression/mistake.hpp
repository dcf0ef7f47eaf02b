// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/shape.hpp"

namespace edl::nn::expression {

/// What is wrong with a forward pass.
enum class mistake_kind {
  none,
  length_of_variable,
  name_of_variable,
  unused_variable,
  unused_tensor,
  axis_of_reduction,
  result_without_input,
  loss_is_no_number,
  tensor_of_another_layer,
  too_large,
  depends_on_options
};

/// The first mistake of a forward pass: where it is in the author's file, where that is known, and the shapes
/// that matter. Structural on purpose: compilers print it.
struct mistake {
  mistake_kind what = mistake_kind::none;
  int line = 0;
  shape first{}, second{};

  constexpr bool none() const { return what == mistake_kind::none; }
  friend constexpr bool operator==(mistake const&, mistake const&) = default;
};

/// Instantiated for the forward pass of a `Layer` that has a mistake, so that the compiler's own words say
/// which, of what shapes and in which line.
template <class Layer, mistake Found>
struct forward_pass_of {
  using enum mistake_kind;
  static constexpr mistake_kind what = Found.what;

  static_assert(what != length_of_variable,
                "edl: a variable has another length (`first`) than the axis of the input that it lies along "
                "(`second`), in the `line` that is named above");
  static_assert(what != name_of_variable,
                "edl: two variables of a layer have one name, in the `line` that is named above");
  static_assert(what != unused_variable,
                "edl: a variable of this layer is never used: see the `line` that is named above");
  static_assert(what != unused_tensor,
                "edl: `forward` of this layer computes something that is never used: see the `line` that is "
                "named above");
  static_assert(
      what != axis_of_reduction,
      "edl: nn::sum, nn::mean, nn::max and the like go over axes that their tensor has, and this one "
      "(`first`) has lost that axis already, in the `line` that is named above");
  static_assert(what != result_without_input,
                "edl: what `forward` of this layer returns does not depend on its input");
  static_assert(what != loss_is_no_number,
                "edl: a `loss` is one number for each record: nn::mean(…) or nn::sum(…) of it");
  static_assert(what != tensor_of_another_layer,
                "edl: `forward` of this layer uses a tensor that belongs to another one");
  static_assert(what != too_large, "edl: `forward` of this layer has too many operations or variables");
  static_assert(what != depends_on_options,
                "edl: which operations `forward` of this layer does depends on an option, or on the shape of "
                "its input: make the option an argument of a template (`template <bool Scaled> struct …`)");
};

}  // namespace edl::nn::expression

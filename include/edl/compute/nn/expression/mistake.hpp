// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "edl/core/shape.hpp"

namespace edl::nn::expression {

/// The line of the author's file with the call of a function that has this as its last argument, which nobody
/// gives.
struct source_line {
  struct of_caller {};
  int number;

  constexpr source_line(of_caller = {}, int line = __builtin_LINE())  // NOLINT(google-explicit-constructor)
      : number(line) {}
  /// A mistake.
  template <class Axes>
    requires std::is_enum_v<Axes>
  constexpr source_line(Axes, int line = __builtin_LINE())
      : number(-line) {}  // NOLINT(google-explicit-constructor)
};

/// Mistakes in a forward pass, or in the function of an `nn::graph`.
enum class mistake_kind {
  none,
  length_of_variable,
  name_of_variable,
  unused_variable,
  unused_tensor,
  axis_of_reduction,
  number_for_axes,
  axes_in_turn,
  tensor_for_condition,
  index_of_tensor,
  arguments_of_variable,
  axes_of_positions,
  axis_of_cumsum,
  random_outside_training,
  statistic_without_update,
  statistic_updated_twice,
  update_of_statistic,
  statistic_of_several,
  result_without_input,
  unused_input,
  loss_is_no_number,
  tensor_of_another_layer,
  too_large,
  depends_on_options,
  not_constexpr,
  shapes_of_elements,
  shapes_beside,
  shapes_of_matrices,
  shapes_of_attention,
  shapes_of_inputs,
  places_of_mask,
  option_of_cross_attention,
  shapes_of_reshape,
  outside_of_slice,
  shapes_of_shared,
  unused_result,
  result_used_after_move,
  name_of_shared,
  result_of_another_graph,
  no_layer_in_graph,
  too_many_results
};

/// The first mistake of a forward pass: its line in the author's file, if known, and the shapes involved. A
/// structural type, so that compilers print it.
struct mistake {
  mistake_kind what = mistake_kind::none;
  int line = 0;
  shape first{}, second{};

  constexpr bool none() const { return what == mistake_kind::none; }
  friend constexpr bool operator==(mistake const&, mistake const&) = default;
};

/// Instantiated for the forward pass of a `Layer` with a mistake, so that the compiler's message shows which,
/// with its shapes and line.
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
  static_assert(
      what != number_for_axes,
      "edl: a number stands for the axes of nn::sum, nn::mean and the like, which are nn::channels, "
      "nn::places or both (with |), in the `line` that is named above");
  static_assert(what != axes_in_turn,
                "edl: several axes are one argument, as in `nn::sum(x, nn::channels | nn::places)`, in the "
                "`line` that is named above");
  static_assert(
      what != tensor_for_condition,
      "edl: a tensor has many elements, and is no condition of `if`, `?:`, `&&` and `||`: "
      "`nn::where(condition, yes, no)`, and a * b where both hold, in the `line` that is named above");
  static_assert(
      what != index_of_tensor,
      "edl: a tensor takes no [], in the `line` that is named above: the first channel is "
      "nn::sum(x * nn::one_hot(0, x.channels()), nn::channels); a label is a list where its loss or "
      "metric has `static constexpr int labels`");
  static_assert(
      what != arguments_of_variable,
      "edl: a variable has a name, an axis, without which it is one number, and an initialiser, and so has "
      "a statistic: `layer.variable(\"slope\", x.channels(), nn::constant{1})`");
  static_assert(
      what != axes_of_positions,
      "edl: nn::argmax and nn::one_hot are along one axis, nn::channels or nn::places, in the `line` "
      "that is named above");
  static_assert(
      what != axis_of_cumsum,
      "edl: nn::cumsum is along one axis that its tensor (`first`) has, nn::channels or nn::places, in the "
      "`line` that is named above");
  static_assert(
      what != random_outside_training,
      "edl: `forward` of this layer draws random numbers, and does not say what it does in evaluation: "
      "nn::where(layer.training(), …, x); see the `line` that is named above");
  static_assert(
      what != statistic_without_update,
      "edl: a statistic of this layer never changes: `layer.update(statistic, value, momentum)` says whose "
      "mean it follows; see the `line` that is named above");
  static_assert(what != statistic_updated_twice,
                "edl: a statistic of this layer has one `layer.update`, and this is a second one, in the "
                "`line` that is named above");
  static_assert(
      what != update_of_statistic,
      "edl: `layer.update(statistic, value, momentum)` takes what `layer.statistic` returned, a value that "
      "differs between samples, and a momentum from 0 to 1, in the `line` that is named above");
  static_assert(what != statistic_of_several,
                "edl: a layer of `nn::apply` has no running statistics (`layer.statistic`): they belong into "
                "a layer of one result");
  static_assert(what != result_without_input,
                "edl: what `forward` of this layer returns does not depend on its input");
  static_assert(what != unused_input, "edl: `forward` of this layer does not use one of its results");
  static_assert(what != loss_is_no_number,
                "edl: a `loss` or a `metric` is one number for each record: nn::mean(…) or nn::sum(…) of it");
  static_assert(what != tensor_of_another_layer,
                "edl: `forward` of this layer uses a tensor that belongs to another one");
  static_assert(what != too_large, "edl: `forward` of this layer has too many operations or variables");
  static_assert(what != not_constexpr,
                "edl: the compiler cannot compute `forward` of this layer: it is not `constexpr`, calls "
                "something that is not, or never ends");
  static_assert(what != depends_on_options,
                "edl: which operations `forward` of this layer does depends on an option, or on the shape of "
                "its input: make the option an argument of a template (`template <bool Scaled> struct …`)");
  static_assert(
      what != shapes_of_elements,
      "edl: results that are added up or multiplied have one shape, and these have two (`first` and "
      "`second` above)");
  static_assert(
      what != shapes_beside,
      "edl: results that `nn::concat` puts side by side have one height and width, and these differ "
      "(`first` and `second` above)");
  static_assert(
      what != shapes_of_matrices,
      "edl: `nn::matmul` wants as many places (height · width) of its second result as its first has "
      "channels, and these differ (`first` and `second` above)");
  static_assert(
      what != shapes_of_attention,
      "edl: both results of `nn::cross_attention` have as many channels, which `heads` divides, and these "
      "(`first` and `second` above) do not");
  static_assert(
      what != shapes_of_inputs,
      "edl: results of `nn::apply` have one shape along the axes that its layer gives each (`inputs`, or all "
      "axes), and one has another (`second` above) than it would have then (`first`)");
  static_assert(what != places_of_mask,
                "edl: `nn::masked` has a mask of as many places as the result that it follows, and these two "
                "differ (`first` and `second` above)");
  static_assert(
      what != option_of_cross_attention,
      "edl: `nn::cross_attention` has at least one of `heads` and a `dropout` from 0 to 1, but no `causal`, "
      "`rotary` and `window`, as places of one result are not before those of the other, and no "
      "`key_value_heads`, `softcap` and `qk_norm`");
  static_assert(
      what != shapes_of_reshape,
      "edl: `nn::reshape` keeps the number of elements, and its input (`first` above) has another one "
      "than its result (`second`; one extent may be 0, and follows from the others)");
  static_assert(what != outside_of_slice,
                "edl: `nn::slice` goes beyond what it is given (`first` above): of `second`, the last two "
                "numbers are its `first` and `count`");
  static_assert(
      what != shapes_of_shared,
      "edl: a layer that is shared has other variables for one input (`first` above) than for another "
      "(`second`)");
  static_assert(what != unused_result, "edl: a result within `nn::graph` is never used");
  static_assert(what != result_used_after_move,
                "edl: a result within `nn::graph` is used again after a std::move of it");
  static_assert(what != name_of_shared,
                "edl: two `nn::shared` of `nn::graph` have one name: write the layer once, and use it by "
                "reference");
  static_assert(what != result_of_another_graph,
                "edl: a function of `nn::graph` uses a result of another one");
  static_assert(what != no_layer_in_graph, "edl: the function of this `nn::graph` has no layer");
  static_assert(
      what != too_many_results,
      "edl: this `nn::graph` has too many results with a name, or uses of them: make parts of it an "
      "`nn::graph` of their own");
};

}  // namespace edl::nn::expression

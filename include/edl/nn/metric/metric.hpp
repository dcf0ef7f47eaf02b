// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"
#include "edl/nn/metric/values.hpp"

namespace edl {

/// A metric that can be computed from labels of a type. What it knows is `totals` doubles that merge by
/// addition, so that who gathers the parts of several workers needs not know the metric:
/// - `name`: as it is printed, e.g. "accuracy";
/// - `totals`: how many doubles, all 0 before the first batch;
/// - `update(sums, output, batch, outputs, labels, loss)` adds a batch. `sums` are the metric's totals. The
///   others are what the loss was given (its labels are `valid`), and the mean loss that it returned;
/// - `value(sums)`: the metric; 0, not NaN, where nothing has been added. Instead, `values(sums)`: several of
///   them, each with its own name.
///
/// Optional members:
/// - `fits(classes)`: whether it is for outputs of so many classes; if not, the model does not compile;
/// - `any_labels` = true: it makes what it needs of the labels of any loss.
template <class M, class Label>
concept metric_for = requires(std::span<double> sums, view<double> merged, shape output, view<float> outputs,
                              view<Label> labels) {
  { M::name } -> std::convertible_to<std::string_view>;
  { M::totals } -> std::convertible_to<std::size_t>;
  M::update(sums, output, 1, outputs, labels, 1.0);
  requires requires {
    { M::value(merged) } -> std::convertible_to<double>;
  } || requires {
    { M::values(merged) } -> std::same_as<metric_values>;
  };
};

/// Whether a metric is for outputs of so many classes.
template <class M>
constexpr bool metric_fits(std::size_t classes) {
  if constexpr (requires { M::fits(classes); })
    return M::fits(classes);
  else
    return true;
}

/// A metric for class labels, or for quantities, or for both.
template <class M>
concept metric = metric_for<M, std::int32_t> || metric_for<M, float>;

}  // namespace edl

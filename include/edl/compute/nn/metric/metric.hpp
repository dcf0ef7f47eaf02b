// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// The results of an evaluation: names and values, in the order of the model's metrics.
using metric_values = std::vector<std::pair<std::string, double>>;

/// The values as Python prints a dict of numpy.float32: `{'accuracy': 0.97, 'loss': 1e-05}`. Each has the
/// fewest digits that give the same float back, and an exponent below 1e-4 and from 1e16 upwards. The counts
/// of a confusion matrix are one entry, `'confusion': [[50, 2], [1, 47]]`, with a row for each true class.
std::string to_text(metric_values const& values);

/// A metric that can be computed from labels of a type. Its state is `totals` doubles that merge by addition,
/// so that the master can add the parts of several workers without knowing the metric:
/// - `name`: as it is printed, e.g. "accuracy";
/// - `totals`: the number of doubles, all 0 before the first batch;
/// - `update(sums, output, batch, outputs, labels, loss)` adds a batch. `sums` are the metric's totals. The
///   others are the arguments of the loss (its labels are `valid`), and the mean loss that it returned;
/// - `value(sums)`: the metric; 0, not NaN, if nothing was added. Or `values(sums)`: several values, each
///   with its own name.
///
/// Optional members:
/// - `fits(classes)`: whether it supports outputs of this many classes; if not, the model does not compile;
/// - `any_labels` = true: it interprets the labels of any loss itself.
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

/// Whether a metric supports outputs of this many classes.
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

/// Instantiated for each metric of a model, so that the compiler's message names it; reports each missing
/// part in one sentence.
template <class M>
struct is_a_metric {
  template <class Label>
  static constexpr bool updates_by =
      requires(std::span<double> sums, shape output, view<float> outputs, view<Label> labels) {
        M::update(sums, output, 1, outputs, labels, 1.0);
      };
  static constexpr bool has_name = requires {
    { M::name } -> std::convertible_to<std::string_view>;
  };
  static constexpr bool has_totals = requires {
    { M::totals } -> std::convertible_to<std::size_t>;
  };
  static constexpr bool has_update = updates_by<std::int32_t> || updates_by<float>;
  static constexpr bool has_value = requires(view<double> merged) {
    { M::value(merged) } -> std::convertible_to<double>;
  } || requires(view<double> merged) {
    { M::values(merged) } -> std::same_as<metric_values>;
  };
  static_assert(has_name, "edl: this metric has no `static constexpr std::string_view name`");
  static_assert(has_totals, "edl: this metric has no `static constexpr std::size_t totals`");
  static_assert(
      has_update,
      "edl: this metric has no `static void update(std::span<double> sums, edl::shape output, int "
      "batch, edl::view<float> outputs, edl::view<std::int32_t> labels, double loss)`; where labels "
      "are numbers, they are `edl::view<float>`");
  static_assert(has_value, "edl: this metric has no `static double value(edl::view<double> sums)`");
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/nn/metric/metric.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "edl/compute/nn/expression/layer.hpp"
#include "edl/compute/nn/expression/loss.hpp"
#include "edl/core/error.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

/// A metric of one record: `constexpr auto metric(auto output, auto label) const` takes and returns what the
/// `loss` of a loss does (`is_loss_expression`), also with `class_labels` and `labels`. Such a metric has a
/// name. Lists create it without arguments, so its members have their defaults.
template <class M>
concept is_metric_expression = !std::is_final_v<M> && std::default_initializable<M> &&
                               requires(M const& m, tensor x, expression::label_argument<M> label) {
                                 { m.metric(x, label) } -> std::convertible_to<tensor>;
                               };

/// Turns it into a metric: the mean over all records. Where each place of a sequence has a class, each place
/// with a label counts as a record. See `metric_for`.
template <is_metric_expression M>
struct derived_metric : M {
 private:
  struct of_record : M {
    constexpr auto loss(auto output, auto label) const { return M::metric(output, label); }
  };
  using mean = derived_loss<of_record>;

 public:
  static constexpr std::size_t totals = 2;  // the sum over records, their number
  static constexpr bool any_labels = mean::own_labels;

  /// Throws error if the labels are a list of another length.
  template <class T>
  static void update(std::span<double> sums, shape output, int batch, std::span<T const> outputs,
                     view<typename mean::label> labels, double /*mean loss*/) {
    if (batch == 0) return;
    auto const add = [&](shape of, std::size_t records, view<T> x, view<typename mean::label> y) {
      sums[0] += mean{}(of, int(records), x, y, std::span<T>()) * double(records);
      sums[1] += double(records);
    };
    std::size_t const each = labels.size() / std::size_t(batch);
    if (each == mean::labels(output)) {
      add(output, std::size_t(batch), outputs, labels);
    } else if (mean::class_labels) {
      auto const width = std::size_t(output.channels);
      std::vector<T> rows;
      std::vector<typename mean::label> known;
      for (std::size_t i = 0; i < labels.size(); ++i) {
        if (labels[i] < 0) continue;
        known.push_back(labels[i]);
        auto const row = outputs.subspan(i * width, width);
        rows.insert(rows.end(), row.begin(), row.end());
      }
      if (!known.empty()) add({.channels = output.channels}, known.size(), rows, known);
    } else {
      throw error("it takes " + std::to_string(mean::labels(output)) +
                  " numbers as the label of a record, and the loss has " + std::to_string(each));
    }
  }
  static double value(view<double> sums) { return sums[1] > 0 ? sums[0] / sums[1] : 0; }
};

namespace detail {
template <class M>
struct metric_in_lists {
  using type = M;
};
template <is_metric_expression M>
struct metric_in_lists<M> {
  using type = derived_metric<M>;
};
}  // namespace detail

/// A metric in the form that lists use.
template <class M>
using as_metric = typename detail::metric_in_lists<M>::type;

}  // namespace edl::nn

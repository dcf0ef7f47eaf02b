// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// The mean squared error: (output − label)², averaged over the output elements. For one quantity per output
/// element as label. 0 without data.
struct mse {
  static constexpr std::string_view name = "mse";
  static constexpr std::size_t totals = 2;  ///< the squares' sum, elements

  template <class T>
  static void update(std::span<double> sums, shape output, int batch, view<T> outputs, view<float> labels,
                     double) {
    std::size_t const n = std::size_t(batch) * output.size();
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double const off = double(outputs[i]) - double(labels[i]);
      sum += off * off;
    }
    sums[0] += sum;
    sums[1] += double(n);
  }

  static constexpr double value(view<double> sums) { return sums[1] > 0 ? sums[0] / sums[1] : 0; }
};

/// The root of the mean squared error, in the unit of the labels. 0 of nothing.
struct rmse : mse {
  static constexpr std::string_view name = "rmse";

  static double value(view<double> sums) { return std::sqrt(mse::value(sums)); }
};

/// The mean absolute error: |output − label|, averaged over the output elements. For one quantity per output
/// element as label. 0 without data.
struct mae {
  static constexpr std::string_view name = "mae";
  static constexpr std::size_t totals = 2;  ///< the distances' sum, elements

  template <class T>
  static void update(std::span<double> sums, shape output, int batch, view<T> outputs, view<float> labels,
                     double) {
    std::size_t const n = std::size_t(batch) * output.size();
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += std::abs(double(outputs[i]) - double(labels[i]));
    sums[0] += sum;
    sums[1] += double(n);
  }

  static constexpr double value(view<double> sums) { return sums[1] > 0 ? sums[0] / sums[1] : 0; }
};

/// The coefficient of determination: 1 − Σ (label − output)² / Σ (label − mean label)². 1 is perfect, 0 is as
/// good as the mean of the labels, and below 0 is worse. For one quantity per output element as label;
/// several outputs count as one row of numbers. 0 without data, and if all labels are equal. The labels'
/// spread is a difference of sums: if the labels' mean is a million times their deviation, few digits of it
/// are exact.
struct r2 {
  static constexpr std::string_view name = "r2";
  static constexpr std::size_t totals = 4;  ///< elements, the labels' sum and squares, the errors' squares

  template <class T>
  static void update(std::span<double> sums, shape output, int batch, view<T> outputs, view<float> labels,
                     double) {
    std::size_t const n = std::size_t(batch) * output.size();
    double sum = 0, squares = 0, errors = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double const label = double(labels[i]), off = double(outputs[i]) - label;
      sum += label;
      squares += label * label;
      errors += off * off;
    }
    sums[0] += double(n);
    sums[1] += sum;
    sums[2] += squares;
    sums[3] += errors;
  }

  static constexpr double value(view<double> sums) {
    if (!(sums[0] > 0)) return 0;
    double const spread = sums[2] - sums[1] * sums[1] / sums[0];
    return spread > sums[2] * 1e-15 ? 1 - sums[3] / spread : 0;
  }
};

/// The model's loss, averaged over the samples. 0 without data.
struct mean_loss {
  static constexpr std::string_view name = "loss";
  static constexpr std::size_t totals = 2;  ///< the losses' sum, samples

  template <class T, class Label>
  static void update(std::span<double> sums, shape, int batch, std::span<T const>, std::span<Label const>,
                     double loss) {
    sums[0] += loss * batch;
    sums[1] += batch;
  }

  static constexpr double value(view<double> sums) { return sums[1] > 0 ? sums[0] / sums[1] : 0; }
};

}  // namespace edl

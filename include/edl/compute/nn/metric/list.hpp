// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "edl/compute/nn/metric/metric.hpp"
#include "edl/compute/nn/metric/values.hpp"
#include "edl/core/error.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// The metrics of a model, `using metrics = edl::metrics<edl::accuracy, edl::top_k<5>>`, as one: their totals
/// stand one after the other and merge by addition. May be empty. Whether they are metrics is checked where
/// they are a model's, so that what one lacks is said. What one throws becomes an error that names it.
template <class... M>
struct metrics {
  static constexpr std::size_t totals = (std::size_t(M::totals) + ... + std::size_t(0));

  /// Whether all of them can be computed from labels of this type.
  template <class Label>
  static constexpr bool accept = (metric_for<M, Label> && ...);

  /// Whether all of them are for outputs of so many classes.
  static constexpr bool fit(std::size_t classes) { return (metric_fits<M>(classes) && ...); }

  /// Adds a batch to `sums`, which are `totals` doubles; the rest as for `metric_for`.
  template <class T, class Label>
  static void update(std::span<double> sums, shape output, int batch, std::span<T const> outputs,
                     std::span<Label const> labels, double loss) {
    std::size_t at = 0;
    [[maybe_unused]] auto const add = [&]<class One>() {
      named<One>([&] { One::update(sums.subspan(at, One::totals), output, batch, outputs, labels, loss); });
      at += One::totals;
    };
    (add.template operator()<M>(), ...);
  }

  /// The metrics by name, in the order of the list.
  static metric_values values(view<double> sums) {
    metric_values all;
    std::size_t at = 0;
    [[maybe_unused]] auto const add = [&]<class One>() {
      auto const own = sums.subspan(at, One::totals);
      named<One>([&] {
        if constexpr (requires { One::values(own); })
          for (auto& each : One::values(own)) all.push_back(std::move(each));
        else
          all.emplace_back(std::string(One::name), double(One::value(own)));
      });
      at += One::totals;
    };
    (add.template operator()<M>(), ...);
    return all;
  }

 private:
  /// What a metric throws tells which one it is.
  template <class One>
  static void named(auto const& call) {
    auto const text = [](std::exception const& e) {
      return "metric '" + std::string(One::name) + "' of the model: " + e.what();
    };
    try {
      call();
    } catch (data_error const& e) {
      throw data_error(text(e));
    } catch (std::bad_alloc const&) {
      throw;
    } catch (std::exception const& e) {
      throw error(text(e));
    }
  }
};

}  // namespace edl

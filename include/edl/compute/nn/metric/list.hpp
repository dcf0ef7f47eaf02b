// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "edl/compute/nn/expression/metric.hpp"
#include "edl/compute/nn/literal.hpp"
#include "edl/compute/nn/loss/heads.hpp"
#include "edl/compute/nn/metric/metric.hpp"
#include "edl/core/error.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// The metrics of a model as one (`metrics`): their totals
/// are stored one after the other and merge by addition. May be empty. A model that uses the list checks that
/// they are metrics, so that the compiler reports missing parts. If a metric throws, the error names it.
template <class... M>
struct metric_list {
  static constexpr std::size_t totals = (std::size_t(M::totals) + ... + std::size_t(0));

  /// Whether all of them can be computed from labels of this type.
  template <class Label>
  static constexpr bool accept = (metric_for<M, Label> && ...);

  /// Whether all of them support outputs of this many classes.
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
  /// Adds the metric's name to an exception that it throws.
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

/// The metrics of a model: `using metrics = edl::metrics<edl::accuracy, edl::top_k<5>>`. Each is a metric
/// (`metric_for`), or an expression (`nn::is_metric_expression`).
template <class... M>
using metrics = metric_list<nn::as_metric<M>...>;

/// A metric of one head: `using metrics = edl::metrics<edl::of_head<loss, "click", edl::auc>>`, after the
/// model's `loss`. It is printed as "click/auc".
template <auto const& Heads, nn::literal Head, class Metric>
struct of_head {
  using M = nn::as_metric<Metric>;
  using measure = M;  ///< of that head
  using heads = std::remove_cvref_t<decltype(Heads)>;
  static constexpr std::size_t index = heads::template index_of<Head>();

 private:
  static constexpr auto text = [] {
    std::array<char, Head.view().size() + 1 + std::string_view(M::name).size()> joined{};
    std::string_view const name(M::name);
    auto const at = std::ranges::copy(Head.view(), joined.begin()).out;
    *at = '/';
    std::ranges::copy(name, at + 1);
    return joined;
  }();

 public:
  static constexpr std::string_view name{text.data(), text.size()};
  static constexpr std::size_t totals = M::totals;
  static constexpr bool any_labels = true;
  static constexpr bool fits_head = [] {
    if constexpr (index < std::tuple_size_v<decltype(heads::all)>) {
      using head = std::tuple_element_t<index, decltype(heads::all)>;
      return metric_fits<M>(head::output.size() / head::labels);
    } else {
      return true;  // there is no such head, which is reported elsewhere
    }
  }();
  static_assert(fits_head, "edl: this metric of a head is for another number of classes than the head has");

  static void update(std::span<double> sums, shape, int batch, view<float> outputs, view<float> labels,
                     double) {
    constexpr auto first = std::remove_cvref_t<decltype(Heads)>::template first_of<Head>();
    auto const& h = Heads.template of<Head>();
    for (std::size_t i = 0; i < std::size_t(batch); ++i) {
      auto const out = outputs.subspan(i * Heads.all_outputs + first[0], h.output.size());
      h.with_labels(labels.subspan(i * Heads.all_labels + first[1], h.labels), [&](auto truth) {
        M::update(sums, h.output, 1, out, truth, h.loss(h.output, 1, out, truth, std::span<float>{}));
      });
    }
  }
  static double value(view<double> sums)
    requires requires { M::value(sums); }
  {
    return M::value(sums);
  }
  static metric_values values(view<double> sums)
    requires requires { M::values(sums); }
  {
    metric_values all = M::values(sums);
    for (auto& each : all) each.first.insert(0, std::string(Head.view()) + '/');
    return all;
  }
};

}  // namespace edl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "edl/compute/nn/literal.hpp"
#include "edl/compute/nn/loss/heads.hpp"
#include "edl/compute/nn/metric/metric.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// A metric of one head: `using metrics = edl::metrics<edl::of_head<loss, "click", edl::auc>>`, behind the
/// model's `loss`. It is printed as "click/auc".
template <auto const& Heads, nn::literal Head, class M>
struct of_head {
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
      return true;  // there is no such head, which is said elsewhere
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

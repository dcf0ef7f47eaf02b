// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace check {

/// The totals of a metric, or of a list of them, after one batch.
template <class M, class T, class Label>
std::vector<double> totals(edl::shape output, int batch, std::vector<T> const& x, std::vector<Label> const& y,
                           double loss = 0) {
  std::vector<double> sums(M::totals);
  M::update(std::span<double>(sums), output, batch, edl::view<T>(x), edl::view<Label>(y), loss);
  return sums;
}

template <class M, class T, class Label>
double metric(edl::shape output, int batch, std::vector<T> const& x, std::vector<Label> const& y) {
  return M::value(edl::view<double>(totals<M>(output, batch, x, y)));
}

/// Workers see parts; the sum of what they know is what one would know that saw it all.
template <class M, class T, class Label>
void merges(edl::shape output, int batch, std::vector<T> const& x, std::vector<Label> const& y,
            std::size_t per) {
  std::vector<double> const whole = totals<M>(output, batch, x, y);
  std::vector<double> merged(M::totals);
  int const cuts[] = {0, batch / 5, batch / 5, batch / 2, batch};  // one of them empty
  for (int c = 0; c < 4; ++c) {
    auto const from = std::size_t(cuts[c]), to = std::size_t(cuts[c + 1]);
    auto const size = output.size();
    std::vector<T> const some(x.begin() + long(from * size), x.begin() + long(to * size));
    std::vector<Label> const labels(y.begin() + long(from * per), y.begin() + long(to * per));
    std::vector<double> const part = totals<M>(output, int(to - from), some, labels);
    for (std::size_t i = 0; i < merged.size(); ++i) merged[i] += part[i];
  }
  for (std::size_t i = 0; i < merged.size(); ++i)
    CHECK(merged[i] == doctest::Approx(whole[i]).epsilon(1e-12));
  CHECK(M::value(edl::view<double>(merged)) ==
        doctest::Approx(M::value(edl::view<double>(whole))).epsilon(1e-12));
}

template <class M>
double nothing() {
  return M::value(edl::view<double>(std::vector<double>(M::totals)));
}

}  // namespace check

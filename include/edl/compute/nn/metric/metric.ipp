// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

#include "edl/compute/nn/metric/metric.hpp"
#include "edl/core/inline.hpp"

namespace edl {
namespace detail {

/// A float as numpy.float32 and Python print it: the shortest digits that read back as the same float.
EDL_INLINE std::string python_float(float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 32> text{};  // at most "-d.dddddddde-dd"
  auto const end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific).ptr;
  std::string_view const scientific(text.data(), std::size_t(end - text.data()));
  std::size_t const e = scientific.find('e');
  int exponent = 0;
  std::size_t const sign = scientific[e + 1] == '+' ? 1 : 0;
  std::from_chars(scientific.data() + e + 1 + sign, scientific.data() + scientific.size(), exponent);
  if (value != 0 && (exponent < -4 || exponent >= 16)) return std::string(scientific);
  std::string out(scientific.substr(0, std::signbit(value) ? 1 : 0)), digits;
  for (char c : scientific.substr(0, e))
    if (c >= '0' && c <= '9') digits.push_back(c);
  if (exponent < 0) return out + "0." + std::string(std::size_t(-exponent - 1), '0') + digits;
  std::size_t const whole = std::size_t(exponent) + 1;
  if (digits.size() <= whole) digits.append(whole + 1 - digits.size(), '0');
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

/// The counts of the confusion matrix that begins at `at`, as a list of rows, one for each class; moves `at`
/// to its end. Empty: none begins there.
inline std::string matrix_at(metric_values const& values, std::size_t& at) {
  constexpr std::string_view corner = "confusion/0/0";
  std::string_view const first = values[at].first;
  if (!first.ends_with(corner)) return {};
  std::string const prefix(first.substr(0, first.size() - 3));
  std::size_t count = 0;
  while (at + count < values.size() && values[at + count].first.starts_with(prefix)) ++count;
  auto const classes = std::size_t(std::lround(std::sqrt(double(count))));
  if (classes * classes != count) return {};
  std::string out = "[";
  for (std::size_t i = 0; i < count; ++i) {
    out += i % classes > 0 ? ", " : i > 0 ? "], [" : "[";
    out += std::to_string(std::llround(values[at + i].second));
  }
  at += count;
  return out + "]]";
}

}  // namespace detail

EDL_INLINE std::string to_text(metric_values const& values) {
  std::string out = "{";
  for (std::size_t i = 0; i < values.size();) {
    std::string_view name = values[i].first;
    double const value = values[i].second;
    std::string const matrix = detail::matrix_at(values, i);
    if (matrix.empty())
      ++i;
    else
      name.remove_suffix(4);  // "/0/0"
    out += out.size() > 1 ? ", '" : "'";
    for (char c : name) {
      if (c == '\'' || c == '\\') out += '\\';
      out += c;
    }
    out += "': " + (matrix.empty() ? detail::python_float(float(value)) : matrix);
  }
  return out + "}";
}

}  // namespace edl

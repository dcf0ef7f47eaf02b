// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "edl/compute/nn/metric/values.hpp"
#include "edl/core/inline.hpp"

namespace edl {
namespace detail {

/// A float as numpy.float32 and Python print it: the shortest digits that read back as the same float.
EDL_INLINE std::string python_float(float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 32> text{};  // "-d.dddddddde-dd" and no more
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

}  // namespace detail

EDL_INLINE std::string to_text(metric_values const& values) {
  std::string out = "{";
  for (auto const& [name, value] : values) {
    out += out.size() > 1 ? ", '" : "'";
    for (char c : name) {
      if (c == '\'' || c == '\\') out += '\\';
      out += c;
    }
    out += "': " + detail::python_float(float(value));
  }
  return out + "}";
}

}  // namespace edl

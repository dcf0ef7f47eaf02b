// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "kubernetes/status.hpp"

namespace edl::testing::kubernetes {

/// "100m", "1.5", "32Mi", "1e3" as a number; none when it is no quantity.
inline std::optional<double> quantity(std::string const& text) {
  static std::map<std::string, double, std::less<>> const units{
      {"", 1},        {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},   {"k", 1e3},     {"M", 1e6},
      {"G", 1e9},     {"T", 1e12},    {"P", 1e15},    {"E", 1e18},   {"Ki", 0x1p10}, {"Mi", 0x1p20},
      {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
  char const *const first = text.data() + text.starts_with('+'), *const last = text.data() + text.size();
  double amount = 0;
  auto const [end, wrong] = std::from_chars(first, last, amount, std::chars_format::general);
  auto const unit = units.find(std::string_view(end, std::size_t(last - end)));
  if (wrong != std::errc() || unit == units.end() || !std::isfinite(amount)) return std::nullopt;
  return amount * unit->second;
}

inline double quantity(json const& value) {
  return value.is_number() ? value.get<double>() : quantity(value.get<std::string>()).value_or(0);
}

/// In a message: whole numbers plain, others in thousandths.
inline std::string to_text(double amount) {
  return amount == std::floor(amount) ? fmt::format("{:.0f}", amount) : fmt::format("{:.0f}m", amount * 1000);
}

using amounts = std::map<std::string, double>;

/// What the containers of a pod request (limits where nothing is), and the pod itself.
inline amounts requests(json const& pod) {
  amounts out{{"pods", 1}};
  for (json const& c : pod["spec"]["containers"]) {
    json const given = c.value("resources", json::object());
    json all = given.value("limits", json::object());
    all.update(given.value("requests", json::object()));
    for (auto const& [name, value] : all.items()) out[name] += quantity(value);
  }
  return out;
}

inline bool is_over(json const& pod) {
  std::string const phase = pod.value("status", json::object()).value("phase", "");
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace edl::testing::kubernetes

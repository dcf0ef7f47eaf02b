// SPDX-License-Identifier: Apache-2.0
#include "common/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/yaml.hpp"
#include "edl/core/printable.hpp"

namespace edl::tool {
namespace {

std::size_t width(std::string const& t) {
  return std::size_t(std::ranges::count_if(t, [](char c) { return (c & 0xc0) != 0x80; }));  // of UTF-8
}

}  // namespace

std::string to_table(std::vector<std::vector<std::string>> rows) {
  std::vector<std::size_t> widths;
  for (auto& row : rows)
    for (std::string& cell : row) cell = printable(cell, std::string::npos);
  for (auto const& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string out;
  for (auto const& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += row[i] + (i + 1 < row.size() ? std::string(widths[i] - width(row[i]) + 3, ' ') : "");
    out += line + "\n";
  }
  return out;
}

std::string to_text(nlohmann::json const& value, std::string const& format) {
  if (format == "yaml") return to_yaml(value);
  std::string const text = value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto const c = static_cast<unsigned char>(text[i]);
    // The controls that JSON lets stand: 7f, and those from 80 to 9f, which are two bytes of UTF-8.
    bool const two = c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (two || c == 0x7f)
      out += fmt::format("\\u00{:02x}", static_cast<unsigned char>(text[two ? ++i : i]));
    else
      out += text[i];
  }
  return out;
}

cli::flag output_flag(std::string name) {
  return {.name = std::move(name),
          .fallback = "table",
          .help = "how to print it",
          .aliases = {"o"},
          .choices = {"table", "json", "yaml"}};
}

}  // namespace edl::tool

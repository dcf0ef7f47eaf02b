// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "yaml.hpp"

namespace edl::tool {
namespace {

std::size_t width(std::string const& t) {
  return std::size_t(std::ranges::count_if(t, [](char c) { return (c & 0xc0) != 0x80; }));  // of UTF-8
}

}  // namespace

std::string to_table(std::vector<std::vector<std::string>> const& rows) {
  std::vector<std::size_t> widths;
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
  return format == "yaml" ? to_yaml(value) : value.dump(2) + "\n";
}

cli::flag output_flag(std::string name) {
  return {.name = std::move(name),
          .fallback = "table",
          .help = "how to print it",
          .aliases = {"o"},
          .choices = {"table", "json", "yaml"}};
}

}  // namespace edl::tool

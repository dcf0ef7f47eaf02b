// SPDX-License-Identifier: Apache-2.0
#include "simulate/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::simulate {
namespace {

std::vector<std::string> fields(std::string line) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
  std::vector<std::string> all(1);
  bool quoted = false;
  for (char const c : line)
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      all.emplace_back();
    else
      all.back() += c;
  return all;
}

}  // namespace

csv::csv(std::string const& path, std::vector<std::string> const& columns) : path_(path), columns_(columns) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none))
    throw usage_error(fmt::format("{}: is a directory, a CSV file is needed", path));
  std::ifstream file(path);
  if (!file) throw usage_error(fmt::format("{}: {}", path, std::strerror(errno)));
  std::string text;
  for (std::string part(std::size_t{64} << 10, '\0');
       file.read(part.data(), std::streamsize(part.size())) || file.gcount() > 0;) {
    text.append(part, 0, std::size_t(file.gcount()));
    if (text.size() > 64u << 20) throw usage_error(fmt::format("{}: has more than 64 MiB", path));
  }
  std::istringstream in(text);
  std::string line;
  if (!std::getline(in, line))
    throw usage_error(fmt::format("{}: is empty, its first line names the columns", path));
  auto const names = fields(line);
  if (columns_.empty()) columns_ = names;
  for (std::string const& c : columns_) {
    auto const at = std::find(names.begin(), names.end(), c);
    if (at == names.end()) throw usage_error(fmt::format("{}:1: column '{}' is missing", path, c));
    where_.push_back(std::size_t(at - names.begin()));
  }
  while (std::getline(in, line)) {
    if (line.empty() || line == "\r") {
      rows_.emplace_back();
      continue;
    }
    rows_.push_back(fields(line));
    if (rows_.back().size() != names.size())
      throw usage_error(fmt::format("{}:{}: has {} fields, the first line names {}", path, rows_.size() + 1,
                                    rows_.back().size(), names.size()));
  }
  while (!rows_.empty() && rows_.back().empty()) rows_.pop_back();
  for (std::size_t r = 0; r < rows_.size(); ++r)
    if (rows_[r].empty()) throw usage_error(fmt::format("{}:{}: is empty", path, r + 2));
}

double csv::number(std::size_t row, std::size_t column, double least, double most) const {
  std::string const& t = text(row, column);
  auto const value = number_from<double>(t);
  if (!value || !(*value >= least && *value <= most))
    throw usage_error(fmt::format("{}:{}: '{}' is no {}: a number from {:g} to {:g}", path_, row + 2,
                                  printable(t, 40), columns_[column], least, most));
  return *value;
}

}  // namespace edl::simulate

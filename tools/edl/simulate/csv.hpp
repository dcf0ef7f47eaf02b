// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace edl::simulate {

/// A file of lines of fields between commas, the first with their names. At most 64 MiB, as many fields in
/// every line. Commas within quotation marks belong to a field.
class csv {
 public:
  /// Throws usage_error that names the file, and the line: it cannot be read, is too large, a column is
  /// missing, a line is too short. No `columns`: all that the file has.
  csv(std::string const& path, std::vector<std::string> const& columns);

  std::size_t rows() const { return rows_.size(); }
  std::vector<std::string> const& columns() const { return columns_; }

  /// `column` counts in the constructor's list.
  std::string const& text(std::size_t row, std::size_t column) const { return rows_[row].at(where_[column]); }

  /// For messages: the file and the line.
  std::string place(std::size_t row) const { return path_ + ":" + std::to_string(row + 2); }

  /// Throws usage_error: no number, or out of [least, most].
  double number(std::size_t row, std::size_t column, double least, double most) const;

 private:
  std::string path_;
  std::vector<std::string> columns_;
  std::vector<std::size_t> where_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace edl::simulate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

struct table_column {
  std::string name;
  example::kind kind = example::kind::none;  ///< none: as the values say
  bool spelled = false;                      ///< its numbers are texts: one is too large for an integer
  bool says_nothing = false;                 ///< texts, as all of its cells may say that a number is missing

  friend bool operator==(table_column const&, table_column const&) = default;
};

/// A file whose columns have one kind in all of its records, by all values that they have there.
class table : public source {
 public:
  virtual std::vector<table_column> const& columns() const = 0;

  std::vector<std::string> features() const override;

  /// From now on columns have these kinds, each at least as wide as its own. Before readers are opened.
  virtual void agree(std::vector<table_column> const& with) = 0;
};

/// The kind of a column that has one kind here and another there: whole numbers are numbers, and anything is
/// a text.
constexpr example::kind wider(example::kind a, example::kind b) {
  using enum example::kind;
  if (a == none || b == none) return a == none ? b : a;
  if (a == strings || b == strings) return strings;
  return a == floats || b == floats ? floats : integers;
}

namespace detail {
inline constexpr std::size_t table_notes = 20;  // of a file

/// What is told of a column that is spelled.
std::string spelled_note(std::string const& path, std::uint64_t line, std::string_view number,
                         std::string_view column);

/// Bytes beyond ASCII, and blanks at the ends, as they are written in C: "gro\xcc\x88e", "age\x20".
std::string spelled_out(std::string_view name);

/// Where one of `names` only looks like `wanted` (accents of other characters, other blanks or cases), a half
/// sentence that shows the difference: "; 'age\x20' looks like it and is another name". Empty: none does.
std::string look_alike(std::string_view wanted, std::vector<std::string_view> const& names);
}  // namespace detail

/// Gives the columns of several files one kind each, as if they were one file.
void agree(std::span<table* const> files);

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/table.ipp"
#endif

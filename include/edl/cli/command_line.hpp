// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "edl/cli/flag.hpp"

namespace edl::cli {

/// What a command takes.
struct grammar {
  std::string command;  ///< as messages name it: "edl train"
  std::vector<flag> flags;
  std::size_t least = 0, most = 0;  ///< arguments that are no flags
  std::string arguments{};          ///< what these are
  /// Why there is no flag of this name, behind "--name "; empty: for no reason that is known.
  std::function<std::string(std::string const& name)> why_unknown{};
};

/// What a user wrote, read by a grammar.
class command_line {
 public:
  /// Throws usage_error for an unknown flag (with the nearest known one), one given twice, or one without its
  /// value. A value that `accept` refuses, and too few or too many arguments, are usage errors, too.
  command_line(grammar g, words const& line);

  bool given(std::string const& name) const { return values_.count(name) > 0; }

  /// Whether it is given, and not as the fallback has it.
  bool changed(std::string const& name) const;

  /// What is given, or else the fallback.
  std::string const& text(std::string const& name) const;
  bool truth(std::string const& name) const;

  /// All values of a flag that repeats, in order; not given: its fallback split at commas.
  words all(std::string const& name) const;

  /// As `text`, of a whole number.
  std::int64_t number(std::string const& name) const;

  words const& arguments() const { return arguments_; }

  /// The flags as they were written, by their own names, in order.
  std::vector<std::pair<std::string, std::string>> const& in_order() const { return in_order_; }

 private:
  std::map<std::string, flag> known_;
  std::map<std::string, std::string> values_;
  std::vector<std::pair<std::string, std::string>> in_order_;
  words arguments_;
};

/// Throws usage_error for the first flag that is given without a value, and for an argument that is empty, as
/// by a script whose variable is not set: to leave either out may be something else.
void refuse_empty(command_line const& given);

/// Whether the line asks for help: --help, -h or --help=all, before "--".
bool asks_for_help(words const& line);

}  // namespace edl::cli

#ifdef EDL_HEADER_ONLY
#include "edl/cli/command_line.ipp"
#endif

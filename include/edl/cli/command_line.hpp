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

/// The flags and arguments that a command accepts.
struct grammar {
  std::string command;  ///< its name in messages: "edl train"
  std::vector<flag> flags;
  std::size_t least = 0, most = 0;  ///< number of arguments that are not flags
  std::string arguments{};          ///< their description
  /// The reason why a flag of this name does not exist, printed after "--name "; empty: no known reason.
  std::function<std::string(std::string const& name)> why_unknown{};
};

/// A user's command line, parsed by a grammar.
class command_line {
 public:
  /// Throws usage_error for an unknown flag (with the nearest known one), a flag given twice or without its
  /// value, a value that `accept` refuses, and for too few or too many arguments.
  command_line(grammar g, words const& line);

  bool given(std::string const& name) const { return values_.count(name) > 0; }

  /// Whether the flag is given with a value other than its fallback.
  bool changed(std::string const& name) const;

  /// The given value, or else the fallback.
  std::string const& text(std::string const& name) const;
  bool truth(std::string const& name) const;

  /// All values of a flag that repeats, in order; if it is not given, its fallback split at commas.
  words all(std::string const& name) const;

  /// The value as a whole number.
  std::int64_t number(std::string const& name) const;

  words const& arguments() const { return arguments_; }

  /// The given flags under their primary names, in order.
  std::vector<std::pair<std::string, std::string>> const& in_order() const { return in_order_; }

 private:
  std::map<std::string, flag> known_;
  std::map<std::string, std::string> values_;
  std::vector<std::pair<std::string, std::string>> in_order_;
  words arguments_;
};

/// Throws usage_error for the first flag without a value, and for an empty argument, which a script passes
/// when its variable is not set: ignoring either could change the meaning of the command.
void refuse_empty(command_line const& given);

/// Whether the line asks for help: --help, -h or --help=all, before "--".
bool asks_for_help(words const& line);

}  // namespace edl::cli

#ifdef EDL_HEADER_ONLY
#include "edl/cli/command_line.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace edl::tool {

using words = std::vector<std::string>;

/// One flag of a command. Commands are data: reading, help and completion follow from the same list.
struct flag {
  enum class kind { text, truth };
  std::string name;        ///< without dashes; also accepted with '-' for '_'
  std::string fallback{};  ///< what holds when it is not given
  std::string help{};      ///< empty: it is read, and not listed
  words aliases{};         ///< other names, without dashes; one letter: "-n"
  words choices{};         ///< the only values that there are; empty: any
  kind what = kind::text;
};

/// What a user wrote, read by a list of flags.
class command_line {
 public:
  /// `command` stands in messages: "train". Arguments that are no flags: at least `least`, at most `most`,
  /// and `what` they are. Throws usage_error: an unknown flag (with the nearest known one), one given twice,
  /// one without its value, a value that is none of the choices, too few or too many arguments.
  command_line(std::string command, std::vector<flag> known, words const& line, std::size_t least = 0,
               std::size_t most = 0, std::string const& what = "");

  bool given(std::string const& name) const { return values_.count(name) > 0; }
  std::string const& text(std::string const& name) const;
  bool truth(std::string const& name) const;

  /// Throws usage_error when it is no whole number from `least` to `most`.
  std::int64_t number(std::string const& name, std::int64_t least = 0,
                      std::int64_t most = std::numeric_limits<std::int32_t>::max()) const;

  words const& arguments() const { return arguments_; }
  std::string const& command() const { return command_; }

  /// The flags as they were written, by their own names, in order.
  std::vector<std::pair<std::string, std::string>> const& in_order() const { return in_order_; }

 private:
  void take(flag const& f, std::string const& value);

  std::string command_;
  std::map<std::string, flag> known_;
  std::map<std::string, std::string> values_;
  std::vector<std::pair<std::string, std::string>> in_order_;
  words arguments_;
};

/// "true", "yes", "t", "y", "1" and their opposites, in any case. Throws usage_error.
bool parse_truth(std::string const& name, std::string const& text);

/// The parts of `text` between `at`, without blanks around them and without empty ones.
words split(std::string const& text, char at);

/// The flags, one or more lines each, with what holds without them.
std::string describe(std::vector<flag> const& flags);

}  // namespace edl::tool

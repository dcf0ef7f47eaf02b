// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "edl/core/text.hpp"

namespace edl::cli {

using words = std::vector<std::string>;

/// One flag of a command. Flags are data: the parser, help, completion and documentation all use the same
/// list.
struct flag {
  enum class value_type {
    text,
    truth,   ///< `--name`, or `--name=true|yes|t|y|1|on` and their opposites
    whole,   ///< a whole number from `least` to `most`
    number,  ///< a number from `lowest` to `highest`
    share    ///< a number of more than 0, at most 1
  };
  std::string name{};      ///< without dashes; also accepted with '-' for '_'
  std::string fallback{};  ///< the value if it is not given
  std::string help{};      ///< empty: accepted but not listed
  words aliases{};         ///< other names, without dashes; one letter: "-n"
  words choices{};         ///< of a text: its only values; of a number: values allowed beside it
  value_type type = value_type::text;
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  double lowest = std::numeric_limits<double>::lowest(), highest = std::numeric_limits<double>::max();
  bool needed = false;
  bool repeats = false;  ///< may be given several times
  std::string group{};   ///< its heading in help
};

/// Normalises a value: choices match in any case. Throws usage_error, with the flag, the value and what is
/// expected, if the flag does not accept it.
std::string accept(flag const& f, std::string const& value);

/// Parses "true", "yes", "t", "y", "1", "on" and their opposites, in any case. Throws usage_error, which
/// names the flag, for other texts.
bool parse_truth(std::string const& name, std::string const& text);

/// The number in a text that `accept` has accepted.
template <class T>
  requires std::integral<T> || std::floating_point<T>
T parse_number(std::string const& text) {
  return number_from<T>(text).value_or(T{});
}

/// The parts of `text` between `at`, without surrounding blanks and without empty parts.
words split(std::string const& text, char at);

/// The comma-separated parts of a flag's value; none for an empty value. Throws usage_error if a part is
/// empty or occurs twice.
words list_of(std::string_view name, std::string const& text);

/// The flags by group, one or more lines each, with their fallbacks.
std::string describe(std::vector<flag> const& flags);

}  // namespace edl::cli

#ifdef EDL_HEADER_ONLY
#include "edl/cli/flag.ipp"
#endif

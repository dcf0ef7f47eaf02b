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

/// One flag of a command. Commands are data: reading, help, completion and documents follow from the same
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
  std::string fallback{};  ///< what holds when it is not given
  std::string help{};      ///< empty: it is read, and not listed
  words aliases{};         ///< other names, without dashes; one letter: "-n"
  words choices{};         ///< of a text: the only values that there are; of a number: values beside it
  value_type type = value_type::text;
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  double lowest = std::numeric_limits<double>::lowest(), highest = std::numeric_limits<double>::max();
  bool needed = false;
  bool repeats = false;  ///< may be given several times
  std::string group{};   ///< under which help lists it
};

/// The value as the flag has it: a choice is found in any case. Throws usage_error when the flag cannot have
/// it, with the flag, the value and what is expected.
std::string accept(flag const& f, std::string const& value);

/// What the text stands for: "true", "yes", "t", "y", "1", "on" and their opposites, in any case. Throws
/// usage_error, which names the flag.
bool parse_truth(std::string const& name, std::string const& text);

/// The number that a text is which `accept` let through.
template <class T>
  requires std::integral<T> || std::floating_point<T>
T parse_number(std::string const& text) {
  return number_from<T>(text).value_or(T{});
}

/// The parts of `text` between `at`, without blanks around them and without empty ones.
words split(std::string const& text, char at);

/// The parts of a flag's value with ',' between them; none of an empty one. Throws usage_error where a part
/// is empty or stands there twice.
words list_of(std::string_view name, std::string const& text);

/// The flags by group, one or more lines each, with what holds without them.
std::string describe(std::vector<flag> const& flags);

}  // namespace edl::cli

#ifdef EDL_HEADER_ONLY
#include "edl/cli/flag.ipp"
#endif

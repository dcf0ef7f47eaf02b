// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "edl/cli/command_line.hpp"
#include "edl/core/printable.hpp"

namespace edl::tool {

using cli::words, cli::flag, cli::split, cli::list_of, cli::describe, cli::parse_truth;

/// What the tool ends with; `edl --help` lists them.
enum exit_code : int { done = 0, failed = 1, wrong_usage = 2, refused = 3, cannot_reach = 4 };

/// Tells a person something, on standard error; what comes from a cluster or a file moves no cursor there.
inline void say(std::string const& text) { fmt::print(stderr, "edl: {}\n", printable(text)); }
inline void note(std::string const& text) { say("note: " + text); }

/// Why a command has no flag of this name, behind "--name "; empty: for no reason that is known.
using reason_of_flag = std::function<std::string(std::string const& name)>;

/// A command line of this tool.
class command_line : public cli::command_line {
 public:
  /// `command` stands in messages: "train". Arguments that are no flags: at least `least`, at most `most`,
  /// and `what` they are. `why_unknown` as in cli::grammar. Throws usage_error, also where a value or an
  /// argument is empty: a path without the name of what is meant would be that of all.
  command_line(std::string command, std::vector<flag> known, words const& line, std::size_t least = 0,
               std::size_t most = 0, std::string what = {}, reason_of_flag why_unknown = {})
      : cli::command_line({.command = "edl " + command,
                           .flags = std::move(known),
                           .least = least,
                           .most = most,
                           .arguments = std::move(what),
                           .why_unknown = std::move(why_unknown)},
                          line),
        command_(std::move(command)) {
    cli::refuse_empty(*this);
  }

  std::string const& command() const { return command_; }

 private:
  std::string command_;
};

}  // namespace edl::tool

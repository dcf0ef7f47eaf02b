// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "common/command_line.hpp"

namespace edl::tool {

/// One command of `edl`. Reading, help and completion follow from the list of them.
struct command {
  std::string name;       ///< "train"; of those in a group two words: "zoo init"
  std::string arguments;  ///< what follows its name in the help: "JOB [flags]"
  std::string help;       ///< one line
  std::string examples;   ///< command lines, each on a line of its own
  std::vector<flag> (*flags)();
  int (*run)(words const& line);
  words choices{};               ///< for its first argument
  bool is_job_argument = false;  ///< its first argument is the name of a job
};

std::vector<command> const& commands();

/// The command that the line begins with, and how many words name it. Throws usage_error with the nearest
/// known command.
std::pair<command const*, std::size_t> find_command(words const& line);

std::string help();
std::string help(command const& c);

/// The whole program: prints, and returns the exit code. Errors become one line on standard error.
int run(words const& line);

}  // namespace edl::tool

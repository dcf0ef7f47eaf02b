// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <string_view>

#include "edl/cli/command_line.hpp"

namespace edl::cli {

/// Runs a program without commands: handles --help and --version, parses the line, and calls `run`. Prints an
/// error as one line on standard error, after the program's name. Returns the exit code: 2 for a line that
/// cannot be parsed, 1 for other errors.
int run_program(grammar g, std::string const& purpose, words const& line,
                std::function<int(command_line const&)> const& run);

/// Occupies the descriptors of standard input, output and error if they are closed, so that a file opened
/// later does not receive what is printed; printing still fails, as before. Makes a write beyond `ulimit -f`
/// fail as on a full disk instead of ending the process. Raises the limit of open files to what the system
/// allows (`ulimit -Hn`), at most 65,536: a data set may have thousands.
void hold_standard_streams();

/// The message for this error: its text, or the limit on threads if the system refused this process one.
std::string text_of(std::exception const& e);

/// Writes "NAME: TEXT" to standard error, as a line. If that fails, only the exit code reports the error.
void complain(std::string const& name, std::string_view text) noexcept;

/// Throws error if anything printed to standard output could not be written.
void flush_output();

}  // namespace edl::cli

#ifdef EDL_HEADER_ONLY
#include "edl/cli/program.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <string_view>

#include "edl/cli/command_line.hpp"

namespace edl::cli {

/// The whole of a program without commands: --help and --version are answered, the line is read, `run` does
/// the rest. An error is one line on standard error, behind the program's name. Returns the exit code: 2
/// where the line cannot be read, 1 for other errors.
int run_program(grammar g, std::string const& purpose, words const& line,
                std::function<int(command_line const&)> const& run);

/// Keeps the places of standard input, output and error where they are closed, so that no file which is
/// opened later gets what is printed. What is printed cannot be written then, as before. A write that makes
/// a file larger than `ulimit -f` allows fails as on a full disk, in place of ending the process. As many
/// files may be open as the system allows (`ulimit -Hn`), 65,536 of them at most: a data set may have
/// thousands.
void hold_standard_streams();

/// What a line about this error says: its text, or what limits the threads of this process if one is refused.
std::string text_of(std::exception const& e);

/// Writes "NAME: TEXT" to standard error, as a line. Where that cannot be written, the exit code alone tells.
void complain(std::string const& name, std::string_view text) noexcept;

/// Throws error if anything that was printed to standard output could not be written.
void flush_output();

}  // namespace edl::cli

#ifdef EDL_HEADER_ONLY
#include "edl/cli/program.ipp"
#endif

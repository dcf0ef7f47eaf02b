// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <utility>

#include "edl/cli/program.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/version.hpp"

namespace edl::cli {

EDL_INLINE int run_program(grammar g, std::string const& purpose, words const& line,
                           std::function<int(command_line const&)> const& run) {
  std::string const name = g.command;
  try {
    if (asks_for_help(line)) {
      fmt::print("{}\n\nusage: {} [flags]\n\n{}", purpose, name, describe(g.flags));
      return 0;
    }
    if (line == words{"--version"}) {
      fmt::print("{} {}\n", name, package_version);
      return 0;
    }
    return run(command_line(std::move(g), line));
  } catch (usage_error const& e) {
    fmt::print(stderr, "{}: {}\n", name, printable(e.what()));
    return 2;
  } catch (std::exception const& e) {
    fmt::print(stderr, "{}: {}\n", name, printable(e.what()));
    return 1;
  }
}

}  // namespace edl::cli

// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "commands.hpp"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);  // `edl logs mnist | head` ends with its reader
  return edl::tool::run({argv + 1, argv + argc});
}

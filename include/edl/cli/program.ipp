// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <system_error>
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
  hold_standard_streams();
  try {
    if (asks_for_help(line)) {
      fmt::print("{}\n\nusage: {} [flags]\n\n{}", purpose, name, describe(g.flags));
      flush_output();
      return 0;
    }
    if (line == words{"--version"}) {
      fmt::print("{} {}\n", name, package_version);
      flush_output();
      return 0;
    }
    int const code = run(command_line(std::move(g), line));
    flush_output();
    return code;
  } catch (usage_error const& e) {
    complain(name, e.what());
    return 2;
  } catch (std::exception const& e) {
    complain(name, text_of(e));
    return 1;
  }
}

EDL_INLINE void hold_standard_streams() {
  for (int fd : {0, 1, 2})
    if (::fcntl(fd, F_GETFD) < 0)  // open takes the lowest free descriptor
      static_cast<void>(::open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY));
  ::signal(SIGXFSZ, SIG_IGN);
  ::rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  rlim_t const wanted = std::min<rlim_t>(files.rlim_max, rlim_t{1} << 16);
  if (files.rlim_cur >= wanted) return;
  files.rlim_cur = wanted;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

EDL_INLINE std::string text_of(std::exception const& e) {
  auto const* const system = dynamic_cast<std::system_error const*>(&e);
  if (!system || system->code().value() != EAGAIN) return e.what();  // asio has a category of its own
  return "the system refuses one more thread; raise its limit of processes (ulimit -u, or pids.max of the "
         "container)";
}

EDL_INLINE void complain(std::string const& name, std::string_view text) noexcept try {
  fmt::print(stderr, "{}: {}\n", name, printable(text));
} catch (std::exception const&) {  // of fmt: the stream is full, or closed
}

EDL_INLINE void flush_output() {
  errno = 0;
  bool const failed = std::fflush(stdout) != 0;
  int const code = errno;
  if (failed || std::ferror(stdout) != 0)
    throw error(fmt::format("standard output cannot be written{}{}", code != 0 ? ": " : "",
                            code != 0 ? std::strerror(code) : ""));
}

}  // namespace edl::cli

// SPDX-License-Identifier: Apache-2.0
#include "export.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <tuple>

#include "edl/app/arguments.hpp"
#include "edl/cli/program.hpp"
#include "edl/core/error.hpp"
#include "edl/job/config/resolve.hpp"

namespace edl::tool {
namespace {

namespace fs = std::filesystem;

bool runs(std::string const& path) {
  std::error_code code;
  return fs::is_regular_file(path, code) && ::access(path.c_str(), X_OK) == 0;
}

/// As a shell finds it.
std::string path_of(std::string const& program) {
  std::error_code code;
  if (program.ends_with(".safetensors") || fs::is_directory(program, code))
    throw usage_error(
        fmt::format("{} is a model or a directory: name the program that trained it, and the model by "
                    "--checkpoint_dir_for_init",
                    program));
  if (program.find('/') != program.npos) {
    if (!fs::exists(program, code)) throw usage_error(fmt::format("no program {}", program));
    if (!runs(program)) throw usage_error(fmt::format("{} is not a program: it cannot be run", program));
    return program;
  }
  char const* const path = std::getenv("PATH");
  for (std::string const& folder : split(path ? path : "", ':'))
    if (std::string const file = folder + '/' + program; runs(file)) return file;
  throw usage_error(fmt::format("no program '{}' in PATH: {}", program,
                                runs("./" + program) ? "the one that is here is ./" + program
                                                     : "give the path of the one that edl_add_model made"));
}

/// What changes when a file is written anew.
auto state_of(std::string const& file) {
  struct stat s{};
  bool const exists = ::stat(file.c_str(), &s) == 0;
  return std::tuple(exists, s.st_ino, s.st_size, s.st_ctim.tv_sec, s.st_ctim.tv_nsec);
}

}  // namespace

std::vector<flag> export_flags() { return app::export_flags("edl"); }

words export_line(words const& line) {
  command_line const l("export", export_flags(), line, 1, 1, "the model's program");
  check_export_file(l);
  words all{path_of(l.arguments().front()), "export"};
  for (auto const& [name, value] : l.in_order()) all.push_back(fmt::format("--{}={}", name, value));
  return all;
}

int export_model(words const& line) {
  words all = export_line(line);
  constexpr std::string_view names_file = "--export_onnx=";
  auto const given =
      std::ranges::find_if(all, [&](std::string const& word) { return word.starts_with(names_file); });
  std::string const file = given->substr(names_file.size());
  auto const before = state_of(file);
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  cli::flush_output();
  pid_t const pid = ::fork();
  if (pid < 0) throw error(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // whatever ends this command ends its program
    ::sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execv(argv[0], argv.data());
    cli::complain("edl", fmt::format("{} cannot be run: {}", all[0], std::strerror(errno)));
    ::_exit(1);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      throw error(fmt::format("{}: cannot be waited for: {}", all[0], std::strerror(errno)));
  if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
  if (status == 0 && state_of(file) == before)
    throw error(fmt::format("{} has ended, and has not written {}: name a program that edl_add_model made",
                            all[0], file));
  return WEXITSTATUS(status);
}

}  // namespace edl::tool

// SPDX-License-Identifier: Apache-2.0
#include "zoo/engine.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "edl/core/error.hpp"

namespace edl::tool {
namespace {

enum class output { shown, complaints_kept, kept };

struct outcome {
  int code = 0;  ///< 128 + signal when it was killed
  std::string complaints;
};

/// Runs a program to its end. What it says on standard error is shown as well, unless it is only kept.
outcome run(std::vector<std::string> const& command, output how) {
  int ends[2] = {-1, -1};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (how != output::shown) {
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    if (how == output::kept)
      ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  std::vector<char*> arguments;
  for (std::string const& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  int const failure = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (ends[1] >= 0) ::close(ends[1]);
  if (failure != 0) {
    if (ends[0] >= 0) ::close(ends[0]);
    throw error(fmt::format(
        "{}: {}: install a container engine (on Debian: apt-get install docker.io) or name another "
        "one's command in EDL_DOCKER (podman)",
        command[0], failure == ENOENT ? "no such program" : std::strerror(failure)));
  }
  outcome result;
  char buffer[4096];
  for (ssize_t n = 0;
       ends[0] >= 0 && ((n = ::read(ends[0], buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR));) {
    if (n < 0) continue;
    if (how == output::complaints_kept) (void)!::write(STDERR_FILENO, buffer, std::size_t(n));
    // The end says why it failed.
    result.complaints.append(buffer, std::size_t(n));
    if (result.complaints.size() > 2 * sizeof buffer)
      result.complaints.erase(0, result.complaints.size() - sizeof buffer);
  }
  if (ends[0] >= 0) ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      throw error(fmt::format("{}: cannot be waited for: {}", command[0], std::strerror(errno)));
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string last_line(std::string text) {
  text.erase(text.find_last_not_of(" \r\n") + 1);
  if (text.ends_with('?') || text.ends_with('.')) text.pop_back();
  auto const at = text.find_last_of('\n');
  return at == std::string::npos ? text : text.substr(at + 1);
}

}  // namespace

std::string engine_advice(std::string const& program, std::string const& complaint) {
  auto const says = [&](std::string_view words) { return complaint.find(words) != std::string::npos; };
  if (says("ermission denied") && says("sock"))
    return ": this user may not use the engine: add it to the engine's group (sudo usermod -aG docker $USER, "
           "then log "
           "in again), or take an engine that needs no daemon (EDL_DOCKER=podman)";
  if (says("Cannot connect to the Docker daemon") || says("daemon is running") || says("daemon running"))
    return ": the engine does not run: start it (sudo systemctl start docker) or give its address "
           "(DOCKER_HOST)";
  if (says("does not exist locally") || says("image not known") || says("No such image"))
    return ": no such image here: `edl zoo build --image=…` makes it";
  if (says("denied") || says("nauthorized") || says("authentication required") || says("no basic auth"))
    return fmt::format(
        ": the registry does not let this user in: `{} login REGISTRY` first; and the image's name must "
        "begin with a registry and a repository that are yours",
        program);
  if (says("connection refused") || says("no such host") || says("i/o timeout"))
    return ": the registry does not reply: does the image's name begin with the right one?";
  return "";
}

void container_engine::check() const {
  outcome const o = run({program_, "version"}, output::kept);
  if (o.code != 0)
    throw error(fmt::format("{} cannot be used: {}{}", program_, last_line(o.complaints),
                            engine_advice(program_, o.complaints)));
}

void container_engine::build(std::string const& image, std::string const& folder,
                             std::vector<std::string> const& more) const {
  std::string const file = (std::filesystem::path(folder) / "Dockerfile").string();
  if (!std::filesystem::exists(file))
    throw error(fmt::format("{}: no such file: `edl zoo init` makes it, in its working directory", file));
  check();
  std::vector<std::string> command{program_, "build", "--tag", image, "--file", file};
  command.insert(command.end(), more.begin(), more.end());
  command.push_back(folder);
  if (outcome const o = run(command, output::shown); o.code != 0)
    throw error(
        fmt::format("the image {} was not built: {} build ended with code {}; see its last lines above",
                    image, program_, o.code));
}

void container_engine::push(std::string const& image) const {
  check();
  if (outcome const o = run({program_, "push", image}, output::complaints_kept); o.code != 0)
    throw error(fmt::format("the image {} was not pushed: {}{}", image, last_line(o.complaints),
                            engine_advice(program_, o.complaints)));
}

}  // namespace edl::tool

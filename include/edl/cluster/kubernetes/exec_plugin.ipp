// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>

#include "edl/cluster/kubernetes/errors.hpp"
#include "edl/cluster/kubernetes/exec_plugin.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"

namespace edl::kubernetes {
namespace detail {

inline std::vector<std::string> plugin_environment(exec_plugin const& p, bool interactive) {
  nlohmann::json info{{"apiVersion", "client.authentication.k8s.io/" + p.version},
                      {"kind", "ExecCredential"},
                      {"spec", {{"interactive", interactive}}}};
  if (!p.cluster.empty()) info["spec"]["cluster"] = nlohmann::json::parse(p.cluster);
  auto mine = p.variables;
  mine.emplace_back("KUBERNETES_EXEC_INFO", info.dump());
  std::vector<std::string> all;
  for (auto const& [name, value] : mine) all.push_back(name + "=" + value);
  for (char** e = ::environ; *e; ++e) {
    std::string_view const entry(*e), name = entry.substr(0, entry.find('='));
    if (std::none_of(mine.begin(), mine.end(), [&](auto const& v) { return v.first == name; }))
      all.emplace_back(entry);
  }
  return all;
}

inline std::vector<char*> pointers_to(std::vector<std::string> const& strings) {
  std::vector<char*> out;
  for (auto const& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

// A child process and its output. Guarantees that neither outlives a call.
class child {
 public:
  child(exec_plugin const& p, bool interactive) : group_(!interactive) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw error(fmt::format("{}: pipe: {}", p.origin, std::strerror(errno)));
    output_ = ends[0];
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    if (!interactive) ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, ends[1], 1);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    sigset_t signals;
    sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes, &signals);
    for (int s : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD}) sigaddset(&signals, s);
    ::posix_spawnattr_setsigdefault(&attributes, &signals);
    // In its own process group it can be killed together with its children. But only the terminal's
    // foreground group may read from the terminal.
    ::posix_spawnattr_setflags(&attributes, short(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                  (interactive ? 0 : POSIX_SPAWN_SETPGROUP)));
    auto words = p.arguments;
    words.insert(words.begin(), p.command);
    auto const variables = plugin_environment(p, interactive);
    int const code = ::posix_spawnp(&pid_, p.command.c_str(), &files, &attributes, pointers_to(words).data(),
                                    pointers_to(variables).data());
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
    ::close(ends[1]);
    if (code == 0) return;
    ::close(output_);
    auto const hint =
        p.install_hint.empty() ? "install it, or add its directory to $PATH" : one_line(p.install_hint);
    throw error(fmt::format("{}: the program '{}' cannot be run: {}; {}", p.origin, p.command,
                            std::strerror(code), hint));
  }
  child(child const&) = delete;
  ~child() {
    if (pid_ > 0) {
      ::kill(group_ ? -pid_ : pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(output_);
  }

  // Appends output that arrives within `time`. Returns false at the end of the output.
  bool read(std::string& to, std::chrono::milliseconds time) {
    pollfd p{output_, POLLIN, 0};
    if (::poll(&p, 1, int(time.count())) <= 0) return true;
    char buffer[4096];
    auto const n = ::read(output_, buffer, sizeof buffer);
    if (n > 0) to.append(buffer, std::size_t(n));
    return n > 0 || (n < 0 && errno == EINTR);
  }

  // Its exit status, once it has ended.
  std::optional<int> status() {
    int s = 0;
    if (pid_ <= 0 || ::waitpid(pid_, &s, WNOHANG) != pid_) return std::nullopt;
    pid_ = 0;
    return s;
  }

 private:
  bool group_;
  pid_t pid_ = 0;
  int output_ = -1;
};

inline exec_credential parse_credential(exec_plugin const& p, std::string const& output) {
  auto const bad = [&](std::string const& why) {
    return error(fmt::format("{}: '{}' gave no credentials: {}", p.origin, p.command, why));
  };
  auto const o = parse_json(output);
  auto const text = [](nlohmann::json const& of, char const* key) -> std::string {
    auto const it = of.find(key);
    return it != of.end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  if (!o.is_object() || text(o, "kind") != "ExecCredential")
    throw bad(output.empty() ? "it printed nothing" : "its output is not an ExecCredential in JSON");
  if (auto const version = text(o, "apiVersion"); version != "client.authentication.k8s.io/" + p.version)
    throw bad(fmt::format("it speaks '{}', but the kubeconfig requests {}: make them agree",
                          one_line(version, 100), p.version));
  auto const status = o.find("status");
  if (status == o.end() || !status->is_object()) throw bad("it has no status");
  exec_credential c{
      text(*status, "token"), text(*status, "clientCertificateData"), text(*status, "clientKeyData"), {}};
  if (c.token.empty() && c.certificate.empty()) throw bad("it has neither a token nor a certificate");
  if (c.certificate.empty() != c.key.empty()) throw bad("a certificate and its key come together");
  for (char byte : c.token)
    if (byte <= ' ' || byte == 0x7f)
      throw bad("its token has a blank, a line break or a control character in it");
  if (auto const expires = text(*status, "expirationTimestamp"); !expires.empty()) {
    c.expires = parse_time(expires);
    if (!c.expires)
      throw bad(fmt::format("its expirationTimestamp '{}' is not a time", one_line(expires, 100)));
  }
  return c;
}

}  // namespace detail

EDL_INLINE exec_credential run(exec_plugin const& p) {
  constexpr std::size_t longest = 1 << 20;
  bool const interactive = p.interactive != "Never" && ::isatty(0) == 1;
  if (p.interactive == "Always" && !interactive)
    throw error(
        fmt::format("{}: '{}' must prompt the user, but this process has no terminal", p.origin, p.command));
  detail::child c(p, interactive);
  auto const end = clock::now() + p.time;
  std::string output;
  std::optional<int> status;
  for (bool open = true;;) {
    if (open) {
      auto const before = output.size();
      open = c.read(output, std::chrono::milliseconds(status ? 0 : 20));
      // A child that has ended may have left a process that keeps the output open.
      if (status && output.size() == before) break;
    } else if (status) {
      break;
    } else {
      ::poll(nullptr, 0, 2);
    }
    if (output.size() > longest)
      throw error(fmt::format("{}: '{}' prints more than 1 MiB", p.origin, p.command));
    if (!status) status = c.status();
    if (!status && clock::now() > end)
      throw error(fmt::format("{}: '{}' has not ended within {} s", p.origin, p.command,
                              double(p.time.count()) / 1000));
  }
  if (*status != 0) {
    auto const how = WIFSIGNALED(*status) ? fmt::format("was killed by signal {}", WTERMSIG(*status))
                                          : fmt::format("exited with code {}", WEXITSTATUS(*status));
    throw error(fmt::format("{}: '{}' {}; run it by hand to see why", p.origin, p.command, how));
  }
  return detail::parse_credential(p, output);
}

EDL_INLINE exec_credential const& exec_credentials::get(bool refused, std::int64_t now) {
  if (!last_ || refused || (last_->expires && now >= *last_->expires)) last_ = run(plugin_);
  return *last_;
}

EDL_INLINE std::optional<std::int64_t> parse_time(std::string const& text) {
  std::tm t{};
  char const* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &t);
  if (!rest) return std::nullopt;
  if (*rest == '.')
    for (++rest; *rest >= '0' && *rest <= '9';) ++rest;
  std::int64_t const seconds = ::timegm(&t);
  if (std::string_view(rest) == "Z" || std::string_view(rest) == "z") return seconds;
  auto const digit = [&](int i) { return rest[i] >= '0' && rest[i] <= '9'; };
  bool const offset = std::strlen(rest) == 6 && (*rest == '+' || *rest == '-') && digit(1) && digit(2) &&
                      rest[3] == ':' && digit(4) && digit(5);
  if (!offset) return std::nullopt;
  auto const minutes = ((rest[1] - '0') * 10 + rest[2] - '0') * 60 + (rest[4] - '0') * 10 + rest[5] - '0';
  return seconds - (*rest == '+' ? 60 : -60) * minutes;
}

}  // namespace edl::kubernetes

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>

#include "edl/app/environment.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/text.hpp"

namespace edl::app {
namespace detail {

inline std::string variable(char const* name) {
  char const* value = std::getenv(name);
  return value ? value : "";
}

template <class T>
T number(char const* name, std::string const& text) {
  auto const n = number_from<T>(text);
  if (!n) throw usage_error(fmt::format("{}='{}': expected a number", name, text));
  return *n;
}

}  // namespace detail

EDL_INLINE net::node_options node_options_of(process_environment const& s, job const& j, logger const& log) {
  bool const master = s.role == "master";
  return {.job = s.job_name,
          .secret = net::token(s.token),
          .log = log,
          .self = {.name = master ? s.role : fmt::format("{}-{}", s.role, s.id),
                   .incarnation = master ? 0 : draw_incarnation()},
          .security = j.processes.transport_security};
}

EDL_INLINE process_environment read_environment() {
  process_environment s{.role = detail::variable("EDL_ROLE"),
                        .job_name = detail::variable("EDL_JOB_NAME"),
                        .token = detail::variable("EDL_JOB_TOKEN"),
                        .master = detail::variable("MASTER_ADDR"),
                        .host = detail::variable("MY_POD_IP"),
                        .platform = detail::variable("EDL_PLATFORM"),
                        .launcher = detail::variable("EDL_LAUNCHER"),
                        .launcher_token = detail::variable("EDL_LAUNCHER_TOKEN"),
                        .directory = detail::variable("EDL_JOB_DIR"),
                        .lock = detail::variable("EDL_LOCK"),
                        .journal = detail::variable("EDL_JOURNAL"),
                        .dry_run = detail::variable("EDL_DRY_RUN_DIR"),
                        .shown = detail::variable("EDL_STATUS_LINE") == "1",
                        .cluster = detail::variable("EDL_JOB"),
                        .pod_name = detail::variable("MY_POD_NAME"),
                        .pod_uid = detail::variable("MY_POD_UID")};
  if (s.role.empty()) return s;
  if (s.role != "master" && s.role != "ps" && s.role != "worker")
    throw usage_error(fmt::format("EDL_ROLE={}: expected master, ps or worker", s.role));
  if (s.token.empty())
    throw usage_error(
        "EDL_JOB_TOKEN is not set: all processes of a job need the same secret; `openssl rand -hex 32` "
        "prints one");
  if (std::string const port = detail::variable("EDL_PORT"); !port.empty())
    s.port = detail::number<std::uint16_t>("EDL_PORT", port);
  if (s.platform == "kubernetes")
    for (auto const& [name, value] :
         {std::pair{"MY_POD_IP", s.host}, {"MY_POD_NAME", s.pod_name}, {"MY_POD_UID", s.pod_uid}})
      if (value.empty())
        throw usage_error(
            fmt::format("{} is not set: a pod of a job gets it from its own fields (fieldRef)", name));
  if (s.role == "master") return s;
  if (s.master.empty()) throw usage_error("MASTER_ADDR is not set: give the master's address (host:port)");
  char const* const name = s.role == "ps" ? "PS_ID" : "WORKER_ID";
  std::string const id = detail::variable(name);
  if (id.empty())
    throw usage_error(fmt::format("{} is not set: each {} of a job has a number, from 0 on", name, s.role));
  s.id = detail::number<std::uint32_t>(name, id);
  return s;
}

EDL_INLINE std::uint64_t draw_incarnation() {
  std::random_device device;
  std::uint64_t const drawn = std::uint64_t{device()} << 32 | device();
  return drawn == 0 ? 1 : drawn;
}

EDL_INLINE std::vector<net::address> listen_at(std::string const& host, std::uint16_t port,
                                               std::string const& directory) {
  return {net::address{net::address::transport::local,
                       directory.empty() ? fmt::format("edl-{}-{:016x}", ::getpid(), draw_incarnation())
                                         : directory + "/master",
                       0},
          net::address{net::address::transport::tcp, host, port}};
}

EDL_INLINE std::vector<net::address> master_addresses(std::string const& text) {
  std::vector<net::address> out;
  for (std::size_t at = 0; at <= text.size();) {
    auto const end = std::min(text.find(',', at), text.size());
    std::string one = text.substr(at, end - at);
    if (one.rfind("tcp:", 0) != 0 && one.rfind("unix:", 0) != 0) one = "tcp:" + one;
    out.push_back(net::parse_address(one));
    if (out.back().peer.empty()) out.back().peer = "master";
    at = end + 1;
  }
  return out;
}

EDL_INLINE std::string joined(std::vector<net::address> const& addresses) {
  std::string text;
  for (net::address const& a : addresses) text += (text.empty() ? "" : ",") + net::to_string(a);
  return text;
}

EDL_INLINE std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline");
  std::vector<std::string> command;
  for (std::string part; std::getline(file, part, '\0');) command.push_back(part);
  if (command.empty()) throw error("cannot read this process's own command line from /proc/self/cmdline");
  return command;
}

}  // namespace edl::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>

#include "edl/app/environment.hpp"
#include "edl/app/running.hpp"
#include "edl/base/net/blocking.hpp"
#include "edl/base/net/channel.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/master/journal.hpp"

namespace edl::app {
namespace detail {

inline constexpr char const* announcement = "/job.json";

}  // namespace detail

EDL_INLINE void announce(job_directory const& in, std::string const& name, std::string const& token,
                         std::string const& checkpoints) {
  std::string const path = in.path() + detail::announcement;
  std::string const text = nlohmann::json{
      {"job", name},
      {"token", token},
      {"process", std::to_string(::getpid())},
      {"checkpoints",
       checkpoints}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  int const fd =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  bool const whole = fd >= 0 && ::write(fd, text.data(), text.size()) == ssize_t(text.size());
  int const code = errno;
  if (fd >= 0) ::close(fd);
  if (!whole) throw error(fmt::format("{} cannot be written: {}", path, std::strerror(code)));
}

EDL_INLINE job_contact find_job(std::string const& name) {
  std::map<std::string, std::string> those;  // by process: a base may be listed under two names
  job_contact found;
  for (std::string const& directory : running_job_directories()) try {
      std::ifstream in(directory + detail::announcement);
      auto const job = nlohmann::json::parse(in);
      auto const process = job.at("process").get<std::string>();
      if (job.at("job") != name && process != name) continue;
      found = {.name = job.at("job").get<std::string>(),
               .token = job.at("token").get<std::string>(),
               .master = net::parse_addresses(master::journal::addresses(directory + "/journal.json"))};
      those[process] = fmt::format("process {} (--checkpoint_dir={})", process,
                                   printable(job.at("checkpoints").get<std::string>(), 200));
    } catch (std::exception const&) {
      // The job is just beginning, or ending.
    }
  if (those.size() > 1)
    throw error(fmt::format("{} jobs '{}' run on this machine: {}; --job_name=N takes the one of process N",
                            those.size(), name, fmt::join(those | std::views::values, ", ")));
  if (those.empty())
    throw error(fmt::format(
        "no job '{}' of this user runs on this machine; --job_name names another, MASTER_ADDR and "
        "EDL_JOB_TOKEN one elsewhere; a job that trains in one process has nothing to scale: start it "
        "with --num_workers",
        name));
  return found;
}

EDL_INLINE void scale(scaling const& wanted) {
  char const *const where = std::getenv("MASTER_ADDR"), *const token = std::getenv("EDL_JOB_TOKEN");
  job_contact const c =
      where && token ? job_contact{wanted.job, token, master_addresses(where)} : find_job(wanted.job);
  net::node node({.job = c.name, .secret = net::token(c.token)});
  net::channel master(node, c.master, "the master");
  wire::ScaleRequest request;
  if (wanted.workers) request.set_workers(std::uint32_t(*wanted.workers));
  if (wanted.servers) request.set_servers(std::uint32_t(*wanted.servers));
  net::outgoing what{.method = wire::method::scale,
                     .message = wire::pack(request),
                     .timeout = std::chrono::seconds(10),
                     .idempotent = true};
  auto const reply = wire::unpack<wire::ScaleReply>(net::wait(master, std::move(what)).message, "the master");
  if (!reply.refused().empty()) throw usage_error(reply.refused());
  auto const announce = [&](auto const& n, char const* kind) {
    if (n) fmt::print("job '{}': requested {} {}; its log reports when they have joined\n", c.name, *n, kind);
  };
  announce(wanted.workers, "workers");
  announce(wanted.servers, "servers");
}

}  // namespace edl::app

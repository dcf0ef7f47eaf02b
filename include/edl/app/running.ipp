// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "edl/app/environment.hpp"
#include "edl/app/running.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/master/journal.hpp"
#include "edl/net/blocking.hpp"
#include "edl/net/channel.hpp"
#include "edl/net/node.hpp"
#include "edl/wire/edl.pb.h"
#include "edl/wire/message.hpp"
#include "edl/wire/method.hpp"

namespace edl::app {
namespace detail {

/// A directory of this user alone.
inline std::string running_directory() {
  char const* const given = std::getenv("XDG_RUNTIME_DIR");
  std::string const base = given && *given ? given : std::filesystem::temp_directory_path().string();
  std::string path = fmt::format("{}/edl-{}", base, ::getuid());
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    throw error(fmt::format("cannot make {}: {}", path, std::strerror(errno)));
  struct stat s {};
  if (::lstat(path.c_str(), &s) != 0 || !S_ISDIR(s.st_mode) || s.st_uid != ::getuid() ||
      (s.st_mode & 077) != 0)
    throw error(fmt::format("{} must belong to this user alone (mode 0700)", path));
  return path;
}

inline std::string running_path(std::string const& job) {
  std::string name = job;
  for (char& c : name)
    if (c == '/') c = '_';
  return running_directory() + "/" + name + ".json";
}

inline std::string slurp(std::string const& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace detail

EDL_INLINE running_job::running_job(std::string const& name, std::string const& token,
                                    std::string const& journal)
    : path_(detail::running_path(name)),
      content_(nlohmann::json{{"job", name}, {"token", token}, {"journal", journal}}.dump()) {
  remove_dead_temporaries(detail::running_directory());
  replace_file(path_, content_);
}

EDL_INLINE running_job::~running_job() {
  std::error_code ignored;
  if (detail::slurp(path_) == content_)
    std::filesystem::remove(path_, ignored);  // another of that name may run
}

EDL_INLINE running_job::contact running_job::find(std::string const& name) {
  std::string const path = detail::running_path(name);
  try {
    auto const job = nlohmann::json::parse(detail::slurp(path));
    contact c{.token = job.at("token"), .master = {}};
    c.master = net::parse_addresses(master::journal::addresses(job.at("journal").get<std::string>()));
    return c;
  } catch (std::exception const&) {
    throw error(
        fmt::format("no job '{}' of this user runs on this machine; --job_name names another, "
                    "MASTER_ADDR and EDL_JOB_TOKEN one elsewhere",
                    name));
  }
}

EDL_INLINE void scale(scaling const& wanted) {
  char const *const where = std::getenv("MASTER_ADDR"), *const token = std::getenv("EDL_JOB_TOKEN");
  running_job::contact const c =
      where && token ? running_job::contact{token, master_addresses(where)} : running_job::find(wanted.job);
  net::node node({.job = wanted.job, .secret = net::token(c.token)});
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
  auto const told = [&](auto const& n, char const* kind) {
    if (n)
      fmt::print("job '{}' is asked for {} {}; its log says when they are there\n", wanted.job, *n, kind);
  };
  told(wanted.workers, "workers");
  told(wanted.servers, "servers");
}

}  // namespace edl::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <optional>

#include "edl/app/arguments.hpp"
#include "edl/app/audit.hpp"
#include "edl/app/command.hpp"
#include "edl/app/master_absence.hpp"
#include "edl/app/roles.hpp"
#include "edl/app/running.hpp"
#include "edl/app/signals.hpp"
#include "edl/app/sweep.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/names.hpp"
#include "edl/data/convert.hpp"
#include "edl/data/source.hpp"
#include "edl/platform/platform.hpp"
#include "edl/train/local.hpp"
#include "edl/train/records.hpp"
#include "edl/train/setup.hpp"
#include "edl/worker/links.hpp"

namespace edl::app {
namespace detail {

inline int run_conversion(train::program const& p, conversion const& c) {
  auto const from = data::open_source(c.from, {}, p.open);
  data::convert_options options{.records_per_shard = c.records_per_shard, .fraction = c.fraction};
  options.recordio.with = c.compressor;
  bool const terminal = ::isatty(2) == 1;
  if (terminal)
    options.progress = [](std::uint64_t done, std::uint64_t of) {
      fmt::print(stderr, "\r{}/{} records{}", done, of, done == of ? "\n" : "");
    };
  data::converted const made = data::convert(*from, c.to, options);
  fmt::print("{} records in {} files: {}\n", made.records, made.files, c.to);
  return 0;
}

inline logger open_log(job const& j, surroundings const& s) {
  std::string const name = s.role.empty() || s.role == "master" ? s.role : fmt::format("{}-{}", s.role, s.id);
  if (j.log_file_path.empty()) return logger(j.log_level, name);
  int const file = ::open(j.log_file_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0)
    throw usage_error(fmt::format("--log_file_path={}: {}", j.log_file_path, std::strerror(errno)));
  return logger(j.log_level, name, 2, file);
}

inline int run_role(train::program& p, std::string const& name, std::vector<std::string> const& line) {
  parsed const command = parse(name, line, p.set);
  if (!command.run) {
    fmt::print(command.code == 0 ? stdout : stderr, "{}", command.text);
    return command.code;
  }
  arguments a = *command.run;
  if (a.data) return run_conversion(p, *a.data);
  if (a.scale) {
    scale(*a.scale);
    return 0;
  }
  if (a.sweep) return run_sweep(*a.sweep, p, signals{SIGTERM, SIGINT});
  if (a.audit) {
    audit const found = audit_checkpoint(*a.audit);
    write(std::cout, found);
    return found.exact() ? 0 : 1;
  }
  if (train::settings const given = train::read_settings(a.job.set); !given.empty()) {
    train::hyperparameters all = p.set;
    train::set(all, given);
    p = p.with(all);
  }
  a.job.hyperparameters = train::write_settings(train::values_of(p.set));
  if (a.job.explain_plan) {
    p.explain(std::cout, train::trainer_options_of(a.job, std::max(1, a.job.num_workers), 0));
    return 0;
  }
  ::prctl(PR_SET_NAME, name.c_str());  // a child is started through a link of /proc, which would be its name
  surroundings s = read_environment();
  if (s.job_name.empty()) s.job_name = a.job.name;
  a.job.name = s.job_name;
  // A worker's Ctrl-C is the master's business: all processes of a terminal get it.
  signals const stop{SIGTERM, SIGINT};
  ::signal(SIGPIPE, SIG_IGN);
  logger const log = open_log(a.job, s);
  // What this command started has read them above its own lines.
  if (s.role.empty() || (s.role == "master" && s.platform != "process"))
    for (std::string const& note : a.notes) log.warning(note);
  if (s.role == "master") return run_master(p, a, s, log, stop);
  try {
    if (s.role == "ps") return run_server(p, a, s, log, stop);
    if (s.role == "worker") return run_worker(p, a, s, log, stop);
  } catch (worker::interrupted const& e) {
    log.info(e.what());
    return 0;
  }
  if (a.job.how == strategy::local) {
    std::optional<int> asked;
    int const code = train::run_local(p, a.job, log, [&] {
      if (!asked) asked = stop.wait(std::chrono::milliseconds(0));
      return asked.has_value();
    });
    return code == 0 || !asked ? code : 128 + *asked;
  }
  return run_cluster(a, log, stop);
}

}  // namespace detail

EDL_INLINE int run(train::program& p, int argc, char** argv) {
  std::string name = argc > 0 ? argv[0] : "edl";
  name = name.substr(name.find_last_of('/') + 1);
  try {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
      throw error("this program needs a processor with AVX2 and FMA (x86-64-v3)");
    return detail::run_role(p, name, {argv + 1, argv + argc});
  } catch (std::bad_alloc const&) {
    fmt::print(stderr,
               "{}: memory is not enough; lower --minibatch_size, use fewer processes, or give this one more "
               "(--explain_plan tells what the network takes)\n",
               name);
    return 1;
  } catch (master_away const& e) {
    fmt::print(stderr, "{}: {}\n", name, e.what());
    return platform::gave_up_waiting;
  } catch (std::exception const& e) {
    fmt::print(stderr, "{}: {}\n", name, e.what());
    return 1;
  }
}

}  // namespace edl::app

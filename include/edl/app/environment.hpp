// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "edl/base/net/address.hpp"
#include "edl/base/net/node.hpp"
#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"

namespace edl::app {

/// This process's settings from the environment. Names are those in the platform's pods.
struct process_environment {
  std::string role;            ///< EDL_ROLE: master, ps, worker; empty: the user's own process
  std::string job_name;        ///< EDL_JOB_NAME
  std::string token;           ///< EDL_JOB_TOKEN, the job's secret
  std::string master;          ///< MASTER_ADDR: "host:port", or addresses separated by commas
  std::string host;            ///< MY_POD_IP: the address at which others reach this process
  std::uint16_t port = 0;      ///< EDL_PORT: the port to listen on, unless a flag sets it; 0: any free one
  std::string platform;        ///< EDL_PLATFORM: "process" if the master starts the others on this machine,
                               ///< "kubernetes" in a cluster; empty: they are started by hand
  std::string launcher;        ///< EDL_LAUNCHER: address of the launcher that starts them for it
  std::string launcher_token;  ///< EDL_LAUNCHER_TOKEN: the token that the launcher requires
  std::string directory;       ///< EDL_JOB_DIR: directory of the master's socket, private to this user
  std::string lock;            ///< EDL_LOCK: names the command's lock of the directory of results
  std::string journal;         ///< EDL_JOURNAL: file with the state for a restarted master
  std::string dry_run;         ///< EDL_DRY_RUN_DIR: where a job with --dry_run writes
  bool shown = false;    ///< EDL_STATUS_LINE: the reader of standard error shows status lines (`cli::encode`)
  std::uint32_t id = 0;  ///< WORKER_ID or PS_ID

  // Of a pod, if EDL_PLATFORM is "kubernetes".
  std::string cluster;            ///< EDL_JOB: the job's description in the cluster
  std::string pod_name, pod_uid;  ///< MY_POD_NAME, MY_POD_UID
};

/// Whether this process is part of a job that one command on this machine has started.
inline bool is_of_a_command(process_environment const& s) {
  return !s.role.empty() && s.platform == "process";
}

/// Throws usage_error, which names the variable, if one that the role needs is missing or wrong.
process_environment read_environment();

/// The options of this process's node. Its identity is its role, its number and its incarnation. A master has
/// no incarnation, because its successors have the same identity.
net::node_options node_options_of(process_environment const& s, job const& j, logger const& log);

/// The addresses that a process listens on: a Unix socket for processes of this machine, a port for others.
/// The socket is in `directory` if there is one, so that another user cannot take its name when this process
/// is gone.
std::vector<net::address> listen_at(std::string const& host, std::uint16_t port,
                                    std::string const& directory = {});

/// The addresses of MASTER_ADDR, separated by commas; the default transport is tcp. A master must answer
/// there.
std::vector<net::address> master_addresses(std::string const& text);

/// Addresses in the format of MASTER_ADDR.
std::string joined(std::vector<net::address> const& addresses);

/// A random number from the operating system, which identifies this process.
std::uint64_t draw_incarnation();

/// The command line of this process.
std::vector<std::string> own_command();

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/environment.ipp"
#endif

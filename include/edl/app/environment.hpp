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

/// What the environment says about this process. Names are those of the platform's pods.
struct process_environment {
  std::string role;        ///< EDL_ROLE: master, ps, worker; empty: the user's own process
  std::string job_name;    ///< EDL_JOB_NAME
  std::string token;       ///< EDL_JOB_TOKEN, the job's secret
  std::string master;      ///< MASTER_ADDR: "host:port", or addresses separated by commas
  std::string host;        ///< MY_POD_IP: where others reach this process
  std::uint16_t port = 0;  ///< EDL_PORT: where this process listens, unless a flag says; 0: any free one
  std::string platform;    ///< EDL_PLATFORM: "process" where the master starts the others on this machine,
                           ///< "kubernetes" in a cluster; empty: they are started by hand
  std::string launcher;    ///< EDL_LAUNCHER: address of what starts them for it
  std::string launcher_token;  ///< EDL_LAUNCHER_TOKEN: what the launcher asks a master for
  std::string directory;  ///< EDL_JOB_DIR: the master's socket lies here, in a directory of this user alone
  std::string journal;    ///< EDL_JOURNAL: file for what a restarted master must know
  std::string dry_run;    ///< EDL_DRY_RUN_DIR: where a job with --dry_run writes
  bool shown = false;    ///< EDL_STATUS_LINE: whoever reads standard error shows status lines (`cli::encode`)
  std::uint32_t id = 0;  ///< WORKER_ID or PS_ID

  // Of a pod, where EDL_PLATFORM is "kubernetes".
  std::string cluster;            ///< EDL_JOB: the job as the cluster knows it
  std::string pod_name, pod_uid;  ///< MY_POD_NAME, MY_POD_UID
};

/// Whether this process is a part of a job that one command of this machine has started.
inline bool is_of_a_command(process_environment const& s) {
  return !s.role.empty() && s.platform == "process";
}

/// Throws usage_error when a variable that the role needs is missing or wrong, naming it.
process_environment read_environment();

/// What this process' node is to its peers. Its identity is its role and number, with a number of its own for
/// this run. A master has no such number, as its successors answer to the same name.
net::node_options node_options_of(process_environment const& s, job const& j, logger const& log);

/// Where a process listens: a Unix socket for this machine's processes, a port for others'. The socket is one
/// in `directory`, where there is one: another user cannot take its name when this process is gone.
std::vector<net::address> listen_at(std::string const& host, std::uint16_t port,
                                    std::string const& directory = {});

/// The addresses of MASTER_ADDR, separated by commas; one without a transport is tcp. A master must answer
/// there.
std::vector<net::address> master_addresses(std::string const& text);

/// Addresses as MASTER_ADDR has them.
std::string joined(std::vector<net::address> const& addresses);

/// A random number of the operating system, to tell a process from all others.
std::uint64_t draw_incarnation();

/// The command line of this very process.
std::vector<std::string> own_command();

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/environment.ipp"
#endif

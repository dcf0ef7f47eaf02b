// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

/// Jobs of real processes to which something happens all the time, and what became of them.
namespace chaos {

using wall_clock = std::chrono::system_clock;  // that of the log
using std::chrono::milliseconds;

enum class kind {
  worker,             ///< one is killed
  workers,            ///< several at once, one stays
  all_workers,        ///< all at once
  server,             ///< one is killed
  master,             ///< it is killed
  master_and_worker,  ///< both at once
  short_silence,      ///< a worker is stopped, and goes on before it is given up
  long_silence,       ///< a worker is stopped until it has been given up
  goodbye,            ///< a worker is told to stop
  slow,               ///< a worker runs a fraction of the time only
  short_cut,          ///< a worker's network is cut, and mended before it is given up
  long_cut,           ///< a worker's network is cut until it has been given up
  squatted,           ///< a worker or server is killed, and somebody else takes its names and ports
  newcomer_silent,    ///< one is killed, and the one in its place is stopped for a while before it has joined
  storage,            ///< checkpoints cannot be read or written for a while
  storage_and_server,  ///< the same, and a server (or worker) is killed meanwhile
  journal,             ///< the master's journal is damaged, and the master killed
  master_silent,       ///< the master is stopped for longer than members are given, and goes on
  master_cut,          ///< the master's network is cut for longer than members are given
  lost_reply,          ///< a reply of the master to a worker is lost, and the connection it came on
  altered_record,      ///< between a worker and the master a TLS record's length is changed, or a byte
  group_signal,        ///< every process of the job is told to stop, and the same command given again
  early_signal,        ///< the same; that command is told to stop within 0.1 s, and given once more
};

inline constexpr std::array<std::string_view, 23> names{
    "worker killed",       "several workers killed", "all workers killed",   "server killed",
    "master killed",       "master, worker killed",  "worker silent < 5 s",  "worker silent > 5 s",
    "worker told to stop", "worker slowed down",     "network cut < 5 s",    "network cut > 5 s",
    "names squatted",      "newcomer silent",        "storage fails",        "storage fails, server killed",
    "journal damaged",     "master silent > 5 s",    "master cut off > 5 s", "reply lost",
    "record altered",      "signal to the group",    "early signal"};

/// Whether a process of the job may be given up although it lives.
inline bool silences(kind k) {
  return k == kind::short_silence || k == kind::long_silence || k == kind::slow || k == kind::short_cut ||
         k == kind::long_cut || k == kind::newcomer_silent || k == kind::master_cut ||
         k == kind::lost_reply || k == kind::altered_record;
}

/// Whether nothing need stand in the master's log of it.
inline bool unnoticed(kind k) {
  return k == kind::short_silence || k == kind::slow || k == kind::short_cut || k == kind::storage ||
         k == kind::master_silent || k == kind::master_cut || k >= kind::lost_reply;
}

inline std::string_view name(kind k) { return names[std::size_t(k)]; }

/// Something that is to happen.
struct intent {
  kind what = kind::worker;
  std::uint64_t choice = 0;  ///< which of those that there are, as a random number
  milliseconds length{0};    ///< of a silence, a slow time or a cut
  milliseconds before{0};    ///< to wait once the job has recovered from what was before
  bool in_recovery = false;  ///< `before` counts from what was before, and nothing is waited for
};

/// Something that has happened.
struct fault {
  kind what = kind::worker;
  bool in_recovery = false;
  wall_clock::time_point at;            ///< just before the signal
  std::vector<std::string> victims;     ///< "worker-3", "ps-0", "master"
  std::vector<std::string> bystanders;  ///< workers that had joined and were not hit by it
};

/// How long it took until a bystander had completed a step.
struct sample {
  kind what = kind::worker;
  bool in_recovery = false;
  bool alone = false;  ///< there was no bystander: a newcomer's step is meant
  std::string strategy;
  double next_step = -1;  ///< seconds to the first step whose line comes after the fault
  double found = -1;      ///< seconds until the master had dealt with it; below 0: its log does not say
  double recovered = -1;  ///< seconds to the first step after that
};

}  // namespace chaos

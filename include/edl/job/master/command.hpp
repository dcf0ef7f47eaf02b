// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "edl/core/log.hpp"
#include "edl/job/master/evaluation.hpp"
#include "edl/job/master/membership.hpp"
#include "edl/job/master/placement.hpp"

namespace edl::master {

/// Find the newest valid checkpoint, and answer with `coordinator::restore_point_found`.
struct find_restore_point {
  std::uint64_t generation = 0;
  std::optional<std::uint64_t> newest = {};  ///< checkpoints of later versions are wrong, and are removed
};

/// Make every server load this generation's state, and answer for each with `coordinator::server_configured`.
struct configure_servers {
  std::uint64_t generation = 0;
  std::string restore;  ///< directory of a checkpoint; empty: initial values
  bool keep = false;    ///< keep their state, or copy that of `holders`; answer with what each has applied
  std::vector<range_place> places;
  range_holders holders;
  std::vector<std::uint32_t> sources;  ///< with `keep`, by range: the holder whose state all copy
  std::set<std::uint32_t> servers;     ///< all existing ones
};

/// Training is over and the servers are idle: request server 0's version, and answer with
/// `coordinator::version_announced`.
struct ask_version {
  std::uint64_t generation = 0;
};

/// Have every server write the frozen version (`final`: its current state), make the checkpoint valid, and
/// answer with `coordinator::checkpoint_written`.
struct write_checkpoint {
  std::uint64_t generation = 0, version = 0;
  bool final = false;
};

/// Servers need not hold a frozen version any more: for evaluation, or else for a checkpoint.
struct release_frozen {
  std::uint64_t version = 0;
  bool evaluation = false;
};

/// Make sure that process `id` is gone and start `with`; the same id for a server.
struct replace_process {
  edl::role role = edl::role::worker;
  std::uint32_t id = 0, with = 0;
};

/// Start a new process; perhaps as the successor of one that is about to exit.
struct start_process {
  edl::role role = edl::role::worker;
  std::uint32_t id = 0;
  std::optional<std::uint32_t> instead_of = {};
};

/// Ask a process to leave, without a successor.
struct stop_process {
  edl::role role = edl::role::worker;
  std::uint32_t id = 0;
};

/// A worker's machine is faulty or slow: start no other process of the job there.
struct avoid_place {
  std::uint32_t worker = 0;
  std::string why;
};

/// A process's machine is about to be taken away: start no other process of the job there until it is gone.
struct evade_place {
  edl::role role = edl::role::worker;
  std::uint32_t id = 0;
  std::string why;
};

/// An evaluation is complete.
struct evaluation_done {
  evaluation_result result;
};

/// Write the model while its keepers still take part, so that the loss of one only begins the next
/// generation.
struct write_model {
  std::uint64_t generation = 0;
};

/// Everything is done; processes learn it from the reply to their next heartbeat or request.
struct finish_job {};

/// The state is saved, as far as possible; processes learn it as with `finish_job`.
struct suspend_job {};

/// The job cannot be completed.
struct fail_job {
  std::string reason;
};

/// The topic of a line.
enum class topic : std::uint8_t {
  note,
  joined,
  left,
  lost,
  replaced,
  resized,
  world,     ///< workers train together anew
  recovery,  ///< the model has another state
  epoch,
  checkpoint,
  evaluation,
  waiting,
  end,
};

constexpr std::array<std::string_view, 13> names(topic) {
  return {"note",     "joined", "left",       "lost",       "replaced", "resized", "world",
          "recovery", "epoch",  "checkpoint", "evaluation", "waiting",  "end"};
}

struct log_line {
  severity level = severity::info;
  std::string text;
  topic subject = topic::note;
};

/// The commands of the master's decisions to their environment.
using command =
    std::variant<find_restore_point, configure_servers, ask_version, write_checkpoint, release_frozen,
                 replace_process, start_process, stop_process, avoid_place, evade_place, evaluation_done,
                 write_model, finish_job, suspend_job, fail_job, log_line>;

/// Whether the command announces something that a successor of this master must know.
inline bool is_promise(command const& c) {
  return std::holds_alternative<configure_servers>(c) || std::holds_alternative<ask_version>(c) ||
         std::holds_alternative<write_checkpoint>(c) || std::holds_alternative<replace_process>(c) ||
         std::holds_alternative<start_process>(c) || std::holds_alternative<stop_process>(c);
}

}  // namespace edl::master

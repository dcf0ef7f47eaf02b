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
  std::optional<std::uint64_t> newest = {};  ///< checkpoints of later versions are wrong, and go
};

/// Tell every server to take this generation's state, and answer for each with
/// `coordinator::server_configured`.
struct configure_servers {
  std::uint64_t generation = 0;
  std::string restore;  ///< directory of a checkpoint; empty: initial values
  bool keep = false;  ///< the state that they, or `holders`, have, instead; answer with what each has applied
  std::vector<range_place> places;
  range_holders holders;
  std::vector<std::uint32_t> sources;  ///< with `keep`, by range: the holder whose state is taken by all
  std::set<std::uint32_t> servers;     ///< all that are there
};

/// Training is over and the servers rest: ask server 0 for its version, and answer with
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

/// Start a process that is there for the first time; perhaps in the place of one that is about to end.
struct start_process {
  edl::role role = edl::role::worker;
  std::uint32_t id = 0;
  std::optional<std::uint32_t> instead_of = {};
};

/// Tell a process to leave: nobody takes its place.
struct stop_process {
  edl::role role = edl::role::worker;
  std::uint32_t id = 0;
};

/// The place where a worker runs does it harm: no other process of the job should be started there.
struct avoid_place {
  std::uint32_t worker = 0;
  std::string why;
};

/// An evaluation is complete.
struct evaluation_done {
  evaluation_result result;
};

/// Those who keep the model still take part: what one of them is lost with, the next generation has.
struct write_model {
  std::uint64_t generation = 0;
};

/// Everything is done; processes are told so with their next heartbeat or request.
struct finish_job {};

/// What is trained is kept, as far as it can be; processes are told as by `finish_job`.
struct suspend_job {};

/// The job cannot be completed.
struct fail_job {
  std::string reason;
};

/// What a line tells of.
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

/// What the master's decisions ask of the world around them.
using command = std::variant<find_restore_point, configure_servers, ask_version, write_checkpoint,
                             release_frozen, replace_process, start_process, stop_process, avoid_place,
                             evaluation_done, write_model, finish_job, suspend_job, fail_job, log_line>;

/// Whether others hear of what a successor of this master has to know.
inline bool is_promise(command const& c) {
  return std::holds_alternative<configure_servers>(c) || std::holds_alternative<ask_version>(c) ||
         std::holds_alternative<write_checkpoint>(c) || std::holds_alternative<replace_process>(c) ||
         std::holds_alternative<start_process>(c) || std::holds_alternative<stop_process>(c);
}

}  // namespace edl::master

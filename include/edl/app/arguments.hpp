// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "edl/app/history.hpp"
#include "edl/app/serving.hpp"
#include "edl/app/sweep.hpp"
#include "edl/cli/flag.hpp"
#include "edl/compute/data/format/recordio.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/train/setup/hyperparameters.hpp"

namespace edl::app {

/// What `data` is asked to do: write records of any format that edl reads as RecordIO shards.
struct conversion {
  std::string from, to;
  data::compressor compressor = data::compressor::snappy;
  std::uint64_t records_per_shard = 4096;
  double fraction = 1;
  std::string missing = "auto";  ///< as the job's
};

/// What `scale` is asked to do.
struct scaling {
  std::string job;
  std::optional<int> workers, servers;
};

struct arguments {
  edl::job job;
  std::optional<conversion> data;                          ///< the `data` subcommand
  std::optional<std::string> audit;                        ///< what the `audit` subcommand is to look at
  std::optional<history_request> history;                  ///< the `history` subcommand
  std::optional<app::sweep> sweep;                         ///< the `sweep` subcommand
  bool exported = false;                                   ///< the `export` subcommand, by flags of the job
  std::optional<app::serving> serving;                     ///< the `serve` subcommand
  std::optional<scaling> scale;                            ///< the `scale` subcommand
  std::vector<std::pair<std::string, std::string>> given;  ///< every flag's name and value, for the log
  std::vector<std::string> notes;  ///< a line for each flag that is given and does nothing in this job
};

/// The outcome of parsing: arguments, or text to print and the code to exit with (`--help`, `--version`).
struct parsed {
  std::optional<arguments> run;
  std::string text;
  int code = 0;
};

/// Reads a command line. `program` is the binary's name, in the help and as the default job name.
/// `set`: what the model declares, for the help. `metrics`: those that flags may name; empty where they are
/// not known. Throws usage_error: an unknown flag (with the nearest known name), a value out of range, a flag
/// that is missing or contradicts another.
parsed parse(std::string const& program, std::vector<std::string> const& line,
             train::hyperparameters const& set = {}, std::vector<std::string> const& metrics = {});

/// What the command `export` of a program takes.
std::vector<cli::flag> export_flags(std::string const& program);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/arguments.ipp"
#endif

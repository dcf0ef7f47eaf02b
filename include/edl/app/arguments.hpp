// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "edl/app/generating.hpp"
#include "edl/app/history.hpp"
#include "edl/app/serving.hpp"
#include "edl/app/sweep.hpp"
#include "edl/cli/flag.hpp"
#include "edl/compute/data/format/record_file.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/train/setup/hyperparameters.hpp"

namespace edl::app {

/// The arguments of `data`: convert records of any supported format to RecordIO shards.
struct conversion {
  std::string from, to;
  data::compressor compressor = data::compressor::snappy;
  std::uint64_t records_per_shard = 4096;
  double fraction = 1;
  std::string missing = "auto";  ///< as the job's
};

/// The arguments of `scale`.
struct scaling {
  std::string job;
  std::optional<int> workers, servers;
};

struct arguments {
  edl::job job;
  std::optional<conversion> data;                          ///< the `data` subcommand
  std::optional<std::string> audit;                        ///< the path for the `audit` subcommand
  std::optional<history_request> history;                  ///< the `history` subcommand
  std::optional<app::sweep> sweep;                         ///< the `sweep` subcommand
  bool exported = false;                                   ///< the `export` subcommand, with flags of the job
  std::optional<app::serving> serving;                     ///< the `serve` subcommand
  std::optional<app::generating> generating;               ///< the `generate` subcommand
  std::optional<scaling> scale;                            ///< the `scale` subcommand
  std::vector<std::pair<std::string, std::string>> given;  ///< every flag's name and value, for the log
  std::vector<std::string> notes;  ///< a line for each given flag without effect in this job
};

/// The outcome of parsing: arguments, or text to print and the code to exit with (`--help`, `--version`).
struct parsed {
  std::optional<arguments> run;
  std::string text;
  int code = 0;
};

/// Reads a command line. `program` is the binary's name, in the help and as the default job name.
/// `set`: the model's hyperparameters, for the help. `metrics`: the metrics that flags may name; empty if
/// they are not known. Throws usage_error: an unknown flag (with the nearest known name), a value out of
/// range, a missing flag, or one that contradicts another.
parsed parse(std::string const& program, std::vector<std::string> const& line,
             train::hyperparameters const& set = {}, std::vector<std::string> const& metrics = {});

/// The flags of a program's command `export`.
std::vector<cli::flag> export_flags(std::string const& program);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/arguments.ipp"
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "edl/cli/flag.hpp"
#include "edl/job/config/job.hpp"

namespace edl {

/// What a command line says of a job, flag by flag; `resolve` makes a job of it.
struct parsed_flags {
  edl::job job;
  std::optional<edl::strategy> strategy;  ///< as told; none: by the processes that are asked for
  std::uint64_t records_per_task = 0;     ///< 0: not told
  std::string save_best, early_stopping;
  std::string validation_split = "0";
};

/// A flag of a job. The command line, --help, completion, `edl train` and the tables of docs/jobs.md follow
/// from the list of them.
struct job_flag {
  cli::flag flag;                 ///< its group is that of the help and of the document
  std::vector<command> commands;  ///< commands that have it
  std::vector<command> needs;     ///< commands that cannot do without it
  std::string read_by;            ///< roles whose processes look at it: "master, workers"
  std::string elasticdl;          ///< what ElasticDL calls it; empty: it has nothing like it
  std::function<void(parsed_flags&, std::string const& value)>
      put;  ///< a value that `cli::accept` let through
};

/// All of them, in the order of the document.
std::vector<job_flag> const& job_flags();

/// The flag that says which cells of a table count as empty, for `data::read_missing_words`.
cli::flag missing_flag();

/// The flags that a command has. `program` is the default of --job_name.
std::vector<cli::flag> flags_of(command c, std::string const& program);

/// A table of Markdown for each group, as docs/jobs.md has them.
std::string flags_as_markdown();

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/config/flags.ipp"
#endif

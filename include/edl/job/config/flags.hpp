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

/// A job's options from a command line, flag by flag; `resolve` turns them into a job.
struct parsed_flags {
  edl::job job;
  std::optional<edl::strategy> strategy;  ///< as given; not set: determined by the requested processes
  std::uint64_t records_per_task = 0;     ///< 0: not given
  std::string save_best, early_stopping;
  std::string validation_split = "0";
};

/// A flag of a job. The command line, --help, completion, `edl train` and the tables of docs/jobs.md follow
/// from the list of them.
struct job_flag {
  cli::flag flag;                 ///< its group is that in the help and in the document
  std::vector<command> commands;  ///< commands that have it
  std::vector<command> needs;     ///< commands that require it
  std::string read_by;            ///< roles that use it: "master, workers"
  std::string elasticdl;          ///< its name in ElasticDL; empty: none
  std::function<void(parsed_flags&, std::string const& value)>
      put;  ///< stores a value that `cli::accept` has accepted
};

/// All flags, in the order of the document.
std::vector<job_flag> const& job_flags();

/// The flag for the cells of a table that count as empty, for `data::read_missing_words`.
cli::flag missing_flag();

/// The flags that a command has. `program` is the default of --job_name.
std::vector<cli::flag> flags_of(command c, std::string const& program);

/// A Markdown table for each group, for docs/jobs.md.
std::string flags_as_markdown();

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/config/flags.ipp"
#endif

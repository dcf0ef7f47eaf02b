// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/cli/command_line.hpp"
#include "edl/job/train/prediction/generation_session.hpp"
#include "edl/job/train/setup/program.hpp"

namespace edl::app {

/// The arguments of `generate`.
struct generating {
  std::string model, prompt;
  int texts = 1;
  bool as_json = false;  ///< a line of JSON for each text; otherwise the text as it comes
  std::string set;       ///< hyperparameters, as in --set
  generator_options with;
  generation_options options;
};

std::vector<cli::flag> generating_flags();
/// Throws usage_error.
generating generating_of(cli::command_line const& l);

/// Prints the texts with which a model continues the prompt. Returns the exit code.
int run_generating(train::program const& p, generating const& what);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/generating.ipp"
#endif

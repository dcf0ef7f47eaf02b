// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "common/command_line.hpp"
#include "submit/training_job.hpp"

namespace edl::tool {

enum class without_program {
  guessed,  ///< the entry point's name is taken, and a missing --training_data is left to the reader
  refused,
};

/// A TrainingJob of PaddlePaddle as flags of `edl submit`, with what the command line says in the place of
/// its own.
struct paddle_line {
  words line, notes;  ///< `notes`: of what has no counterpart
  std::uint32_t min = 1;
  nlohmann::json labels, annotations;
  bool needs_data = false;  ///< --training_data stands for one that is to be given later
};
paddle_line line_from_paddle(nlohmann::json const& document, std::string const& origin,
                             command_line const& given, without_program program);

/// The same, read. Throws usage_error.
training_job_line from_paddle(nlohmann::json const& document, std::string const& origin,
                              command_line const& given, without_program program);

}  // namespace edl::tool

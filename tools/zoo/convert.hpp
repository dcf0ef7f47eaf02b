// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "training_job.hpp"

namespace edl::tool {

/// The objects of a file that -f names; nothing when it holds flags. Throws usage_error.
std::optional<std::vector<nlohmann::json>> read_manifest(std::string const& flag, std::string const& path);

/// What of a command line is said beside the file that it names, as words.
words beside_file(command_line const& given);

enum class without_program {
  guessed,  ///< the entry point's name is taken, and a missing --training_data is left to the reader
  refused,
};

/// A TrainingJob of PaddlePaddle, with what the command line says in the place of its own. What has no
/// counterpart is in the notes of `of`. Throws usage_error.
training_job_line from_paddle(nlohmann::json const& document, std::string const& origin,
                              command_line const& given, without_program program);

/// A note on standard error.
void note(std::string const& text);

/// Writes a text into the file that a flag names; "-" is standard output. `secret`: for the user's eyes only.
void write_output(std::string const& flag, std::string const& path, std::string const& text, bool secret);

/// `edl convert`.
int convert_job(words const& line);
std::vector<flag> convert_job_flags();

}  // namespace edl::tool

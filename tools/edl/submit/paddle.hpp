// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "common/command_line.hpp"

namespace edl::tool {

/// A TrainingJob of PaddlePaddle's EDL, as the flags of `edl train` and what has no flag.
struct paddle_job {
  words line;              ///< "--job_name=fit-a-line", … ; without --model_def
  std::string entrypoint;  ///< "python train.py"; empty: none
  std::uint32_t min = 1, max = 1;
  nlohmann::json labels = nlohmann::json::object(), annotations = nlohmann::json::object();
  words notes;  ///< of fields that have no counterpart: "spec.port: …", a line each
};

/// Whether a document is one: `apiVersion: paddlepaddle.org/v1`, `kind: TrainingJob`.
bool is_paddle_job(nlohmann::json const& document);

/// Reads the fields of both of its generations (ThirdPartyResource and CustomResourceDefinition), names in
/// any case, as Go's decoder takes them. `origin` stands in the errors. Throws usage_error for a field that
/// neither knows, with the nearest that it does. A value of another type, an amount that is none, and min
/// above max are usage errors, too.
paddle_job read_paddle_job(nlohmann::json const& document, std::string const& origin);

/// The program in the image that such an entry point was moved to: "python train_ft.py" is "train_ft". Throws
/// usage_error that asks for --model_def where it tells of none.
std::string program_of_entrypoint(std::string const& entrypoint);

}  // namespace edl::tool

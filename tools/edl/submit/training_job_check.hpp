// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace edl::tool {

/// Holds a TrainingJob against what the API server will ask of it (the schema and the rules of
/// k8s/trainingjob-crd.yaml). It holds its flags against those of the model's program, without asking
/// anybody. Throws usage_error that names `origin` and the field.
void check_training_job(nlohmann::json const& object, std::string const& origin);

}  // namespace edl::tool

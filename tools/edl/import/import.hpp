// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "common/command_line.hpp"

namespace edl::tool {

/// `edl import`: a model of one's own from a file of ONNX, as C++ and safetensors.
int import_model(words const& line);
std::vector<flag> import_flags();

}  // namespace edl::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "edl/core/layout.hpp"
#include "edl/core/span.hpp"

namespace edl::checkpoint {

/// Writes a model for serving: one safetensors file, parameters and state by name in their own extents, which
/// exists whole or not at all. `variables` is the whole arena. The model's version stands in the metadata as
/// `version`.
void export_model(std::string const& path, parameter_layout const& layout, view<float> variables,
                  std::uint64_t version);

/// Reads such a file, or anybody's with these names, extents and F32. More tensors than the layout has are
/// ignored. Errors name the variable.
void import_model(std::string const& path, parameter_layout const& layout, std::span<float> variables);

/// The version that stands in such a file; 0 where none does, as in others' files.
std::uint64_t model_version(std::string const& path);

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/checkpoint/model_file.ipp"
#endif

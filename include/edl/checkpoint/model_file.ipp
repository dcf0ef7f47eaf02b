// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <utility>
#include <vector>

#include "edl/checkpoint/layout_digest.hpp"
#include "edl/checkpoint/model_file.hpp"
#include "edl/checkpoint/safetensors.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::checkpoint {

EDL_INLINE void export_model(std::string const& path, parameter_layout const& layout, view<float> variables,
                             std::uint64_t version) {
  if (variables.size() != layout.size())
    throw error(
        fmt::format("cannot write {}: {} values for a model of {}", path, variables.size(), layout.size()));
  std::vector<tensor_source> tensors;
  for (variable const& v : layout.variables)
    tensors.push_back({.name = v.name,
                       .dims = {v.dims.of.begin(), v.dims.of.begin() + v.dims.rank},
                       .data = std::as_bytes(variables.subspan(v.offset, v.dims.size()))});
  durable_file file(path);
  write_safetensors(file, tensors,
                    {{"edl", "model 1"},
                     {"version", std::to_string(version)},
                     {"layout_digest", fmt::format("{:016x}", layout_digest(layout))}});
  file.commit();
}

EDL_INLINE void import_model(std::string const& path, parameter_layout const& layout,
                             std::span<float> variables) {
  if (variables.size() != layout.size())
    throw error(
        fmt::format("cannot read {}: {} values for a model of {}", path, variables.size(), layout.size()));
  safetensors_file const file(path);
  std::vector<std::pair<variable const*, tensor const*>> found;
  for (variable const& v : layout.variables) {
    tensor const* const t = file.find(v.name);
    std::vector<std::uint64_t> const dims(v.dims.of.begin(), v.dims.of.begin() + v.dims.rank);
    if (!t) throw error(fmt::format("{} lacks variable '{}' of the model", path, v.name));
    if (t->dtype != "F32" || t->dims != dims)
      throw error(fmt::format("variable '{}' of {} is {} [{}], the model has F32 [{}]", v.name, path,
                              t->dtype, fmt::join(t->dims, ", "), fmt::join(dims, ", ")));
    found.emplace_back(&v, t);
  }
  for (auto const& [v, t] : found)
    file.read(*t, 0, std::as_writable_bytes(variables.subspan(v->offset, v->dims.size())));
}

EDL_INLINE std::uint64_t model_version(std::string const& path) {
  safetensors_file const file(path);
  auto const it = file.metadata().find("version");
  std::uint64_t version = 0;
  if (it != file.metadata().end())
    std::from_chars(it->second.data(), it->second.data() + it->second.size(), version);
  return version;
}

}  // namespace edl::checkpoint

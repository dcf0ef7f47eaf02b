// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <exception>

#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/job_files.hpp"
#include "edl/base/checkpoint/layout_digest.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::checkpoint {

EDL_INLINE job_files::attempt job_files::begin(std::uint64_t version, std::uint64_t generation) const {
  if (allowed) allowed();  // before servers write parts that no process would list or remove
  attempt one{path(version), described, begin_checkpoint(directory.at(path(version)))};
  one.contents.version = version;
  one.contents.generation = generation;
  one.contents.layout = layout_digest(layout);
  return one;
}

EDL_INLINE void job_files::prune(logger const& log) const try {
  if (std::string const aside = set_aside_strays(directory, allowed); !aside.empty()) log.warning(aside);
  checkpoint::prune(directory, keep, allowed);
} catch (std::exception const& e) {
  log.warning(fmt::format("old checkpoints in {} cannot be removed: {}", directory.path(), e.what()));
}

EDL_INLINE void job_files::export_model(std::string const& into, view<float> variables,
                                        std::span<row_source const> tables, std::uint64_t version,
                                        logger const& log) const {
  if (allowed) allowed();
  std::string const name = "model.safetensors";
  if (adapted) {
    export_adapted(directory.at(into), *adapted, layout, variables, version);
    return log.info(
        fmt::format("model with merged adapters written to {0}/{1}, and the adapters alone to "
                    "{0}/adapter_model.safetensors",
                    into, name));
  }
  directory.at(into).write(name, [&](std::string const& path) {
    checkpoint::export_model(path, layout, variables, tables, version,
                             {described.seed, described.hyperparameters, described.record});
  });
  log.info(fmt::format("model written to {}/{}", into, name));
}

}  // namespace edl::checkpoint

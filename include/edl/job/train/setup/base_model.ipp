// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "edl/base/checkpoint/manifest.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/text.hpp"
#include "edl/job/train/setup/base_model.hpp"
#include "edl/job/train/setup/model_copy.hpp"
#include "edl/job/train/setup/start.hpp"

namespace edl::train {
namespace detail {

/// The base with which the adapters of a checkpoint or a file were trained, and its checksum; empty: unknown.
inline std::pair<std::string, std::uint32_t> recorded_base(std::string const& path) {
  if (!checkpoint::names_model_file(path)) {
    auto const m = checkpoint::read_manifest(path);
    return {m.base_model, m.base_crc32};
  }
  return {checkpoint::model_note(path, "lora_base"),
          number_from<std::uint32_t>(checkpoint::model_note(path, "lora_base_crc32")).value_or(0)};
}

inline void open_base(checkpoint::adapted_model& of, std::string const& given, logger const& log,
                      bucket::cache_options const& cache) {
  auto const found = find_model(given, log, checkpoint::check::sizes, "--base_model=", cache);
  of.base = checkpoint::read_base(of, found.path, given);
}

inline void check_base(checkpoint::base_model const& base, std::string const& adapters,
                       std::pair<std::string, std::uint32_t> const& recorded) {
  if (!recorded.first.empty() && recorded.second != base.crc32)
    throw error(
        fmt::format("the adapters of {} were trained with {}, of CRC-32 {:08x}, and {} has other values, of "
                    "CRC-32 {:08x}",
                    adapters, recorded.first, recorded.second, base.path, base.crc32));
}

}  // namespace detail

EDL_INLINE void read_base(program& p, job const& j, logger const& log) {
  std::string const& given = j.checkpoints.base_model;
  if (!p.adapted) {
    if (given.empty()) return;
    throw usage_error(
        fmt::format("--base_model={}: the model's network has no adapters (nn::adapted); "
                    "--checkpoint_dir_for_init begins with another model's variables",
                    given));
  }
  std::pair<std::string, std::uint32_t> recorded;
  std::string const& model = j.checkpoints.checkpoint_dir_for_init;
  if (j.command != command::train)
    recorded =
        detail::recorded_base(find_model(model, checkpoint::check::sizes, init_flag, cache_of(j)).path);
  std::string const& from = given.empty() ? recorded.first : given;
  if (from.empty())
    throw usage_error(
        "the network has adapters of a frozen one: --base_model names the file with its variables");
  detail::open_base(*p.adapted, from, log, cache_of(j));
  detail::check_base(*p.adapted->base, model, recorded);
}

EDL_INLINE void read_base_of(program& p, std::string const& path, logger const& log) {
  if (!p.adapted) return;
  auto& of = *p.adapted;
  if (checkpoint::other_model(path).match(of.frozen, of.weight_names).whole()) {
    of.base = checkpoint::read_base(of, path, path);
    return;
  }
  auto const recorded = detail::recorded_base(path);
  if (recorded.first.empty())
    throw error(fmt::format("{} has neither adapters that name their base nor all variables of one", path));
  detail::open_base(of, recorded.first, log, {});
  detail::check_base(*of.base, path, recorded);
}

EDL_INLINE bool is_base(program const& p, std::string const& path) {
  return p.adapted && p.adapted->base && p.adapted->base->path == path;
}

}  // namespace edl::train

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "edl/base/checkpoint/safetensors.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/quantity.hpp"
#include "edl/job/train/setup/model_copy.hpp"

namespace edl::train {

EDL_INLINE bucket::cache_options cache_of(job const& j, logger const& log) {
  bucket::cache_options o{.directory = j.data.data_cache, .log = log};
  if (!j.data.data_cache_size.empty()) o.most_bytes = bytes_of(j.data.data_cache_size);
  return o;
}

EDL_INLINE bucket::place checkpoints_of(job const& j) {
  return {j.command == command::train ? j.checkpoints.checkpoint_dir : "", cache_of(j)};
}

EDL_INLINE readable_model::readable_model(std::string const& given, bucket::cache_options const& cache)
    : path_(given) {
  if (!bucket::names_objects(given)) return;
  path_ = copy_.emplace(bucket::copy_of(given, cache)).path();
  std::error_code unknown;
  std::string const index = path_ + "/" + checkpoint::model_index;
  if (!std::filesystem::exists(path_ + "/manifest.json", unknown) && std::filesystem::exists(index, unknown))
    path_ = index;
}

}  // namespace edl::train

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "edl/base/bucket/cache.hpp"
#include "edl/base/bucket/place.hpp"
#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"

namespace edl::train {

/// Where a job copies objects to: --data_cache.
bucket::cache_options cache_of(job const& j, logger const& log = logger(severity::warning));

/// A job's --checkpoint_dir; no place if it does not train, or keeps none.
bucket::place checkpoints_of(job const& j);

/// The path of a model, or of a checkpoint, at which this process can read it: the given one, or that of a
/// copy of the objects of `s3://…`, which stays at least as long as this object. Of a prefix with a model in
/// several files it is the path of their index. Throws error.
class readable_model {
 public:
  readable_model(std::string const& given, bucket::cache_options const& cache);
  std::string const& path() const { return path_; }

 private:
  std::string path_;
  std::optional<bucket::local_copy> copy_;
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/setup/model_copy.ipp"
#endif
